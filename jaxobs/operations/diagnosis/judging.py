"""From evidence to a verdict: which faults have signs, which of them follow from others, and which can be named.

Nothing but the evidence enters: no clock, no file, no order of input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxobs.base.links import runbook_url
from jaxobs.facts.events import timestamp
from jaxobs.operations.diagnosis import result
from jaxobs.operations.diagnosis.evidence import (
    ALERT,
    EVENT,
    LAST,
    LINE,
    METRIC,
    RAISED,
    Courses,
    Evidence,
    Observation,
    courses,
    had_ended,
    is_before,
    outlived,
    unseen,
    went_on,
)
from jaxobs.operations.diagnosis.knowledge import ANY_END, CAUSE, ENDED, IMPACTS, SYMPTOM, Knowledge
from jaxobs.operations.diagnosis.onsets import began
from jaxobs.operations.diagnosis.result import Cause, Diagnosis, Hypothesis, Quote

MOST_EVIDENCE = 5
"""Quotes of one hypothesis."""
MOST_OF_A_MESSAGE = 12
"""Lines of the message of an exception."""
UNKNOWN = 3
"""How general a fault is that any exception shows."""
ONE_MESSAGE = 3
"""Lines within which a cause may come behind its effect: several layers tell of one event, each in its time."""
_BLAMED = re.compile(r"^ *The hosts? (?:that have bad TPUs )?are: ([\w.-]+)", re.MULTILINE)
"""The host that Megascale's digest of a hang takes for ill; another one has written it."""
ONE_EVENT = 60.0
"""Seconds within which two faults that look alike are taken for explanations of one event."""


@dataclass(slots=True)
class _Case:
    """What speaks for one fault, and what became of it."""

    id: str
    known: Knowledge
    strong: list[Observation] = field(default_factory=list)
    weak: list[Observation] = field(default_factory=list)
    passed: list[Observation] = field(default_factory=list)
    """Signs after which the process went on."""
    ordinary: list[Observation] = field(default_factory=list)
    """What is no sign of it in view of the rest."""
    against: list[Observation] = field(default_factory=list)
    explained_by: list[str] = field(default_factory=list)
    because: str = ""

    @property
    def onset(self) -> Observation:
        return self.strong[0]

    @property
    def stands(self) -> bool:
        return bool(self.strong) and not self.against


def judge(evidence: Evidence, known: Mapping[str, Knowledge]) -> Diagnosis:
    """What happened, as far as the evidence shows it."""
    course = courses(evidence)
    cases = {name: _case(name, each, evidence, course) for name, each in sorted(known.items())}
    _give_way(cases)
    for case in cases.values():
        _rule_out(case, evidence)
    standing = {name: case for name, case in cases.items() if case.stands}
    _explain(standing)
    roots = [each for each in standing.values() if each.known.role == CAUSE and not each.explained_by]
    named = _without_rivals(roots, standing)
    open_symptoms = [
        each for each in standing.values() if not _reaches(each, named, standing) and each.known.role == SYMPTOM
    ]
    worst = min((_impact(each) for each in open_symptoms), default=len(IMPACTS))
    for each in [each for each in named if _impact(each) > worst]:
        named.remove(each)
        each.because = "it does not explain the worst that happened"
    named.sort(key=lambda each: (_impact(each), each.onset.order, each.id))
    unread = [each for each in evidence.sources if each.problem is not None]
    undecided = bool(open_symptoms) or len(named) < len(roots) or any(_suspected(each) for each in cases.values())
    verdict = (
        result.CAUSE if named
        else result.INCONCLUSIVE if undecided or unread or not evidence.sources
        else result.NO_FAULT
    )  # fmt: skip
    return Diagnosis(
        verdict=verdict,
        causes=_causes(named, standing, evidence, course),
        hypotheses=tuple(_hypothesis(each, evidence) for each in cases.values()),
        missing=tuple(_missing(verdict, open_symptoms, cases.values(), evidence)),
    )


# ------------------------------------------------------------------------------------------------- what speaks for it


