"""A function compiles again and again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from jaxobs.operations.diagnosis.evidence import LINE, METRIC, PROGRESS, Evidence, Observation
from jaxobs.operations.diagnosis.knowledge import FINDINGS, SLOW, Alert, Event, Knowledge, Line, Metric

LEAST = 6
"""Compilations of one function after the first step: evaluation and a smaller last batch need a few."""
_COMPILING = re.compile(r"Compiling (?:jit\()?([\w.<>-]+)\)? (?:with global shapes|for \d|with args)")


def _again(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Of the lines about compilations, those of a function that compiles between the steps."""
    first: dict[tuple[str, str], int] = {}
    for each in evidence.of_kind(PROGRESS):
        key = (each.source, each.process)
        first[key] = min(each.place, first.get(key, each.place))
    counted: defaultdict[tuple[str, str, str], list[Observation]] = defaultdict(list)
    for each in signs:
        found = _COMPILING.search(each.text) if each.kind == LINE else None
        if found is not None and each.place > first.get((each.source, each.process), each.place):
            counted[each.source, each.process, found.group(1)].append(each)
    kept = {id(each) for some in counted.values() if len(some) >= LEAST for each in some}
    return [each for each in signs if id(each) in kept or each.kind != LINE or not _COMPILING.search(each.text)]


_YOUNG = 2700.0
"""Seconds after its start in which a program compiles what it needs. As in JaxRecompilationStorm."""
_START = "jax_process_start_timestamp_seconds"
_COMPILED = "jax_compilations_total"
_BUILD = "jax_build_info"
"""Each process has it, so that where it is, `jax_findings` would be, too."""
_PATTERNS = (
    "(?:recompile_storm|unbounded_shapes|unbounded_structures|recreated_functions|static_values|"
    "identity_hashed_static|flip_flop|costly_recompilations|eager_recompiles|forgotten_programs)"
)


def _is_usual(evidence: Evidence, sign: Observation) -> bool:
    """Whether a count of compilations is that of a young process, or of one that found no pattern in them."""
    if sign.kind != METRIC or sign.name != _COMPILED:
        return False
    return _at_start(evidence, sign) or _is_judged_well(evidence, sign)


def _is_judged_well(evidence: Evidence, sign: Observation) -> bool:
    own = [
        each
        for each in evidence.observations
        if each.source == sign.source and (each.process == sign.process or not (each.process and sign.process))
    ]
    kinds = {each.data.get("finding", "") if each.name == FINDINGS else each.name[len("finding:") :] for each in own}
    return any(each.name == _BUILD for each in own) and not any(re.fullmatch(_PATTERNS, each) for each in kinds)


def _at_start(evidence: Evidence, sign: Observation) -> bool:
    """Whether a process has compiled in its first minutes, as each does."""
    if sign.time is None or not sign.process:
        return False
    began = [
        each.value
        for each in evidence.of_kind(METRIC)
        if each.name == _START and each.process == sign.process and each.source == sign.source and each.value
    ]
    return any(0 <= sign.time - each < _YOUNG for each in began)


KNOWN = Knowledge(
    title="A function recompiles again and again",
    impact=SLOW,
    signs=(
        Event(f"finding:{_PATTERNS}"),
        Metric(
            _COMPILED,
            over=20,
            labels=(
                ("cause", "(?!first_call|unknown).*"),
                ("function", "(?!<eager>|<other>).*"),
            ),
            weak=True,
        ),
        Alert("JaxRecompilationStorm", weak=False),
        Alert("JaxUnboundedShapes", weak=False),
        Line(_COMPILING.pattern, info=True, passes=False),
        Line(r"[Rr]ecompilation after warm[ -]?up is detected|Unexpected recompilation", passes=False),
    ),
    narrow=_again,
    needs=("event-log", "metrics-file", "target", "prometheus", "log"),
    shown_by=("event-log",),
    fix="`jaxobs explain` names the argument and the line.",
    runbook="JaxRecompilationStorm",
    beside=(_START, _BUILD),
    ordinary=_is_usual,
)
