"""Known incidents that read like this one: public threads, ranked with BM25 by the words of their logs.

`incidents.jsonl.gz` holds the threads; `python -m benchmarks.incidents.nearest --write` makes it from the scenarios.
Seven hundred records need no library: forty lines rank them in milliseconds, in every installation alike.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jaxobs.ops.diagnosis.evidence import EVENT, FATAL, LAST, RAISED, SAID, Evidence, courses, had_ended, went_on
from jaxobs.ops.diagnosis.result import KnownIncident

DATA = "incidents.jsonl.gz"
MOST_NAMED = 3
BASKETS = frozenset(("program_error", "failing_function", "process_finding"))
"""Causes that any exception shows: near incidents of these agree on nothing."""

_MOST_OF_A_LINE = 600
_VOTERS = 10
"""Nearest incidents that say which cause is likely."""
_K1, _B = 1.2, 0.75
"""Parameters of BM25, as usual: how soon a word that is repeated counts no more, and how much the length counts."""
_LEAST_SCORE = 0.08
"""Share of the best score that is possible, below which an incident is no neighbour."""
_LIKELY_SCORE, _LIKELY_SHARE = 0.15, 0.4
"""Least score of the nearest incident and least share of the votes; benchmarks.incidents.nearest measures them."""

_PATH = re.compile(r"\w+://\S+|/?[\w.-]*/[\w./-]+/")
_NUMBER = re.compile(r"0x[0-9a-f]+|\b\d[\d.:,_-]*\b")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{2,}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]{2,}")


@dataclass(frozen=True, slots=True)
class Record:
    """A scenario made after a thread, or a healthy log, of which nothing is shown."""

    thread: str
    causes: frozenset[str]
    incident: KnownIncident | None
    words: Mapping[str, int]


Near = Sequence[tuple[float, Record]]
"""Records behind their scores, the nearest first."""
Likely = tuple[str, float, tuple[KnownIncident, ...]]
"""A cause, the share of the votes for it, and the known incidents that it rests on."""


def words(evidence: Evidence) -> Counter[str]:
    """Counts the words of lines that speak of trouble and of the last ones; those of what was raised count twice."""
    lines: dict[str, int] = {}
    for each in evidence.observations:
        if each.kind in (SAID, EVENT):
            lines.setdefault(_plain(each.text), 1 + (each.name == RAISED))
    for each in evidence.of_kind(LAST):
        before = (line.partition(" ")[2] for line in each.data.get("before", "").split("\n"))
        for text in (*before, each.text):
            lines.setdefault(_plain(text), 1)
    found: Counter[str] = Counter()
    for line, weight in lines.items():
        for word in words_of(line):
            found[word] += weight
    return found


def _plain(text: str) -> str:
    return _NUMBER.sub("#", _PATH.sub("/", text[:_MOST_OF_A_LINE]))


def words_of(text: str) -> list[str]:
    """Returns the words of a text, and the parts of those that are made of several: `XlaRuntimeError`, `jax.numpy`."""
    found: list[str] = []
    for word in _WORD.findall(text):
        parts = [part.lower() for part in _PART.findall(word) if len(part) > 2]
        found += [word.strip("._").lower(), *(parts if len(parts) > 1 else ())]
    return found


class Index:
    """Records by their words."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        texts = [Counter(each.words) for each in self.records]
        for text, each in zip(texts, self.records, strict=True):
            if each.incident is not None:
                text.update(words_of(f"{each.incident.what} {each.incident.cure}"))
        lengths = [sum(text.values()) for text in texts]
        mean = sum(lengths) / max(len(lengths), 1)
        self._found: dict[str, list[tuple[int, float]]] = {}
        for number, text in enumerate(texts):
            for word, count in text.items():
                weight = count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * lengths[number] / mean))
                self._found.setdefault(word, []).append((number, weight))

    def near(self, query: Mapping[str, int], without: str = "") -> list[tuple[float, Record]]:
        """Returns the records by their score, a share of the best possible one, without those of one thread."""
        scores = [0.0] * len(self.records)
        best = 1e-9
        for word, count in sorted(query.items()):
            holders = self._found.get(word, ())
            weight = (1 + math.log(count)) * math.log((1 + len(scores)) / (1 + len(holders)))
            best += weight * (_K1 + 1)
            for number, own in holders:
                scores[number] += weight * own
        found = [
            (score / best, each) for score, each in zip(scores, self.records, strict=True)
            if score and (not without or each.thread != without)
        ]  # fmt: skip
        return sorted(found, key=lambda each: -each[0])


@functools.cache
def shipped() -> Index:
    """Returns the index of what is shipped."""
    text = gzip.decompress((resources.files(__package__) / DATA).read_bytes()).decode()
    return Index(map(record, map(json.loads, text.splitlines())))


def record(row: dict[str, Any]) -> Record:
    """Returns a line of the data as a record."""
    incident = KnownIncident(thread=row["thread"], what=row["what"], cure=row["cure"]) if row.get("what") else None
    return Record(row["thread"], frozenset(row["causes"]), incident, row["words"])


def known_incidents(evidence: Evidence, causes: Sequence[str] = ()) -> tuple[KnownIncident, ...]:
    """Returns up to three known incidents that read like the evidence, those of a cause that is named first."""
    return _incidents(chosen(shipped().near(words(evidence)), causes))


def likely_cause(evidence: Evidence, index: Index | None = None, without: str = "") -> Likely | None:
    """Returns the cause on which near incidents agree, with their agreement; None if they don't, or are not near.

    Only an error that ended something counts: one behind which the process went on, or came to its end, does not.
    """
    course = courses(evidence)
    survived = [
        each for each in evidence.of_kind(SAID, LAST) if went_on(course, each) or had_ended(course, each)
    ]  # fmt: skip
    left = evidence.without(survived)
    if not any(each.name in (RAISED, FATAL) for each in left.of_kind(SAID)):
        return None
    near = (index or shipped()).near(words(left), without)
    shares = votes(near)
    cause, share = max(sorted(shares.items()), key=lambda each: each[1], default=("", 0.0))
    if not near or near[0][0] < _LIKELY_SCORE or share < _LIKELY_SHARE or cause in BASKETS:
        return None
    return cause, share, _incidents(chosen([each for each in near if cause in each[1].causes], [cause]))


def _incidents(records: Iterable[Record]) -> tuple[KnownIncident, ...]:
    return tuple(each.incident for each in records if each.incident is not None)


def votes(near: Near) -> dict[str, float]:
    """Returns for each cause its share of what the nearest records say."""
    shares: dict[str, float] = {}
    total = sum(score**2 for score, _ in near[:_VOTERS])
    for score, each in near[:_VOTERS]:
        for cause in sorted(each.causes):
            shares[cause] = shares.get(cause, 0.0) + score**2 / total
    return shares


def chosen(near: Near, causes: Sequence[str] = ()) -> list[Record]:
    """Returns the nearest of each cause, ranked by score and votes; of a cause that is named, as many as there are."""
    shares, named = votes(near), frozenset(causes) - BASKETS
    ranked = sorted(
        (each for each in near if each[1].incident is not None and each[0] >= _LEAST_SCORE),
        key=lambda each: (
            not named & each[1].causes,
            -each[0] * (1 + sum(shares.get(one, 0.0) for one in each[1].causes)),
        ),
    )
    found: list[Record] = []
    for _, each in ranked:
        if named & each.causes or all(each.causes != other.causes for other in found):
            found.append(each)
    return found[:MOST_NAMED]