def _case(name: str, known: Knowledge, evidence: Evidence, course: Courses) -> _Case:
    case = _Case(name, known)
    for each in evidence.observations:
        if each.kind not in _SHOWING:
            continue
        signs = [sign for sign in known.signs if sign.shows(each)]
        if not signs:
            continue
        if known.ordinary is not None and known.ordinary(evidence, each):
            case.ordinary.append(each)
            continue
        passes = all(sign.passes for sign in signs) and each.data.get("uncaught") != "yes"
        is_weak = all(sign.weak for sign in signs)
        at_the_end = ((passes and known.role == SYMPTOM) or is_weak) and had_ended(course, each)
        if at_the_end or (passes and went_on(course, each)) or (known.impact == ENDED and outlived(course, each)):
            case.passed.append(each)
        elif not is_weak:
            case.strong.append(each)
        else:
            case.weak.append(each)
    if known.narrow is not None and case.strong:
        kept = known.narrow(evidence, case.strong)
        left = [each for each in case.strong if each not in kept]
        case.strong = [each for each in case.strong if each in kept]
        case.weak += [each for each in left if any(sign.weak and sign.shows(each) for sign in known.signs)]
    return case


_SHOWING = {LINE, EVENT, METRIC, ALERT, LAST}
_CHAINED = re.compile(
    r"^(?:During handling of the above exception|The above exception was the direct cause)", re.MULTILINE
)
"""Between two exceptions, of which the second one was raised for the first one, or while it was handled."""


def _give_way(cases: Mapping[str, _Case]) -> None:
    """A general fault keeps only what no special one shows, nor the lines with which its message goes on."""
    levels: dict[int, int] = {}
    for case in cases.values():
        for each in (*case.strong, *case.passed, *case.ordinary):
            levels[id(each)] = min(case.known.general, levels.get(id(each), case.known.general))
    said: dict[tuple[object, ...], list[Observation]] = {}
    for case in cases.values():
        for each in case.strong if case.known.role == CAUSE else ():
            if each.kind == LINE and each.name != RAISED:
                said.setdefault((each.source, each.process, each.time), []).append(each)
    level = {id(each): _level(each, said, levels) for case in cases.values() for each in case.strong}
    handled = _handled(cases, level)
    for case in cases.values():
        case.strong = [
            each
            for each in case.strong
            if level[id(each)] >= case.known.general and not (case.known.general == UNKNOWN and id(each) in handled)
        ]


def _level(
    one: Observation, said: Mapping[tuple[object, ...], Sequence[Observation]], levels: Mapping[int, int]
) -> int:
    """How general the most special fault is that a line shows, or the lines with which its message goes on."""
    level = levels[id(one)]
    if one.name != RAISED:
        return level
    for each in said.get((one.source, one.process, one.time), ()):
        if 0 < each.place - one.place <= MOST_OF_A_MESSAGE:
            level = min(level, levels[id(each)])
    return level


def _handled(cases: Mapping[str, _Case], level: Mapping[int, int]) -> set[int]:
    """Exceptions that the program caught, and then raised one of which more is known."""
    raised: dict[tuple[str, str], dict[int, tuple[Observation, bool]]] = {}
    for case in cases.values():
        for each in case.strong if case.known.role == CAUSE else ():
            if each.name == RAISED:
                own = raised.setdefault((each.source, each.process), {})
                is_known = case.known.general < UNKNOWN and level[id(each)] >= case.known.general
                own[each.place] = each, is_known or (each.place in own and own[each.place][1])
    found = set()
    for own in raised.values():
        is_known = False
        for _, (each, itself) in sorted(own.items(), reverse=True):
            is_known = itself or (is_known and _CHAINED.search(each.data.get("next", "")) is not None)
            if is_known and not itself:
                found.add(id(each))
    return found


def _rule_out(case: _Case, evidence: Evidence) -> None:
    if not case.known.refuted_by:
        return
    found = [
        each for each in evidence.observations if any(sign.shows(each) for sign in case.known.refuted_by)
    ]  # fmt: skip
    last = case.strong[-1] if case.strong else None
    case.against = [each for each in found if last is None or is_before(each, last) is not True]


# --------------------------------------------------------------------------------------------- what follows from what


def _explain(standing: Mapping[str, _Case]) -> None:
    """Marks each fault with those that brought it about; never in circles."""
    for case in standing.values():
        for other in standing.values():
            if other is not case and _brings(other, case) and case.id not in _ancestors(other, standing):
                case.explained_by.append(other.id)


