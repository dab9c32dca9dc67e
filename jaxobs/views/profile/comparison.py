"""Two profiles as lines for a person: what got slower, by function, scope, operation and line of the source."""

from collections.abc import Iterator, Sequence

from jaxobs.profiles.comparison import Change, ProfileComparison
from jaxobs.views.terminal.lines import Column, Line, Surface, plain, row, sentence, titled
from jaxobs.views.terminal.text import duration

MOST_ROWS = 8
LEAST = 0.01
"""Share of the longer profile's time below which a change isn't shown."""
UNSAID = (
    "A profile does not say with which versions and flags its program ran: `jaxobs compare` with two event logs does."
)

_EACH = {"step": "for one step", "call": "for one call", "trace": "for the whole trace"}


def lay_out(
    comparison: ProfileComparison, sources: tuple[str, str], notes: Sequence[str], surface: Surface
) -> list[Line]:
    """The whole comparison."""
    lines: list[Line] = [[(" jaxobs profile, compared", "program")]]
    for name, source in zip("AB", sources, strict=True):
        lines += sentence(f"{name}  {source}", surface, "summary")
    for note in notes:
        lines += sentence(note, surface, "warn")
    lines.append(plain(""))
    lines += sentence(headline(comparison), surface, "bad" if _slower(comparison) else "good")
    lines += _table("Time", (comparison.window, comparison.device), comparison, surface, everything=True)
    for title, changes in (
        ("Idle", comparison.idle), ("Functions", comparison.functions), ("Scopes", comparison.scopes),
        ("Operations", comparison.operations), ("Source lines", comparison.sources),
    ):  # fmt: skip
        lines += _table(title, changes, comparison, surface)
    return [*lines, plain(""), *sentence(UNSAID, surface, "dim")]


def headline(comparison: ProfileComparison) -> str:
    """Returns one or two sentences: by how much B is slower, and the largest part of the difference."""
    each, window = _EACH[comparison.per], comparison.window
    if not _notable(window, comparison):
        return f"B takes as long as A {each}: {duration(window.after or 0.0)} and {duration(window.before or 0.0)}."
    slower = window.seconds > 0
    first = (
        f"B takes {duration(abs(window.seconds))} {'more' if slower else 'less'} than A {each}: "
        f"{duration(window.after or 0.0)} instead of {duration(window.before or 0.0)}."
    )
    found = [row for rows in (comparison.operations, comparison.idle) for row in rows if _notable(row, comparison)]
    same = [row for row in found if (row.seconds > 0) == slower]
    most = max(same, key=lambda row: abs(row.seconds), default=None)
    if most is None:
        return first
    what = f"`{most.name}`" if most.category is not None else f"Idle time because of `{most.name}`"
    return f"{first} {what} takes {duration(abs(most.seconds))} {'more' if slower else 'less'}."


def _slower(comparison: ProfileComparison) -> bool:
    return _notable(comparison.window, comparison) and comparison.window.seconds > 0


def _notable(change: Change, comparison: ProfileComparison) -> bool:
    whole = max(comparison.window.before or 0.0, comparison.window.after or 0.0)
    return abs(change.seconds) >= LEAST * whole > 0


def _table(
    title: str, changes: Sequence[Change], comparison: ProfileComparison, surface: Surface, *, everything: bool = False
) -> Iterator[Line]:
    notable = [each for each in changes if everything or _notable(each, comparison)]
    slower = [each for each in notable if each.seconds > 0 or everything]
    faster = [each for each in reversed(notable) if each.seconds <= 0 and not everything]
    shown = [*slower[:MOST_ROWS], *faster[: max(2, MOST_ROWS - len(slower))]]
    if not shown:
        return
    columns = [
        Column("", max(24, surface.width - 42)), Column("A", 10, right=True), Column("B", 10, right=True),
        Column("change", 11, right=True),
    ]  # fmt: skip
    yield from titled(title, _EACH[comparison.per], surface, columns)
    for part in shown:
        sign = "+" if part.seconds > 0 else "-"
        style = "bad" if part.seconds > 0 else "good"
        yield row(columns, [
            plain(surface.cut(part.name, columns[0].width), "name"),
            plain("" if part.before is None else duration(part.before), "number"),
            plain("" if part.after is None else duration(part.after), "number"),
            plain(f"{sign}{duration(abs(part.seconds))}", style if _notable(part, comparison) else "dim"),
        ])  # fmt: skip
    left = len(notable) - len(shown)
    if left > 0:
        yield plain(f" {left:,} more that changed: see --json", "dim")
