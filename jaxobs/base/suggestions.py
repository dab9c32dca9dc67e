"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 100


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean `x`? `` for the name that is nearest, with a space behind it; empty if all are far.

    A name that was cut short (`--peak`) counts as near, however much of it is missing.
    """
    name = name[:_LONGEST]  # it may come from anywhere, and the comparison takes its length squared
    names = sorted(known, key=len)
    longer = [each for each in names if each.startswith(name)] if len(name.lstrip("-")) > 1 else []
    close = longer or difflib.get_close_matches(name, names, 1)
    return f"Did you mean `{close[0]}`? " if close else ""