def _brings(cause: _Case, effect: _Case) -> bool:
    """Whether the one can have brought the other about: by its nature, and in time."""
    if cause.id in effect.known.follows and _told_at_once(effect.onset, cause.onset):
        # Where each can follow from the other, one message with both tells of the cause.
        return not (effect.known.role == CAUSE != cause.known.role and effect.id in cause.known.follows)
    if is_before(effect.onset, cause.onset) is True:
        return False
    if cause.id in effect.known.follows:
        return True
    if _impact(cause) != IMPACTS.index(ENDED) or cause.known.role != CAUSE:
        return False
    # Others may report a process that ended under its own number. An error of their own is a different matter.
    elsewhere = cause.onset.process != effect.onset.process or not effect.onset.process
    by_others = ANY_END in effect.known.follows and (effect.known.role == SYMPTOM or elsewhere)
    is_special = effect.known.general > cause.known.general and effect.id not in cause.known.follows
    return by_others or (elsewhere and is_special)


def _told_at_once(one: Observation, other: Observation) -> bool:
    """Whether two lines of a log come close behind each other."""
    near = one.kind == other.kind == LINE and abs(one.place - other.place) <= ONE_MESSAGE
    return near and (one.source, one.process) == (other.source, other.process) and not _apart(one, other)


def _ancestors(case: _Case, standing: Mapping[str, _Case]) -> set[str]:
    found: set[str] = set()
    left = list(case.explained_by)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += standing[name].explained_by
    return found


def _reaches(case: _Case, named: Sequence[_Case], standing: Mapping[str, _Case]) -> bool:
    """Whether a named cause explains it."""
    return bool(_ancestors(case, standing) & {each.id for each in named})


def _without_rivals(roots: Sequence[_Case], standing: Mapping[str, _Case]) -> list[_Case]:
    """Those that have more for them than the faults that look alike."""
    named = []
    for case in roots:
        rivals = [standing[each] for each in case.known.rivals if each in standing and standing[each].strong]
        equal = [
            each
            for each in rivals
            if each.known.role == CAUSE
            and _weight(each) >= _weight(case)
            and not _apart(case.onset, each.onset)
            and each.id not in case.explained_by
            and case.id not in each.explained_by
        ]
        if equal:
            case.because = f"as much speaks for {', '.join(each.id for each in equal)}"
        else:
            named.append(case)
    return named


def _apart(one: Observation, other: Observation) -> bool:
    """Whether two signs cannot be about one event."""
    return one.time is not None and other.time is not None and abs(one.time - other.time) > ONE_EVENT


def _weight(case: _Case) -> int:
    """How many different things speak for it."""
    return 2 * len({(each.kind, each.name, each.text[:60]) for each in case.strong}) + bool(case.weak)


def _impact(case: _Case) -> int:
    """How bad it is: an exception that nothing caught ends a process, whatever it is about."""
    raised = case.strong and case.onset.name == RAISED and "caught" not in case.onset.data
    return IMPACTS.index(ENDED if raised else case.known.impact)


def _suspected(case: _Case) -> bool:
    """Whether something speaks for it that other faults show as well, and nothing against it."""
    return bool(case.weak) and not case.strong and not case.against


# -------------------------------------------------------------------------------------------------------- what is said


