"""A function compiles again and again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import LINE, METRIC, PROGRESS, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import FINDINGS, SLOW, Alert, Event, Knowledge, Line, Metric, Raised

LEAST, LEAST_EXPLAINED = 6, 12
"""Compilations of one function after the first step: evaluation and a smaller last batch need a few."""
_COMPILING = re.compile(r"Compiling (?:jit\()?([\w.<>-]+)\)? (?:with global shapes|for \d|with args)")
_MISSING = re.compile(r"TRACING CACHE MISS at .{1,300}\(([\w.<>-]+)\)")
"""JAX explains misses of its tracing cache, of which a few compile nothing: an eager `jax.checkpoint`, say."""


def _again(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Of lines about compilations, those of functions that compile between the steps; of counts, those that cost."""
    first: dict[tuple[str, str], int] = {}
    for each in evidence.of_kind(PROGRESS):
        key = (each.source, each.process)
        first[key] = min(each.place, first.get(key, each.place))
    dropped = [each for each in signs if each.name == _COMPILED and not _is_costly(evidence, each)]
    for pattern, least in ((_COMPILING, LEAST), (_MISSING, LEAST_EXPLAINED)):
        counted: defaultdict[tuple[str, str, str], list[Observation]] = defaultdict(list)
        for each in signs:
            found = pattern.search(each.text) if each.kind == LINE else None
            if found is not None:
                start = first.get((each.source, each.process), each.place)
                counted[each.source, each.process, found.group(1) if each.place > start else ""].append(each)
        for (*_, function), some in counted.items():
            dropped += some if not function or len(some) < least else []
    gone = {*map(id, dropped)}
    return [each for each in signs if id(each) not in gone]


_LEAST_SECONDS, _LEAST_SHARE = 60.0, 0.2
"""Of the time of a process that went into compilations."""


def _is_costly(evidence: Evidence, sign: Observation) -> bool:
    """Whether its process spends much of its time on compilations, without the first one of each function."""
    compiling = counters.total(evidence, sign, counters.TIME, category="trace|compile|cache_load")
    everything = counters.total(evidence, sign, counters.TIME)
    again = _seconds_again(evidence, sign)
    return (compiling if again is None else again) >= max(_LEAST_SECONDS, _LEAST_SHARE * everything)


def _is_cheap(evidence: Evidence, sign: Observation) -> bool:
    """Whether operations outside any jitted function, as cells of a notebook have them, recompile for a short time."""
    again = _seconds_again(evidence, sign, "<eager>")
    everything = counters.total(evidence, sign, counters.TIME)
    return again is not None and again < _LEAST_SECONDS and again < _LEAST_SHARE * everything


_NAMED = "(?!<eager>|<other>).+"


def _seconds_again(evidence: Evidence, sign: Observation, functions: str = _NAMED) -> float | None:
    """What functions took to compile after their first time, on average; None if the source tells it of none."""
    seconds, programs, later = (defaultdict[str, float](float) for _ in range(3))
    for each in counters.samples(evidence, sign, _SECONDS, function=functions):
        seconds[each.data["function"]] += each.value or 0.0
    for each in counters.samples(evidence, sign, _COMPILED, function=functions):
        programs[each.data["function"]] += each.value or 0.0
        later[each.data["function"]] += (each.value or 0.0) * (each.data.get("cause") != "first_call")
    shares = [took * later[each] / programs[each] for each, took in seconds.items() if programs[each]]
    return sum(shares) if seconds else None


_SECONDS = "jax_function_compile_seconds_sum"
_COMPILED = "jax_compilations_total"
_AGAIN = (("cause", "(?!first_call|unknown).*"), ("function", "(?!<eager>|<other>).*"))
_CAPABILITY = "jaxobs_capability"
"""Each process that judges itself has it, so that where it is, `jax_findings` would be, too."""
_PATTERNS = (
    "(?:recompile_storm|unbounded_shapes|unbounded_structures|recreated_functions|static_values|"
    "identity_hashed_static|flip_flop|costly_recompilations|eager_recompiles|forgotten_programs)"
)


def _is_usual(evidence: Evidence, sign: Observation) -> bool:
    """Whether a count of compilations is that of a young process, or of one that found no pattern in them."""
    if sign.kind == METRIC and sign.name == FINDINGS and sign.data.get("finding") == "costly_recompilations":
        # The metric doesn't tell whether the process rates it as a warning or as mere information.
        return not _is_costly(evidence, sign)
    if sign.kind == METRIC and sign.name == FINDINGS and sign.data.get("finding") == "eager_recompiles":
        return _is_cheap(evidence, sign)
    if sign.kind != METRIC or sign.name != _COMPILED:
        return False
    if counters.is_young(evidence, sign):
        return True
    return _is_judged_well(evidence, sign)


def _is_judged_well(evidence: Evidence, sign: Observation) -> bool:
    own = [
        each
        for each in evidence.observations
        if each.source == sign.source and (each.process == sign.process or not (each.process and sign.process))
    ]
    kinds = {each.data.get("finding", "") if each.name == FINDINGS else each.name[len("finding:") :] for each in own}
    return any(each.name == _CAPABILITY for each in own) and not any(re.fullmatch(_PATTERNS, each) for each in kinds)


KNOWN = Knowledge(
    title="A function recompiles again and again",
    impact=SLOW,
    signs=(
        Event(f"finding:{_PATTERNS}"),
        Metric(_COMPILED, over=20, labels=_AGAIN),
        Metric(_COMPILED, over=20, labels=_AGAIN, weak=True),
        Alert("JaxRecompilationStorm", weak=False),
        Alert("JaxUnboundedShapes", weak=False),
        Line(_COMPILING.pattern, info=True, passes=False),
        Line(_MISSING.pattern, info=True, passes=False),
        Raised(
            about=r"compilation occurred but was forbidden|Function '[\w.<>]+' is traced > \d+ times!|"
            r"re-tracing function .{1,300} but 'no_tracing' is set",
        ),
        Line(r"[Rr]ecompilation after warm[ -]?up is detected|Unexpected recompilation", passes=False),
    ),
    narrow=_again,
    needs=("event-log", "metrics-file", "target", "prometheus", "log"),
    shown_by=("event-log",),
    fix="`jaxobs explain` names the argument and the line.",
    runbook="JaxRecompilationStorm",
    beside=(counters.STARTED, _CAPABILITY, counters.TIME, _SECONDS),
    ordinary=_is_usual,
)
