"""Numbers, names and bars as short texts that fit a cell: pure functions, no terminal needed."""

import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxobs.facts.functions import MEMORY_SECTIONS


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The few signs beyond letters that a view draws with."""

    ellipsis: str
    dot: str
    separator: str
    rule: str
    times: str
    count: str
    """Between a cause and how often it was."""
    marker: str
    full: str
    empty: str
    eighths: str
    """Parts of a block, from an eighth to seven of them; empty where there are none."""
    sparks: str
    """Heights of a small chart; empty where it cannot be drawn."""


UNICODE = Glyphs("…", "●", "·", "─", "×", "×", "▸", "█", "░", "▏▎▍▌▋▊▉", "▁▂▃▄▅▆▇█")
ASCII = Glyphs("~", "*", "-", "-", "x", "=", ">", "#", ".", "", "")

PHASE_LETTERS = {"trace": "t", "lower": "l", "compile": "c", "cache_load": "h"}
"""The phases in a bar without colours; `h` for a hit of the persistent cache."""


def duration(seconds: float | None) -> str:
    """`840 µs` is `0.84 ms`; then `12.3 ms`, `1.23 s`, `1m15s`, `3h12m`, `2d04h`."""
    if seconds is None or seconds != seconds:
        return ""
    if 0 < seconds < 0.000005:
        return "<0.01 ms"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms" if seconds else "0 s"
    if seconds < 99.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours < 48 else f"{hours // 24}d{hours % 24:02d}h"


def ago(seconds: float) -> str:
    """How long ago something was, in whole seconds: `8 s ago`, `2m52s ago`."""
    whole = max(round(seconds), 0)
    return f"{whole} s ago" if whole < 60 else f"{duration(whole)} ago"


def clock(moment: float, form: str = "%H:%M:%S") -> str:
    """A time of day on this machine, of seconds since the epoch; a question mark for what no calendar has."""
    try:
        return time.strftime(form, time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return "?"


def short(name: str) -> str:
    """A function's name without `__main__.`, which a reader of the program's own functions does not miss."""
    return name.removeprefix("__main__.")


def number(value: float | None) -> str:
    """`12,345`, `1.23M`, `4.56G`; one digit after the point below ten where there is one."""
    if value is None:
        return ""
    for least, letter in ((999.5e6, "G"), (999.5e3, "M")):
        if value >= least:
            return f"{value / (1e9 if letter == 'G' else 1e6):.3g}{letter}"
    return f"{value:.1f}" if value < 9.95 and value != int(value) else f"{value:,.0f}"


def size(count: int | None) -> str:
    """Bytes in binary units with three digits: `12.4 MiB`."""
    if count is None:
        return ""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 999.5 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.3g} {unit}"


def flops(value: float | None) -> str:
    """Operations by powers of a thousand with three digits: `1.32 PFLOP`."""
    if value is None:
        return ""
    power = 0
    while abs(value) >= 999.5 and power < 6:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {' kMGTPE'[power].strip()}FLOP"


def program_bytes(memory: Mapping[str, int]) -> int | None:
    """Bytes that a program holds on one device: outputs that take the place of arguments (`alias`) count once."""
    known = [-memory[name] if name == "alias" else memory[name] for name in MEMORY_SECTIONS if name in memory]
    return sum(known) if known else None


def middle(text: str, width: int, ellipsis: str = "…") -> str:
    """`text` in at most `width` characters, cut in the middle; a dotted name keeps whole parts at its end."""
    if len(text) <= width:
        return text
    if width <= len(ellipsis):
        return ellipsis[:width]
    room = width - len(ellipsis)
    first, dot, _ = text.partition(".")
    head = len(first) if dot and len(first) <= width // 3 else room // 3
    tail = text[head - room :]
    whole = tail.partition(".")[2]
    return f"{text[:head]}{ellipsis}{whole if dot and len(whole) * 2 > len(tail) else tail}"


def end(text: str, width: int, ellipsis: str = "…") -> str:
    """`text` in at most `width` characters, cut at the end."""
    return text if len(text) <= width else (text[: max(width - len(ellipsis), 0)].rstrip() + ellipsis)[:width]


def tail(text: str, width: int, ellipsis: str = "…") -> str:
    """`text` in at most `width` characters, cut at its beginning: of a path the end tells most."""
    if len(text) <= width:
        return text
    return (ellipsis + text[len(text) - max(width - len(ellipsis), 0) :])[: max(width, 0)]


def safe(text: str, encoding: str = "utf-8") -> str:
    """`text` on one line without control characters: what another process sent must not steer the terminal."""
    return shown(" ".join(text.split()), encoding)


def shown(text: str, encoding: str = "utf-8") -> str:
    """`text` with a question mark for each character that moves a cursor or that the terminal cannot show."""
    harmless = "".join(c if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co") else "?" for c in text)
    return harmless.encode(encoding, "replace").decode(encoding)


def bar(fraction: float, width: int, glyphs: Glyphs) -> tuple[str, str]:
    """A bar of `width` cells as its filled and its empty part."""
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)
    whole, part = divmod(eighths, 8)
    filled = glyphs.full * whole
    if part and glyphs.eighths:
        filled += glyphs.eighths[part - 1]
    elif part >= 4:
        filled += glyphs.full
    return filled, glyphs.empty * (width - len(filled))


def shares(values: Mapping[str, float], whole: float, width: int) -> list[tuple[str, int]]:
    """How many of `width` cells each value gets when all cells together mean `whole`.

    Cells are dealt by largest remainder, so that the parts add up to the rounded total; what has
    any value at all leaves at least one cell to the largest part.
    """
    positive = {name: value for name, value in values.items() if value > 0}
    total = sum(positive.values())
    if not positive or whole <= 0 or width <= 0:
        return []
    cells = max(1, min(width, round(total / whole * width)))
    exact = {name: value / total * cells for name, value in positive.items()}
    dealt = {name: int(part) for name, part in exact.items()}
    for name in sorted(exact, key=lambda name: dealt[name] - exact[name])[: cells - sum(dealt.values())]:
        dealt[name] += 1
    return [(name, count) for name, count in dealt.items() if count]


def spark(values: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """The latest values as a small chart of one line, from 0 to their maximum."""
    if not glyphs.sparks or len(values) < 2 or width < 2:
        return ""
    latest = values[-width:]
    top = max(latest)
    if top <= 0:
        return ""
    return "".join(glyphs.sparks[min(7, int(max(value, 0) / top * 7.999))] for value in latest)


def causes(counts: Mapping[str, int], width: int, glyphs: Glyphs) -> list[tuple[str, str]]:
    """The causes as (cause, text) that fit, most frequent first, first calls last, `+n` for what does not fit."""
    order = sorted(counts, key=lambda cause: (cause == "first_call", -counts[cause], cause))
    pieces = [(cause, f"{cause}{glyphs.count}{counts[cause]}") for cause in order]
    for kept in range(len(pieces), 0, -1):
        left_out = sum(counts[cause] for cause in order[kept:])
        shown = pieces[:kept] + ([("", f"+{left_out}")] if left_out else [])
        if sum(len(text) + 1 for _, text in shown) - 1 <= width:
            return shown
    if not pieces:
        return []
    (cause, text), left_out = pieces[0], sum(counts.values()) - counts[order[0]]
    more = f" +{left_out}" if left_out else ""
    return [(cause, end(text, width - len(more), glyphs.ellipsis)), *([("", more.strip())] if more else [])]
