"""`cell [5], line 3` for `/tmp/ipykernel_4711/1234567.py:3`, which is what a cell's code calls itself."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from jaxobs.views.notebook.blocks import Places, as_they_are


def in_cells(numbers: Mapping[str, int]) -> Places:
    """Rewrites what is in a notebook's cells, given their numbers by the file names of their code."""
    # Some sentences show the last one or two parts of a path only.
    known = {short: number for name, number in numbers.items() for short in _ends(name)}
    if not known:
        return as_they_are
    names = "|".join(re.escape(each) for each in sorted(known, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w/.-])({names})(?::(\d+))?(?!\w)")

    def written(found: re.Match[str]) -> str:
        line = f", line {found[2]}" if found[2] else ""
        return f"cell [{known[found[1]]}]{line}"

    return lambda text: pattern.sub(written, text)


def _ends(name: str) -> list[str]:
    folder, base = os.path.split(name)
    return [name, f"{os.path.basename(folder)}/{base}", base] if folder else [name]
