"""A quick look whether a line can show anything: the texts of which every match of a pattern contains one.

A hundred expressions on each of a million lines take minutes; looking for plain texts first takes seconds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

LEAST = 3
"""Letters of a text that is worth looking for."""

_parser: Any = getattr(re, "_parser", None)


@functools.lru_cache(maxsize=4)
def gate(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a line can match one of the patterns; true where that is not known."""
    found = [needed(each) for each in patterns]
    if any(each is None for each in found):
        return lambda line: True
    texts = sorted({text for each in found if each is not None for text in each}, key=len)
    kept: list[str] = []
    for text in texts:
        if not any(shorter in text for shorter in kept):
            kept.append(text)
    search = re.compile(_tree(kept)).search
    return lambda line: search(line) is not None


def _tree(texts: Sequence[str]) -> str:
    """An expression for any of them that looks at each letter of a line once."""
    by_letter: dict[str, list[str]] = {}
    for text in texts:
        by_letter.setdefault(text[0], []).append(text[1:])
    branches = [
        re.escape(letter) + (_tree(rest) if all(rest) else "") for letter, rest in sorted(by_letter.items())
    ]  # fmt: skip
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def needed(pattern: str) -> frozenset[str] | None:
    """Texts of which each match contains at least one; None if none are known."""
    if _parser is None:
        return None
    try:
        return _of_sequence(_parser.parse(pattern))
    except (AttributeError, TypeError, ValueError, IndexError):
        return None  # Python's parser of expressions is its own affair, and may change.


def _of_sequence(sequence: Iterable[Any]) -> frozenset[str] | None:
    candidates: list[frozenset[str]] = []
    run = ""
    for operator, value in sequence:
        name = str(operator)
        if name == "LITERAL":
            run += chr(value)
            continue
        candidates.append(frozenset([run]))
        run = ""
        inner = _of_part(name, value)
        if inner is not None:
            candidates.append(inner)
    candidates.append(frozenset([run]))
    good = [each for each in candidates if each and min(map(len, each)) >= LEAST]
    return max(good, key=lambda each: (min(map(len, each)), -len(each)), default=None)


def _of_part(name: str, value: Any) -> frozenset[str] | None:
    if name == "SUBPATTERN":
        return _of_sequence(value[-1])
    if name == "BRANCH":
        branches = [_of_sequence(each) for each in value[1]]
        known = [each for each in branches if each is not None]
        return frozenset().union(*known) if len(known) == len(branches) else None
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[0] >= 1:
        return _of_sequence(value[2])
    return None
