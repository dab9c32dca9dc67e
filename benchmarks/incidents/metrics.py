"""The metrics in which the field states results, each over all scenarios that it is about."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.incidents.evaluation import MOST_ONSET_ERROR, Outcome, families
from jaxobs.ops.diagnosis.result import INCONCLUSIVE, NO_FAULT

_BY_FAMILY = {
    "detected": "faults detected",
    "AC@1": "first cause right (AC@1)",
    "component": "component right",
    "onset": "onset within 60 s",
    "controls doubted": "controls doubted",
}
"""Columns of the table by family, and the metrics that they show."""


def metrics(outcomes: Sequence[Outcome]) -> dict[str, tuple[float, int]]:
    """By name: the value, and of how many scenarios."""
    faults = [each for each in outcomes if not each.scenario.is_control]
    controls = [each for each in outcomes if each.scenario.is_control]
    known = [each for each in outcomes if each.scenario.causes]
    placed = [each for each in known if each.scenario.component is not None]
    timed = [each for each in known if each.scenario.onset is not None]
    doubtful = [each for each in outcomes if each.scenario.expect == INCONCLUSIVE]
    doubted = [each for each in outcomes if each.diagnosis.verdict == INCONCLUSIVE]
    named = [each for each in outcomes if each.diagnosis.causes]
    loud = [each for each in outcomes if each.scenario.kind == "distractor"]
    grounded = [each for each in named if all(one.evidence for one in each.diagnosis.causes)]
    return {
        "faults detected": _share(faults, lambda each: each.diagnosis.verdict != NO_FAULT),
        "controls doubted": _share(controls, lambda each: each.diagnosis.verdict != NO_FAULT),
        "first cause right (AC@1)": _share(known, lambda each: _named(each)[:1] == list(each.scenario.causes[:1])),
        "cause among the first three (AC@3)": _share(known, lambda each: each.scenario.causes[0] in _named(each)[:3]),
        "exactly the right causes": _share(known, lambda each: set(_named(each)) == set(each.scenario.causes)),
        "macro-F1 over causes": _macro_f1(outcomes),
        "component right": _share(placed, lambda each: _component(each) == each.scenario.component),
        "onset within 60 s": _share(timed, lambda each: each.onset_error <= MOST_ONSET_ERROR),
        "onset error, median in s": _median([each.onset_error for each in timed]),
        "inconclusive, precision": _share(doubted, lambda each: each.scenario.expect == INCONCLUSIVE),
        "inconclusive, recall": _share(doubtful, lambda each: each.diagnosis.verdict == INCONCLUSIVE),
        "distractors named": _share(loud, lambda each: bool(each.extra)),
        "causes that quote their evidence": _share(named, grounded.__contains__),
    }


def rows(outcomes: Sequence[Outcome]) -> str:
    """As tables in Markdown: the main ones by family, then all of them together."""
    lines = [f"| family | {' | '.join(_BY_FAMILY)} |", f"|---|{'---:|' * len(_BY_FAMILY)}"]
    for family, each in families(outcomes).items():
        lines.append(f"| {family.replace('_', ' ')} | {' | '.join(_cells(metrics(each)))} |")
    lines += ["", "| metric | value | scenarios |", "|---|---:|---:|"]
    lines += [f"| {name} | {value:.3f} | {count} |" for name, (value, count) in metrics(outcomes).items()]
    return "\n".join(lines)


def _cells(found: Mapping[str, tuple[float, int]]) -> list[str]:
    """How many of how many; nothing where a family has no such scenario."""
    told = [found[name] for name in _BY_FAMILY.values()]
    return [f"{round(value * count)} of {count}" if count else "" for value, count in told]


def _named(outcome: Outcome) -> list[str]:
    return [each.id for each in outcome.diagnosis.causes]


def _component(outcome: Outcome) -> str | None:
    return outcome.diagnosis.causes[0].component if outcome.diagnosis.causes else None


def _share(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> tuple[float, int]:
    return (sum(map(holds, outcomes)) / len(outcomes) if outcomes else 0.0), len(outcomes)


def _median(values: Sequence[float]) -> tuple[float, int]:
    return (statistics.median(values) if values else 0.0), len(values)


def _macro_f1(outcomes: Sequence[Outcome]) -> tuple[float, int]:
    """The mean over causes of the harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN)."""
    right, wrong = _pairs(outcomes, lambda true, said: true & said), _pairs(outcomes, lambda true, said: true ^ said)
    causes = {*right, *wrong}
    scores = [2 * right.count(each) / (2 * right.count(each) + wrong.count(each)) for each in causes]
    return (sum(scores) / len(scores) if scores else 0.0), len(outcomes)


def _pairs(outcomes: Iterable[Outcome], which: Callable[[set[str], set[str]], set[str]]) -> list[str]:
    return [name for each in outcomes for name in which(set(each.scenario.causes), set(_named(each)))]
