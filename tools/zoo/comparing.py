"""Compares what jaxobs says of a program with what is expected, and lists each difference under a key."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.facts.verdicts import VERDICTS
from jaxobs.findings.compilations import eager_initialization
from jaxobs.findings.parts import STARTING
from tools.sentences import refuted
from tools.zoo.entry import Entry, Finding
from tools.zoo.running import Outcome, Pair
from tools.zoo.stopwatch import GROUPS

BY_COST = frozenset({"costly_recompilations", "host_sync", "long_compilation", "no_persistent_cache"})
"""Reported from so many seconds or such a share on, by the machine: whether they come is no difference."""
TOLERANCE = 0.05
"""Share of the process's time by which a category may differ from the stopwatch."""
LOOPS = ("step", "eval")
STALLED_SECONDS = 0.4
"""A turn of a loop that stalls, as on a machine that others use too, is `idle` for jaxobs, and the stopwatch sees no
turns: so much of what jaxobs calls idle, and no more, may be missing from a loop."""


PEAK_FLOPS = "JAXOBS_PEAK_FLOPS"
"""Setting of programs that must have an MFU."""


@dataclass(frozen=True)
class Said:
    """Statements of jaxobs about a program, in the terms of an `Entry`."""

    causes: Mapping[str, Mapping[str, int]]
    """Compilations by function and cause, without eager operations."""
    eager: int
    """Eager operations that were compiled."""
    findings: tuple[Finding, ...]
    loops: tuple[tuple[str, int | None], ...]
    """Names, and steps where all were seen: of very many short ones in a second some are not."""
    mfu: bool
    """Whether a loop has an MFU."""
    seconds: Mapping[str, float]
    """By the stopwatch's categories."""
    idle: float
    """Seconds among the other ones in which the process rested."""
    nonfinite: bool
    verdict: str
    """The worst of all processes; empty if it cannot be read."""

    def loop(self, function: str) -> tuple[str, int | None] | None:
        """Returns the loop of the function with this last part of a name."""
        return next((each for each in self.loops if _last(each[0]) == function), None)


@dataclass(frozen=True)
class Result:
    """Outcome of a program."""

    said: Said
    differences: Mapping[str, str]
    """Differences by key."""
    new: tuple[str, ...]
    """Keys that `Entry.differs` does not know, ..."""
    gone: tuple[str, ...]
    """... and keys there that no longer differ."""
    explained: str = ""
    """As `Outcome.explained`."""

    @property
    def differs(self) -> bool:
        """Whether something is other than the entry says."""
        return bool(self.new or self.gone)


def in_both(first: Result, second: Result) -> Result:
    """Returns the second of two runs, with only those new and gone keys that both have."""
    return dataclasses.replace(
        second,
        new=tuple(key for key in second.new if key in first.new),
        gone=tuple(key for key in second.gone if key in first.gone),
    )


def _by_seconds(key: str) -> bool:
    return key.startswith("time ") or key == f"finding {eager_initialization.NAME}"


def compare(entry: Entry, pair: Pair, untrue: Iterable[str] = ()) -> Result:
    """All differences of a program; `untrue` are those from what a page shows of it."""
    said = _said(pair.watched)
    found: dict[str, str] = {}
    for key, text in (
        *_behaviour(entry, pair),
        *_counts(pair),
        *_causes(entry, said),
        *_findings(entry, said),
        *_loop(entry, said),
        *_verdicts(entry, pair.watched, said),
        *_times(entry, pair.watched, said),
        *_sentences(pair.watched),
        *(("page", each) for each in untrue),
    ):
        found[key] = f"{found[key]}; {text}" if key in found else text
    new = tuple(each for each in found if each not in entry.differs)
    # What is known to differ by seconds may lie on either side of its bound.
    gone = tuple(each for each in entry.differs if each not in found and not _by_seconds(each))
    return Result(said, found, new, gone, pair.watched[0].explained)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _said(outcomes: tuple[Outcome, ...]) -> Said:
    """Returns the statements of process 0, and the findings of all processes."""
    causes: dict[str, Counter[str]] = {}
    eager = 0
    for event in _of_kind(outcomes[:1], "compilation"):
        if event["eager"]:
            eager += 1
        else:
            causes.setdefault(_last(event["function"]), Counter())[event["cause"]] += 1
    latest = {event["id"]: event for event in _of_kind(outcomes, "finding")}
    findings = [
        Finding(event["finding"], "" if event["function"] == "<eager>" else _last(event["function"] or ""))
        for event in latest.values()
        if "This is explained by" not in event["summary"]
    ]
    ends = [event.get("standing") or {} for event in _of_kind(outcomes[:1], "exit")]
    standing = ends[-1] if ends else {}
    charged = (standing.get("wall") or {}).get("seconds") or {}
    seconds = {name: sum(charged.get(each, 0.0) for each in group) for name, group in GROUPS.items()}
    loops = (
        (each["name"], each["steps"] if each.get("steps_counted", True) else None)
        for each in standing.get("loops") or ()
    )
    return Said(
        causes=causes, eager=eager, findings=tuple(sorted(findings, key=str)), loops=tuple(loops),
        mfu=any(each.get("mfu") for each in standing.get("loops") or ()),
        seconds=seconds | {"other": sum(charged.values()) - sum(seconds.values())}, idle=charged.get("idle", 0.0),
        nonfinite=any(True for _ in _of_kind(outcomes, "nonfinite")),
        verdict=min(filter(None, (each.verdict for each in outcomes)), key=VERDICTS.index, default=""),
    )  # fmt: skip


