"""Values as short texts; and two texts cut to where they differ, which differ whatever happens."""

from __future__ import annotations

import os
import re
from typing import Any

MOST_REPR = 120
_SHORT = 80


def shortened(text: str) -> str:
    """`text` on one line, cut to 120 characters."""
    return cut(" ".join(text.split()))


def difference(before: str, after: str) -> tuple[str, str]:
    """Returns the parts in which two texts differ, each with a little of what is before it; the whole if short."""
    plain = " ".join(before.split()), " ".join(after.split())
    if plain[0] != plain[1]:
        before, after = plain
    else:  # they differ in blanks alone, which are shown as Python writes them
        before, after = repr(before)[1:-1], repr(after)[1:-1]
    if max(len(before), len(after)) <= _SHORT:
        return before, after
    same = len(os.path.commonprefix([before, after]))
    tail = len(os.path.commonprefix([before[same:][::-1], after[same:][::-1]]))
    # What it is called stands before the value: `('deterministic', Static(value=False))`.
    cuts = [match.end() for match in re.finditer(r"[\s,(\[{]", before[:same]) if match.end() >= same - 60]
    start = max((cut for cut in cuts if cut <= same - 20), default=max(0, same - 60))

    def piece(text: str) -> str:
        end = re.compile(r"[\s,)\]}]|$").search(text, max(same, len(text) - tail))
        return cut(text[start : end.start() if end else len(text)])

    return piece(before), piece(after)


def cut(text: str) -> str:
    """To what a reason has room for; blanks stay as they are."""
    return text if len(text) <= MOST_REPR else text[: MOST_REPR - 1] + "…"


def unlike(before: str, after: str, old: Any, new: Any) -> tuple[str, str]:
    """Returns the two as they are where they differ; else the second says in the values do, as far as that is known."""
    if before != after:
        return before, after
    if type(old) is type(new):
        return before, f"{after} (another object that looks the same but is not equal)"
    return before, f"{after} ({of_another_class(type(old), type(new))})"


def of_another_class(old: Any, new: Any) -> str:
    """Returns which class it is, if two have one name: in two modules, or in a notebook whose cell has run again."""
    names = [f"{getattr(kind, '__module__', '?')}.{getattr(kind, '__qualname__', kind)}" for kind in (old, new)]
    return f"{names[1]}, not {names[0]}" if names[0] != names[1] else f"another class of the same name, {names[1]}"
