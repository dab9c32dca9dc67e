"""A quick look whether a line can show anything: the texts of which every match of a pattern contains one.

Hundreds of expressions on each of a hundred thousand lines take minutes; looking for plain texts first takes seconds.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

LEAST = 3
"""Letters of a text that is worth looking for."""

_parser: Any = getattr(re, "_parser", None)


MOST_KNOWN = 4096
"""Lines that are remembered, without their numbers: a log has few kinds of lines."""

_DIGITS = re.compile(r"\d+")


@functools.lru_cache(maxsize=4)
def gate(patterns: tuple[str, ...]) -> Callable[[str], Sequence[int]]:
    """Which of the patterns a line can match, by their numbers."""
    by_text: dict[str, list[int]] = {}
    always: list[int] = []
    for number, pattern in enumerate(patterns):
        texts = needed(pattern)
        if texts is None:
            always.append(number)
        for text in texts or ():
            by_text.setdefault(text, []).append(number)
    with_digits = {text: each for text, each in by_text.items() if _DIGITS.search(text)}
    without = _by_piece({text: each for text, each in by_text.items() if text not in with_digits})
    known: dict[str, tuple[int, ...]] = {}

    def candidates(line: str) -> Sequence[int]:
        kind = _DIGITS.sub("0", line)
        found = known.get(kind)
        if found is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            there = without.keys() & {kind[place : place + LEAST] for place in range(len(kind))}
            found = known[kind] = tuple(number for piece in there for number in _present(without[piece], kind))
        if kind != line:
            found += _present(with_digits, line)
        return sorted({*found, *always}) if always or found else ()

    return candidates


def _by_piece(by_text: Mapping[str, list[int]]) -> dict[str, dict[str, list[int]]]:
    """Texts by a piece of each: a line has few of the pieces, and a set of its own tells which."""
    pieces = {text: [text[place : place + LEAST] for place in range(len(text) - LEAST + 1)] for text in by_text}
    common = Counter(piece for each in pieces.values() for piece in set(each))
    found: dict[str, dict[str, list[int]]] = {}
    for text, numbers in by_text.items():
        found.setdefault(min(pieces[text], key=common.__getitem__), {})[text] = numbers
    return found


def _present(by_text: Mapping[str, Sequence[int]], line: str) -> tuple[int, ...]:
    return tuple(number for text, numbers in by_text.items() if text in line for number in numbers)


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
