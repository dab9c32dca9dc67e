"""What is said of the faults: which is named, of which process, since when, and what is missing."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from jaxobs.base.links import runbook_url
from jaxobs.facts.events import timestamp
from jaxobs.ops.diagnosis import counters, kinds, result, tracebacks
from jaxobs.ops.diagnosis.cases import ONE_MESSAGE, Case, ancestors
from jaxobs.ops.diagnosis.evidence import (
    ALERT,
    LAST,
    LINE,
    NO_EXIT,
    RAISED,
    START,
    Courses,
    Evidence,
    Observation,
    clean,
    is_before,
)  # fmt: skip
from jaxobs.ops.diagnosis.knowledge import ENDED, IMPACTS
from jaxobs.ops.diagnosis.onsets import began
from jaxobs.ops.diagnosis.result import Cause, Change, Hypothesis, Quote

MOST_EVIDENCE = 5
"""Quotes of one hypothesis."""
_COMPARED = ("version:", "flag:", "commit:")
_MOST_CHANGES = 10
_MOST_NAMED = 6
"""Processes that nothing was given of."""
_OPEN_ENDED = (
    "it ends without an exit: the process was still running, or it was killed. If it no longer runs, give its log, and "
    "what the kernel or the scheduler says of it."
)
_SENTENCE = re.compile(r"(?<=[.?]) (?=[A-Z`])")
_BLAMED = re.compile(r"^ *The hosts? (?:that have bad TPUs )?are: ([\w.-]+)", re.MULTILINE)
"""The host that Megascale's digest of a hang takes for ill; another one has written it."""


def causes(
    named: Sequence[Case], standing: Mapping[str, Case], evidence: Evidence, course: Courses
) -> tuple[Cause, ...]:
    """What is named, each with its victims: a process that failed of another cause before is none."""
    found = [_cause(each, standing, evidence, course) for each in named]
    own = {
        cause.component: case.onset
        for cause, case in reversed([*zip(found, named, strict=True)]) if case.known.impact == ENDED
    }  # fmt: skip
    return tuple(
        replace(cause, victims=tuple(
            each for each in cause.victims if each not in own or is_before(own[each], case.onset) is not True
        ))
        for cause, case in zip(found, named, strict=True)
    )  # fmt: skip


def _cause(case: Case, standing: Mapping[str, Case], evidence: Evidence, course: Courses) -> Cause:
    followers = [each for each in standing.values() if case.id in ancestors(each, standing)]
    touched = [_whose(each, case.onset) for one in (case, *followers) for each in one.strong]
    shown = next((each for each in followers if each.id in case.known.located_by and each.onset.process), case)
    located = case if _process(case) else shown
    hosts = (each.data["host"] for each in case.strong if each.data.get("host"))
    component = _blamed(case) or _process(located) or next(hosts, case.onset.source)
    since = began(case.known, case.strong, case.weak, evidence, course)
    since = located.onset.time if since is None else since
    kind = kinds.found(case.id, case.strong)
    where = next((clean(each.data["where"]) for each in case.strong if each.data.get("where")), None)
    advice = [each.data["advice"] for each in case.strong if each.data.get("advice")][:1]
    of_kind = [kind[1]] if kind else []
    actions = [*of_kind, *advice] if kind and kind[0].replaces else [*advice, *of_kind]
    actions += _asked(case, where)
    general = [] if kind and (case.is_general or kind[0].replaces) else [case.known.fix]
    fixes = [*actions, *general]
    return Cause(
        id=case.id,
        title=(kind[0].title if kind else "") or case.known.title,
        component=component,
        where=where,
        confidence=case.confidence,
        first_action=(actions or _SENTENCE.split(case.known.fix))[0],
        evidence=_quotes((*case.strong, *case.weak), case),
        fix=" ".join(dict.fromkeys(each for each in fixes if each is case.known.fix or each not in case.known.fix)),
        runbook=runbook_url(case.known.runbook),
        onset=None if since is None else timestamp(since),
        impact=IMPACTS[case.impact],
        victims=tuple(sorted({each for each in touched if each and each != component}, key=_by_number)),
        consequences=tuple(each.id for each in followers),
    )


def _asked(case: Case, where: str | None) -> Iterator[str]:
    """Yields what the message of an exception asks for, and for one that no diagnosis knows where to look."""
    remedy = next((said for each in case.strong if each.name == RAISED and (said := tracebacks.remedy(each))), "")
    if remedy:
        yield f"The message says: {remedy.rstrip('.')}."
    if case.is_general and where:
        yield f"Look at {where}, the last line of the program's own code in the traceback."


def _process(case: Case) -> str:
    """The process in which it began; the one that a launcher names in the lines behind, if the first one names none."""
    onset = case.onset
    behind = (each for each in case.strong if each.source == onset.source and each.kind == onset.kind == LINE)
    near = (each.process for each in behind if each.process and each.place - onset.place <= ONE_MESSAGE)
    return onset.process or next(near, "")


def _blamed(case: Case) -> str:
    """The host that a digest of the states of all hosts names."""
    digests = (each.data.get("next", "") for each in case.strong if "Megascale detects a hang" in each.text)
    return next((found.group(1) for each in digests if (found := _BLAMED.search(each))), "")


def _whose(one: Observation, onset: Observation) -> str:
    """The process that it is about; where that has no name, the log, if that is another one."""
    return one.process or (one.source if one.kind == LINE and one.source != onset.source else "")


