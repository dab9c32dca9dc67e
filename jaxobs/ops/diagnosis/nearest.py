"""Known incidents that read like this one: public threads, ranked with BM25 by the words of their logs.

`python -m benchmarks.incidents.nearest --write` makes `incidents.jsonl.gz` of the scenarios: a line for each, those of
healthy jobs included. So few are ranked here and not by a library, so that equal evidence gives an equal answer in
every installation.
"""

import functools
import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import islice
from typing import Any

from jaxobs.ops.diagnosis.evidence import (
    BEFORE,
    EVENT,
    FATAL,
    LAST,
    RAISED,
    SAID,
    Evidence,
    courses,
    had_ended,
    went_on,
)
from jaxobs.ops.diagnosis.result import KnownIncident

DATA = "incidents.jsonl.gz"
BASKETS = frozenset(("program_error", "failing_function", "process_finding"))
"""Causes that any exception shows: near incidents of these agree on nothing."""

_MOST_LINES, _MOST_OF_A_LINE = 1000, 600
_VOTERS = 10
"""Nearest incidents that say which cause is likely."""
_K1, _B = 1.2, 0.75
"""Parameters of BM25, as usual: how soon a word that is repeated counts no more, and how much the length counts."""
_LEAST_SCORE, _LEAST_OF_MORE, _LEAST_OF_ANOTHER = 0.08, 0.12, 0.25
"""Share of the best possible score below which an incident is no neighbour: of the nearest one, of further ones, and of
those of another cause than one that is named."""
_LIKELY_SCORE, _LIKELY_SHARE = 0.15, 0.5
"""Least score of the nearest incident, and least share of the votes; the benchmark says how often they are right."""

_VARIES = re.compile(r"\w+://\S+|/?[\w.-]*/[\w./-]+/|0x[0-9a-f]+|\b\d[\d.:,_-]*\b")
"""Addresses, folders and numbers."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{2,}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]{2,}")

Row = dict[str, Any]
"""A line of the data: `thread`, `causes`, `words`, and `what` and `cure` of a thread that can be shown."""
Near = Sequence[tuple[float, Row]]
Likely = tuple[str, float, tuple[KnownIncident, ...]]


def words(evidence: Evidence) -> Counter[str]:
    """Counts the words of lines that speak of trouble and of the last ones; those of what was raised count twice."""
    lines: dict[str, int] = {}
    shown = (each for each in evidence.of_kind(SAID, EVENT, LAST) if not each.name.startswith("unsaved:"))
    for each in islice(shown, _MOST_LINES):
        before = (line.partition(" ")[2] for line in each.data.get(BEFORE, "").split("\n"))
        for text in (each.text, *before):
            lines[text] = max(lines.get(text, 0), 1 + (each.name == RAISED))
    return Counter(word for line, weight in lines.items() for word in words_of(line) * weight)


def words_of(text: str) -> list[str]:
    """Returns the words of a text, and the parts of those that are made of several: `XlaRuntimeError`, `jax.numpy`."""
    found: list[str] = []
    for word in _WORD.findall(_VARIES.sub("/", text[:_MOST_OF_A_LINE])):
        parts = [part.lower() for part in _PART.findall(word) if len(part) > 2]
        found += [word.strip("._").lower(), *(parts if len(parts) > 1 else ())]
    return found


class Index:
    """Rows by their words, and by those of what is said of them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)
        self._holders: dict[str, list[tuple[int, float]]] = {}
        texts: list[Counter[str]] = [Counter(each["words"]) for each in self._rows]
        for text, each in zip(texts, self._rows, strict=True):
            text.update(words_of(each.get("what", "")) + words_of(each.get("cure", "")))
        mean = sum(text.total() for text in texts) / max(len(texts), 1)
        for number, text in enumerate(texts):
            scale = _K1 * (1 - _B + _B * text.total() / mean)
            for word, count in text.items():
                self._holders.setdefault(word, []).append((number, count * (_K1 + 1) / (count + scale)))

    def near(self, query: Mapping[str, int], without: str = "") -> Near:
        """Returns the rows that share a word, without those of a thread, by their share of the best possible score."""
        scores = [0.0] * len(self._rows)
        best = 0.0
        for word, count in sorted(query.items()):
            holders = self._holders.get(word, ())
            weight = (1 + math.log(count)) * math.log((1 + len(scores)) / (1 + len(holders)))
            best += weight * (_K1 + 1)
            for number, own in holders:
                scores[number] += weight * own
        found = [(score / best, row) for score, row in zip(scores, self._rows, strict=True) if score]
        return sorted((each for each in found if each[1]["thread"] != without), key=lambda each: -each[0])


@functools.cache
def shipped() -> Index:
    """Returns the index of what is shipped."""
    text = gzip.decompress((resources.files(__package__) / DATA).read_bytes()).decode()
    return Index(map(json.loads, text.splitlines()))


def known_incidents(evidence: Evidence, causes: Iterable[str] = ()) -> tuple[KnownIncident, ...]:
    """Returns up to three known incidents that read like the evidence, those of a cause that is named first."""
    return _incidents(chosen(shipped().near(words(evidence)), causes))


def likely_cause(evidence: Evidence, index: Index | None = None, without: str = "") -> Likely | None:
    """Returns the cause on which near incidents agree, with their agreement; None if they don't, or are not near.

    Only an error that ended something counts: one behind which the process went on, or came to its end, does not.
    """
    course = courses(evidence)
    over = (each for each in evidence.of_kind(SAID, LAST) if went_on(course, each) or had_ended(course, each))
    left = evidence.without(over)
    if not any(each.name in (RAISED, FATAL) for each in left.of_kind(SAID)):
        return None
    near = (index or shipped()).near(words(left), without)
    cause, share = max(sorted(votes(near).items()), key=lambda each: each[1], default=("", 0.0))
    if share < _LIKELY_SHARE or near[0][0] < _LIKELY_SCORE or cause in BASKETS:
        return None
    return cause, share, _incidents(chosen([each for each in near if cause in each[1]["causes"]], [cause]))


def votes(near: Near) -> dict[str, float]:
    """Returns for each cause its share of what the nearest rows say."""
    shares: dict[str, float] = {}
    total = sum(score**2 for score, _ in near[:_VOTERS])
    for score, row in near[:_VOTERS]:
        for cause in row["causes"]:
            shares[cause] = shares.get(cause, 0.0) + score**2 / total
    return shares


def chosen(near: Near, causes: Iterable[str] = ()) -> list[Row]:
    """Returns the nearest row of each cause, ranked by score and votes; of a named cause, as many as there are."""
    shares, named = votes(near), set(causes) - BASKETS
    least = _LEAST_OF_ANOTHER if named else _LEAST_SCORE
    found: list[Row] = []

    def rank(each: tuple[float, Row]) -> tuple[bool, float]:
        score, row = each
        return named.isdisjoint(row["causes"]), -score * (1 + sum(shares.get(cause, 0.0) for cause in row["causes"]))

    for score, row in sorted((each for each in near if "what" in each[1]), key=rank):
        is_new = score >= (max(least, _LEAST_OF_MORE) if found else least) and row["causes"] not in [
            other["causes"] for other in found
        ]
        if is_new or not named.isdisjoint(row["causes"]):
            found.append(row)
    return found[:3]


def _incidents(rows: Iterable[Row]) -> tuple[KnownIncident, ...]:
    return tuple(KnownIncident(thread=row["thread"], what=row["what"], cure=row["cure"]) for row in rows)
