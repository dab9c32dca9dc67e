"""From evidence to a verdict: which faults have signs, which of them follow from others, and which can be named.

Nothing but the evidence enters: no clock, no file, no order of input.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from jaxobs.ops.diagnosis import result, telling
from jaxobs.ops.diagnosis.cases import ANY_EXCEPTION, ONE_MESSAGE, Case, ancestors
from jaxobs.ops.diagnosis.evidence import (
    AFTERMATH,
    ALERT,
    EVENT,
    FATAL,
    FORMER,
    INTERNAL,
    LAST,
    LINE,
    METRIC,
    ONE_WRITE,
    RAISED,
    SAID,
    Courses,
    Evidence,
    Observation,
    came_back,
    courses,
    had_ended,
    is_before,
    outlived,
    says_more,
    went_on,
)
from jaxobs.ops.diagnosis.knowledge import ANY_END, CAUSE, ENDED, IMPACTS, SYMPTOM, Knowledge, Line, Raised
from jaxobs.ops.diagnosis.result import Diagnosis

MOST_OF_A_MESSAGE = 12
"""Lines of the message of an exception."""
SURE = 0.8
"""Confidence from which a cause is certain enough to be called one."""
LIKELY = 0.5
"""Least confidence of a fault for which only weak signs speak, together with those that bear it out."""
AGREED = 0.8
"""Share of the votes of near incidents from which they name a fault."""
ONE_EVENT = 60.0
"""Seconds within which two faults that look alike are taken for explanations of one event."""


NearIncidents = Callable[[Evidence], tuple[str, float, object] | None]
"""Says on which fault the known incidents agree that read like the evidence, and with what share of their votes."""


def judge(evidence: Evidence, known: Mapping[str, Knowledge], near: NearIncidents | None = None) -> Diagnosis:
    """What happened, as far as the evidence shows it; `near` is asked where the signs are silent."""
    course = courses(evidence)
    cases = weighed(evidence, known, course)
    standing = {name: case for name, case in cases.items() if case.stands}
    _explain(standing)
    roots = [each for each in standing.values() if each.known.role == CAUSE and not each.explained_by]
    roots = _of_today(roots)
    named = _without_rivals(roots, standing)
    open_symptoms = [
        each for each in standing.values() if not _reaches(each, named, standing) and each.known.role == SYMPTOM
    ]
    worst = min((each.impact for each in open_symptoms), default=len(IMPACTS))
    for each in [each for each in named if each.impact > worst]:
        named.remove(each)
        each.because = "it does not explain the worst that happened"
    _one_line_one_cause(named)
    named.sort(key=lambda each: (each.impact, each.onset.order, each.id))
    likely = [] if named or open_symptoms else _most_likely(cases.values())
    raised = any(one.name in (RAISED, FATAL) for each in open_symptoms for one in each.strong)
    if raised and not named and near is not None:
        likely = _by_incidents(near(evidence), open_symptoms, cases, evidence)
        standing |= {each.id: each for each in likely}
    unread = [each for each in evidence.sources if each.problem is not None]
    undecided = bool(open_symptoms) or len(named) < len(roots) or any(each.suspected for each in cases.values())
    verdict = (
        result.CAUSE if named and named[0].confidence >= SURE and not named[0].is_general
        else result.LIKELY if named or likely
        else result.INCONCLUSIVE if undecided or unread or not evidence.sources
        else result.NO_FAULT
    )  # fmt: skip
    return Diagnosis(
        verdict=verdict,
        causes=telling.causes(named or likely, standing, evidence, course),
        hypotheses=tuple(telling.hypothesis(each, evidence) for each in sorted(cases.values(), key=_rank)),
        changed=telling.changed(named or likely, evidence),
        missing=tuple(telling.missing(verdict, open_symptoms, cases.values(), evidence)),
    )


# ------------------------------------------------------------------------------------------------- what speaks for it


def weighed(evidence: Evidence, known: Mapping[str, Knowledge], course: Courses) -> dict[str, Case]:
    """Returns what speaks for each fault and against it, by name."""
    cases = {name: _case(name, each, evidence, course) for name, each in sorted(known.items())}
    _give_way(cases)
    for case in cases.values():
        _rule_out(case, evidence)
    return cases


def _case(name: str, known: Knowledge, evidence: Evidence, course: Courses) -> Case:
    case = Case(name, known)
    for each in evidence.observations:
        if each.kind not in _SHOWING:
            continue
        signs = [sign for sign in known.signs if sign.shows(each)]
        if not signs:
            continue
        if known.ordinary is not None and known.ordinary(evidence, each):
            case.ordinary.append(each)
            continue
        case.shown[id(each)] = tuple(signs)
        lasts = "lasts" in each.data and not AFTERMATH.search(each.text)
        passes = all(sign.passes for sign in signs) and each.data.get("uncaught") != "yes" and not lasts
        passes &= not each.name.startswith(INTERNAL)
        is_weak = all(sign.weak for sign in signs)
        at_the_end = ((passes and known.role == SYMPTOM) or is_weak) and had_ended(course, each)
        tries_again = "again" in each.data and says_more(evidence, each)
        survived = passes and each.name != FATAL and (tries_again or went_on(course, each))
        ended_well = not lasts and (outlived(course, each) or came_back(course, each))
        if at_the_end or survived or (known.impact == ENDED and ended_well):
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


def _give_way(cases: Mapping[str, Case]) -> None:
    """A general fault keeps only what no special one shows, nor the lines with which its message goes on."""
    levels: dict[int, int] = {}
    for case in cases.values():
        for each in (*case.strong, *case.passed, *case.ordinary):
            levels[id(each)] = min(case.known.general, levels.get(id(each), case.known.general))
    said: dict[tuple[str, str], list[Observation]] = {}
    for case in cases.values():
        for each in case.strong if case.known.role == CAUSE else ():
            if each.kind == LINE and each.name != RAISED:
                said.setdefault((each.source, each.process), []).append(each)
    level = {id(each): _level(each, said, levels) for case in cases.values() for each in case.strong}
    handled = _handled(cases, level)
    for case in cases.values():
        case.strong = [
            each
            for each in case.strong
            if level[id(each)] >= case.known.general
            and not (case.known.general == ANY_EXCEPTION and id(each) in handled)
        ]


def _level(one: Observation, said: Mapping[tuple[str, str], Sequence[Observation]], levels: Mapping[int, int]) -> int:
    """How general the most special fault is that a line shows, or the lines with which its message goes on."""
    level = levels[id(one)]
    if one.name != RAISED:
        return level
    for each in said.get((one.source, one.process), ()):
        if 0 < each.place - one.place <= MOST_OF_A_MESSAGE and _goes_on(one, each):
            level = min(level, levels[id(each)])
    return level


def _handled(cases: Mapping[str, Case], level: Mapping[int, int]) -> set[int]:
    """Exceptions that the program caught, and then raised one of which more is known."""
    raised: dict[tuple[str, str], dict[int, tuple[Observation, bool]]] = {}
    for case in cases.values():
        for each in case.strong if case.known.role == CAUSE else ():
            if each.name == RAISED:
                own = raised.setdefault((each.source, each.process), {})
                is_known = case.known.general < ANY_EXCEPTION and level[id(each)] >= case.known.general
                own[each.place] = each, is_known or (each.place in own and own[each.place][1])
    found = set()
    for own in raised.values():
        is_known = False
        for _, (each, itself) in sorted(own.items(), reverse=True):
            is_known = itself or (is_known and _CHAINED.search(each.data.get("next", "")) is not None)
            if is_known and not itself:
                found.add(id(each))
    return found


def _rule_out(case: Case, evidence: Evidence) -> None:
    if not case.known.refuted_by:
        return
    found = [
        each for each in evidence.observations if any(sign.shows(each) for sign in case.known.refuted_by)
    ]  # fmt: skip
    last = case.strong[-1] if case.strong else None
    case.against = [each for each in found if last is None or is_before(each, last) is not True]


# --------------------------------------------------------------------------------------------- what follows from what


def _explain(standing: Mapping[str, Case]) -> None:
    """Marks each fault with those that brought it about; never in circles."""
    for case in standing.values():
        for other in standing.values():
            if other is not case and _brings(other, case) and case.id not in ancestors(other, standing):
                case.explained_by.append(other.id)


def _brings(cause: Case, effect: Case) -> bool:
    """Whether the one can have brought the other about: by its nature, and in time."""
    if cause.id in effect.known.follows and _told_at_once(effect.onset, cause.onset):
        # Where each can follow from the other, one message with both tells of the cause.
        return not (effect.known.role == CAUSE != cause.known.role and effect.id in cause.known.follows)
    if is_before(effect.onset, cause.onset) is True:
        return False
    if cause.id in effect.known.follows:
        return True
    if cause.impact != IMPACTS.index(ENDED) or cause.known.role != CAUSE:
        return False
    # Others may report a process that ended under its own number. An error of their own is a different matter.
    elsewhere = cause.onset.process != effect.onset.process or not effect.onset.process
    by_others = ANY_END in effect.known.follows and (effect.known.role == SYMPTOM or elsewhere)
    is_special = effect.known.general > cause.known.general and effect.id not in cause.known.follows
    return by_others or is_special


def _told_at_once(one: Observation, other: Observation) -> bool:
    """Whether two lines of a log come close behind each other."""
    near = one.kind == other.kind == LINE and abs(one.place - other.place) <= ONE_MESSAGE
    return near and (one.source, one.process) == (other.source, other.process) and not _apart(one, other)


def _reaches(case: Case, named: Sequence[Case], standing: Mapping[str, Case]) -> bool:
    """Whether a named cause explains it."""
    return bool(ancestors(case, standing) & {each.id for each in named})


def _of_today(roots: Sequence[Case]) -> list[Case]:
    """Returns the faults of processes that go on, and of one that was replaced since those that may have ended it."""
    shown = [each for each in roots if not all(FORMER in one.data for one in each.strong)]
    kept = [each for each in roots if not shown or each in shown or each.impact == IMPACTS.index(ENDED)]
    for each in roots:
        if each not in kept:
            each.because = "the process that showed it has been replaced since"
    return kept


def _without_rivals(roots: Sequence[Case], standing: Mapping[str, Case]) -> list[Case]:
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


def _one_line_one_cause(named: list[Case]) -> None:
    """Takes out a cause all of whose signs are those of another one, of which they are more often right."""
    shown = {each.id: set(map(id, each.strong)) for each in named}
    for case in [*named]:
        better = [each for each in named if shown[case.id] <= shown[each.id] and each.confidence > case.confidence]
        if better:
            named.remove(case)
            case.because = f"the same lines speak more for {better[0].id}"


def _most_likely(cases: Iterable[Case]) -> list[Case]:
    """The fault for which weak signs speak that others bear out: those of the faults that follow from it."""
    suspected = {each.id: each for each in cases if each.suspected and each.known.role == CAUSE}
    for case in suspected.values():
        own = set(map(id, case.weak))
        story = [
            each for each in suspected.values() if case.id in each.known.follows and own.isdisjoint(map(id, each.weak))
        ]
        confidence = 1.0 - math.prod(1.0 - each.confidence for each in (case, *story))
        if story and confidence >= LIKELY and not any(each in suspected for each in case.known.follows):
            case.strong, case.borne_out = case.weak, round(confidence, 2)
            return [case]
    return []


def _rank(case: Case) -> tuple[bool, float, str]:
    """What something speaks for comes first, by how much does; then the names decide."""
    supported = bool(case.strong or case.weak) and not case.against
    return not supported, -case.confidence if supported else 0.0, case.id


def _by_incidents(
    said: tuple[str, float, object] | None, symptoms: Sequence[Case], cases: Mapping[str, Case], evidence: Evidence
) -> list[Case]:
    """The fault on which near incidents agree, if its own signs are silent: else they would have named it."""
    case = None if said is None else cases.get(said[0])
    if said is None or case is None or said[1] < AGREED:
        return []
    patterns = [sign.pattern for sign in case.known.signs if isinstance(sign, Line)]
    patterns += [sign.about for sign in case.known.signs if isinstance(sign, Raised) and sign.about]
    if any(re.search(each, one.text) for each in patterns for one in evidence.of_kind(SAID, LAST)):
        return []
    case.strong = sorted((one for each in symptoms for one in each.strong), key=lambda each: each.order)
    case.borne_out = round(min(said[1], SURE - 0.01), 2)  # never more than likely
    for each in symptoms:
        each.explained_by.append(case.id)
    return [case]


def _apart(one: Observation, other: Observation) -> bool:
    """Whether two signs cannot be about one event."""
    return one.time is not None and other.time is not None and abs(one.time - other.time) > ONE_EVENT


def _goes_on(one: Observation, other: Observation) -> bool:
    """Whether a line behind another may be part of the same message: no logger wrote it, and it came at once."""
    if one.time == other.time:
        return True
    return not other.level and one.time is not None and 0.0 <= (other.time or 0.0) - one.time <= ONE_WRITE


def _weight(case: Case) -> int:
    """How many different things speak for it."""
    return 2 * len({(each.kind, each.name, each.text[:60]) for each in case.strong}) + bool(case.weak)