def _by_number(process: str) -> tuple[str, int, str]:
    name, _, number = process.rpartition(" ")
    return (name, int(number), "") if number.isdecimal() else (process, 0, number)


def hypothesis(case: Case, evidence: Evidence) -> Hypothesis:
    """What speaks for it, or against it, or why neither is known."""
    follows = f"it follows from {', '.join(case.explained_by)}" if case.explained_by else case.because
    for status, shown, because in (
        (result.REFUTED, case.against, "this rules it out"),
        (result.SUPPORTED, [*case.strong, *case.weak] if case.strong else [], follows),
        (result.SUPPORTED, case.weak, "other faults show the same"),
        (result.REFUTED, case.passed, "the process continued after this"),
    ):
        if shown:
            return Hypothesis(id=case.id, status=status, evidence=_quotes(shown, case), because=because)
    whole = [each for each in evidence.sources if each.kind in case.known.shown_by]
    if whole and all(each.is_whole for each in whole):
        said = ", ".join(each.name for each in whole[:MOST_EVIDENCE])
        return Hypothesis(id=case.id, status=result.REFUTED, because=f"it would show in {said}, and does not")
    return Hypothesis(id=case.id, status=result.NO_DATA)


def _quotes(observations: Iterable[Observation], case: Case) -> tuple[Quote, ...]:
    """The first of each that say the same."""
    different: dict[tuple[str, str, str], Observation] = {}
    shown = list(observations)
    # An alert says that something is wrong, and its cause is shown by the rest, if there is any.
    for each in [one for one in shown if one.kind != ALERT] or shown:
        different.setdefault((each.source, each.process, each.quoted), each)
    return tuple(
        Quote(
            source=each.source,
            place=each.place,
            time=None if each.time is None else timestamp(each.time),
            process=each.process or None,
            text=each.quoted,
            weight=case.weight(each),
        )
        for each in [*different.values()][:MOST_EVIDENCE]
    )


def changed(named: Sequence[Case], evidence: Evidence) -> tuple[Change, ...]:
    """Returns how each start of a process before the first cause differs from the start before it, the latest first."""
    found: list[tuple[float, Change]] = []
    begun: dict[str, tuple[str, Mapping[str, str]]] = {}
    for start in evidence.of_kind(START):
        told = {name: value for name, value in start.data.items() if name.startswith(_COMPARED)}
        late = bool(named) and is_before(start, named[0].onset) is False
        if not told or late or start.time is None:
            continue
        # A process tells its versions again once JAX has found its devices: that is the same start.
        pid, earlier = begun.get(start.process, ("", told))
        begun[start.process] = start.data.get("pid", ""), told
        for name in sorted({*told, *earlier}) if pid != start.data.get("pid", "") else ():
            before, after = earlier.get(name, ""), told.get(name, "")
            if before != after:
                what = name.partition(":")[2] or "commit"
                one = Change(
                    what=what, before=before, after=after, time=timestamp(start.time), process=start.process or None
                )  # fmt: skip
                found.append((start.time, one))
    return tuple(each for _, each in sorted(found, key=lambda each: -each[0])[:_MOST_CHANGES])


def missing(verdict: str, open_symptoms: Sequence[Case], cases: Iterable[Case], evidence: Evidence) -> Iterable[str]:
    """What could not be read, and what to collect."""
    found = [f"{each.kind} {each.name}: {each.problem}" for each in evidence.sources if each.problem is not None]
    found += [f"{each.kind} {each.name}: {note}" for each in evidence.sources for note in each.notes]
    if not evidence.sources:
        found.append("Give at least one source.")
    if verdict != result.CAUSE and (rest := _unseen(evidence)) is not None:
        found.append(rest)
    if verdict == result.NO_FAULT:
        open_ended = {each.source for each in evidence.of_kind(LAST) if each.text == NO_EXIT}
        logs = [each for each in evidence.sources if each.kind == "event-log" and each.name in open_ended]
        found += [f"{each.kind} {each.name}: {_OPEN_ENDED}" for each in logs]
    if verdict == result.INCONCLUSIVE:
        unnamed = [each for each in cases if each.because or each.suspected]
        found += [each.known.collect for each in (*open_symptoms, *unnamed) if each.known.collect]
    return dict.fromkeys(found)


def _unseen(evidence: Evidence) -> str | None:
    """The processes of a job that no source shows, where it is said how many there are."""
    places = evidence.metric(counters.PROCESS)
    if any(not each.process.startswith("process ") for each in places):
        return None  # A Prometheus has other names for them.
    counts = {each.data.get("count", "") for each in evidence.of_kind(START)}
    counts = (counts | {each.data.get("process_count", "") for each in places}) - {"", "1"}
    if len(counts) != 1 or not (text := counts.pop()).isdecimal():
        return None  # They say nothing, or are those of several jobs.
    seen = {each.process for each in evidence.observations if re.fullmatch(r"process \d+", each.process)}
    left, names = int(text) - len(seen), (f"process {each}" for each in range(int(text)))
    if left <= 0:
        return None
    shown = ", ".join(itertools.islice((each for each in names if each not in seen), _MOST_NAMED))
    more = f" and {left - _MOST_NAMED} more" if left > _MOST_NAMED else ""
    return f"Nothing was given of {shown}{more}: the job has {text} processes, and process 0 compares them."