def _causes(
    named: Sequence[_Case], standing: Mapping[str, _Case], evidence: Evidence, course: Courses
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


def _cause(case: _Case, standing: Mapping[str, _Case], evidence: Evidence, course: Courses) -> Cause:
    followers = [each for each in standing.values() if case.id in _ancestors(each, standing)]
    touched = [_whose(each, case.onset) for one in (case, *followers) for each in one.strong]
    shown = next((each for each in followers if each.id in case.known.located_by and each.onset.process), case)
    located = case if _process(case) else shown
    component = _blamed(case) or _process(located) or _host(case) or case.onset.source
    since = began(case.known, case.strong, case.weak, evidence, course)
    since = located.onset.time if since is None else since
    fix = case.known.fix
    advice = next((each.data["advice"] for each in case.strong if each.data.get("advice")), None)
    return Cause(
        id=case.id,
        title=case.known.title,
        component=component,
        evidence=_quotes((*case.strong, *case.weak)),
        fix=f"{fix} {advice}" if advice and advice not in fix else fix,
        runbook=runbook_url(case.known.runbook),
        onset=None if since is None else timestamp(since),
        impact=IMPACTS[_impact(case)],
        victims=tuple(sorted({each for each in touched if each and each != component}, key=_by_number)),
        consequences=tuple(each.id for each in followers),
    )


def _process(case: _Case) -> str:
    """The process in which it began; the one that a launcher names in the lines behind, if the first one names none."""
    onset = case.onset
    behind = (each for each in case.strong if each.source == onset.source and each.kind == onset.kind == LINE)
    near = (each.process for each in behind if each.process and each.place - onset.place <= ONE_MESSAGE)
    return onset.process or next(near, "")


def _blamed(case: _Case) -> str:
    """The host that a digest of the states of all hosts names."""
    digests = (each.data.get("next", "") for each in case.strong if "Megascale detects a hang" in each.text)
    return next((found.group(1) for each in digests if (found := _BLAMED.search(each))), "")


def _host(case: _Case) -> str:
    """The host that its signs say failed."""
    return next((each.data["host"] for each in case.strong if each.data.get("host")), "")


def _whose(one: Observation, onset: Observation) -> str:
    """The process that it is about; where that has no name, the log, if that is another one."""
    return one.process or (one.source if one.kind == LINE and one.source != onset.source else "")


def _by_number(process: str) -> tuple[str, int, str]:
    name, _, number = process.rpartition(" ")
    return (name, int(number), "") if number.isdecimal() else (process, 0, number)


def _hypothesis(case: _Case, evidence: Evidence) -> Hypothesis:
    if case.against:
        return Hypothesis(
            id=case.id, status=result.REFUTED, evidence=_quotes(case.against), because="this rules it out"
        )
    if case.strong:
        because = f"it follows from {', '.join(case.explained_by)}" if case.explained_by else case.because
        return Hypothesis(
            id=case.id, status=result.SUPPORTED, evidence=_quotes((*case.strong, *case.weak)), because=because
        )
    if case.weak:
        because = "other faults show the same"
        return Hypothesis(id=case.id, status=result.SUPPORTED, evidence=_quotes(case.weak), because=because)
    if case.passed:
        because = "the process continued after this"
        return Hypothesis(id=case.id, status=result.REFUTED, evidence=_quotes(case.passed), because=because)
    whole = [each for each in evidence.sources if each.kind in case.known.shown_by]
    if whole and all(each.is_whole for each in whole):
        said = ", ".join(each.name for each in whole[:MOST_EVIDENCE])
        return Hypothesis(id=case.id, status=result.REFUTED, because=f"it would show in {said}, and does not")
    return Hypothesis(id=case.id, status=result.NO_DATA)


def _quotes(observations: Iterable[Observation]) -> tuple[Quote, ...]:
    """The first of each that say the same."""
    different: dict[tuple[str, str, str], Observation] = {}
    for each in observations:
        different.setdefault((each.source, each.process, each.quoted), each)
    return tuple(
        Quote(
            source=each.source,
            place=each.place,
            time=None if each.time is None else timestamp(each.time),
            process=each.process or None,
            text=each.quoted,
        )
        for each in [*different.values()][:MOST_EVIDENCE]
    )


def _missing(verdict: str, open_symptoms: Sequence[_Case], cases: Iterable[_Case], evidence: Evidence) -> Iterable[str]:
    found = [f"{each.kind} {each.name}: {each.problem}" for each in evidence.sources if each.problem is not None]
    found += [f"{each.kind} {each.name}: {note}" for each in evidence.sources for note in each.notes]
    if not evidence.sources:
        found.append("Give at least one source.")
    if verdict != result.CAUSE and (rest := unseen(evidence)) is not None:
        found.append(rest)
    if verdict == result.INCONCLUSIVE:
        unnamed = [each for each in cases if each.because or _suspected(each)]
        found += [each.known.collect for each in (*open_symptoms, *unnamed) if each.known.collect]
    return dict.fromkeys(found)