def _of_kind(outcomes: tuple[Outcome, ...], kind: str) -> Iterator[dict[str, Any]]:
    return (event for each in outcomes for event in each.events if event["event"] == kind)


# ------------------------------------------------------------------------------------------- differences


def _behaviour(entry: Entry, pair: Pair) -> Iterator[tuple[str, str]]:
    for plain, watched in zip(pair.plain, pair.watched, strict=True):
        if plain.code != 0:
            yield "program", f"it ends with {plain.code} by itself: {plain.errors[-1500:]}"
        same = plain.out == watched.out if entry.marked else _lines(plain.out) == _lines(watched.out)
        if plain.code != watched.code or not same:
            yield "output", f"exit code {plain.code} -> {watched.code}, {_first_difference(plain.out, watched.out)}"
        more = Counter(_lines(watched.errors)) - Counter(_lines(plain.errors))
        if not entry.marked:  # What a project logs of its threads differs from run to run.
            more = Counter(line for line in more if "jaxobs" in line)
        if more:
            yield "noise", f"on stderr: {'; '.join(more)[:1500]}"
        errors = re.findall(r"^jaxobs_internal_errors_total\{.*\} [1-9].*$", watched.metrics, re.MULTILINE)
        if errors:
            yield "internal errors", "; ".join(errors)


def _lines(text: str) -> list[str]:
    """Without what differs from run to run: times, addresses, process ids."""
    return [re.sub(r"0x[0-9a-f]+|\d[\d.]*(?:e[+-]?\d+)?", "N", line) for line in text.splitlines()]


def _first_difference(before: str, after: str) -> str:
    pairs = zip([*before.splitlines(), ""], [*after.splitlines(), ""], strict=False)
    return next((f"`{a}` -> `{b}`" for a, b in pairs if a != b), "the same lines")


def _counts(pair: Pair) -> Iterator[tuple[str, str]]:
    for plain, watched in zip(pair.plain, pair.watched, strict=True):
        told = sum(1 for _ in _of_kind((watched,), "compilation"))
        if not plain.programs == watched.programs == told:
            yield "count", f"{plain.programs} programs without jaxobs, {watched.programs} with it, {told} by jaxobs"


def _causes(entry: Entry, said: Said) -> Iterator[tuple[str, str]]:
    for function, expected in entry.causes.items():
        told = dict(said.causes.get(function, {}))
        if told != dict(expected):
            yield f"causes {function}", f"expected {_counted(expected)}, told {_counted(told)}"
    for function, causes in said.causes.items():
        again = {cause: count for cause, count in causes.items() if cause != "first_call"}
        if function not in entry.causes and again:
            yield f"causes {function}", f"expected first calls only, told {_counted(causes)}"


def _counted(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{cause} {count}" for cause, count in sorted(causes.items())) or "nothing"


def _findings(entry: Entry, said: Said) -> Iterator[tuple[str, str]]:
    anywhere = {each.id for each in entry.findings if not each.function}
    told = Counter(
        Finding(each.id) if each.id in anywhere else each for each in said.findings if each.id not in BY_COST
    )
    expected = Counter(each for each in entry.findings if each.id not in BY_COST)
    missing, more = expected - told, told - expected
    for each, number in (*missing.items(), *more.items()):
        word = "not told" if each in missing else "not expected"
        times = f" ({number} times)" if number > 1 else ""
        yield f"finding {shown(each)}", f"{word}{times}"
    if entry.nonfinite != said.nonfinite:
        yield "nonfinite", "not told" if entry.nonfinite else "not expected"


def shown(finding: Finding) -> str:
    """A finding in a few words."""
    return f"{finding.id} of {finding.function}" if finding.function else finding.id


def _loop(entry: Entry, said: Said) -> Iterator[tuple[str, str]]:
    if entry.loop is None:
        if said.loops:
            yield "loop", f"expected none, told {said.loops}"
        return
    if PEAK_FLOPS in entry.variables and not said.mfu:
        yield "loop", "expected an MFU, told none"
    name, steps = said.loop(entry.loop.function) or ("", 0)
    counted = steps is None or abs(steps - entry.loop.steps) <= entry.loop.within
    if _last(name) != entry.loop.function or not counted:
        yield "loop", f"expected {entry.loop.function} with {entry.loop.steps} steps, told {said.loops}"


def _verdicts(entry: Entry, watched: tuple[Outcome, ...], said: Said) -> Iterator[tuple[str, str]]:
    # On a machine that needs so long for imports, any start is one of which too little is known.
    if entry.verdict not in ("", said.verdict) and watched[0].seconds.get("other", 0.0) < STARTING:
        yield "verdict", f"expected {entry.verdict}, told {said.verdict or 'none'}"


def _times(entry: Entry, watched: tuple[Outcome, ...], said: Said) -> Iterator[tuple[str, str]]:
    stopwatch = watched[0].seconds
    total = sum(stopwatch.values())
    for category, told in said.seconds.items():
        if not entry.marked and category != "compile":
            continue
        measured = stopwatch.get(category, 0.0)
        stalled = min(said.idle, STALLED_SECONDS)
        less, more = (stalled if category in LOOPS else 0.0), (stalled if category == "other" else 0.0)
        bound = TOLERANCE * total
        if not -(bound + less) <= told - measured <= bound + more:
            yield f"time {category}", f"{measured:.2f} s by the stopwatch, {told:.2f} s by jaxobs, of {total:.2f} s"


def _sentences(watched: tuple[Outcome, ...]) -> Iterator[tuple[str, str]]:
    for outcome in watched:
        for event in outcome.events:
            for objection in refuted(event):
                yield "sentences", f"{objection}: {event.get('reason') or event.get('summary')}"
