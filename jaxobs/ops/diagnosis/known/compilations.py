"""Functions for the faults of compilations, and of what waits for them."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import ALERT, LINE, METRIC, PROGRESS, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import FINDINGS, Functions

_CHECK = re.compile(
    r"(?:^|\] ?)Check failed: "
    r"(?!.*(?:[Ss]tatus|\bok\(\)|\bret\b|pthread|[Cc][Uu][Dd][Aa]|hip|[Mm]emory|alloc))"
)
"""What the source takes for granted, and not what a call of the system or of the driver answered."""
_MOST_OF_A_STACK = 100


def _of_a_check(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A stack shows a bug of the compiler only below a check that failed: one that is stopped prints its stack, too."""
    checks = [each for each in evidence.of_kind(LINE) if _CHECK.search(each.text)]
    return [
        sign
        for sign in signs
        if not sign.text.lstrip().startswith("@ ")
        or any(
            each.source == sign.source
            and each.process == sign.process
            and 0 < sign.place - each.place <= _MOST_OF_A_STACK
            for each in checks
        )
    ]


_OLDEST = "jax_compilation_oldest_start_timestamp_seconds"
_STUCK_SECONDS = 3600.0
"""Seconds of a compilation, as in JaxCompilationStuck."""


def _is_short_compilation(evidence: Evidence, sign: Observation) -> bool:
    """Whether a compilation had been in progress for an ordinary time, and no alert of a site's own says otherwise."""
    alerts = [each.process for each in evidence.of_kind(ALERT) if each.name == "JaxCompilationStuck"]
    if sign.name != _OLDEST or sign.process in alerts:
        return False
    return not sign.history or sign.history[-1][0] - (sign.value or 0.0) < _STUCK_SECONDS


_COMPILE_SECONDS = "jax_function_compile_seconds_sum"
_COMPILED = "jax_compilations_total"
_LEAST, _LEAST_EXPLAINED = 6, 12
"""Compilations of one function after the first step: evaluation and a smaller last batch need a few."""
_COMPILING = re.compile(r"Compiling (?:jit\()?([\w.<>-]+)\)? (?:with global shapes|for \d|with args)")
_TRACED_AGAIN = re.compile(r"TRACING CACHE MISS at .{1,300}\(([\w.<>-]+)\)")
"""JAX explains misses of its tracing cache, of which a few compile nothing: an eager `jax.checkpoint`, say."""


def _again(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns lines about functions that compile between the steps, and counts of compilations that cost time."""
    first: dict[tuple[str, str], int] = {}
    for each in evidence.of_kind(PROGRESS):
        key = (each.source, each.process)
        first[key] = min(each.place, first.get(key, each.place))
    dropped = [each for each in signs if each.name == _COMPILED and not _is_costly(evidence, each)]
    for pattern, least in ((_COMPILING, _LEAST), (_TRACED_AGAIN, _LEAST_EXPLAINED)):
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
"""Seconds, and share of a process's time, that went into compilations."""


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
    for each in counters.samples(evidence, sign, _COMPILE_SECONDS, function=functions):
        seconds[each.data["function"]] += each.value or 0.0
    for each in counters.samples(evidence, sign, _COMPILED, function=functions):
        programs[each.data["function"]] += each.value or 0.0
        later[each.data["function"]] += (each.value or 0.0) * (each.data.get("cause") != "first_call")
    shares = [took * later[each] / programs[each] for each, took in seconds.items() if programs[each]]
    return sum(shares) if seconds else None


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


_REQUESTS = "jax_requests_total"
_LEAST_REQUESTS = 100
_SHARE_OF_REQUESTS = 0.01
"""Share of the requests of a process that is no longer young, as in JaxColdRequestsHigh."""
_SHARE_SINCE_THE_START = 0.2
"""Share of the requests if it is not known when the process started: each warms up."""


def _are_few_requests(evidence: Evidence, sign: Observation) -> bool:
    """Whether so few requests waited for a compilation that a process which warms up has as many."""
    if sign.name != _REQUESTS:
        return False
    route = sign.data.get("route", "")
    own = [each for each in counters.samples(evidence, sign, _REQUESTS) if each.data.get("route", "") == route]
    requests = sum(each.value or 0.0 for each in own)
    cold = sum(each.value or 0.0 for each in own if each.data.get("cold") == "true")
    dated = any(True for _ in counters.samples(evidence, sign, counters.STARTED)) and sign.time is not None
    return (
        requests < _LEAST_REQUESTS
        or counters.is_young(evidence, sign)
        or cold < (_SHARE_OF_REQUESTS if dated else _SHARE_SINCE_THE_START) * requests
    )  # fmt: skip


_COMPILED_AGAIN = re.compile(r"Finished XLA compilation of (?:jit\()?([\w.<>-]+)\)? in ")
_REQUEST_FAILED = re.compile(
    r"\"?\b(?:GET|POST|PUT) /\S* .{0,40}\b50[34]\b|[Rr]ead timed out|[Dd]eadline of \S+ \w+ exceeded|"
    r"[Qq]ueue (?:is )?full|[Rr]equest\b.{0,60}\btime(?:d )?out|[Tt]imeout\b.{0,30}\brequest"
)
"""A request took too long, or came while others did."""
ORDINARY = re.compile(f"{_COMPILED_AGAIN.pattern}|{_REQUEST_FAILED.pattern}")
"""Lines that are signs of a fault only together."""
_LEAST_FAILED, _LEAST_COMPILED = 3, 3
"""Requests that fail, and compilations of one function from the first of them on."""


def _during_requests(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns the signs: compilations in a log only if requests fail while one function compiles again and again."""
    told = [each for each in signs if each.kind == LINE]
    failed = [each for each in told if _REQUEST_FAILED.search(each.text)]
    compiled: defaultdict[tuple[str, str, str], list[Observation]] = defaultdict(list)
    for each in told:
        found = _COMPILED_AGAIN.search(each.text)
        if found is not None and any(_began_no_later(one, each) for one in failed):
            compiled[each.source, each.process, found.group(1)].append(each)
    enough = len(failed) >= _LEAST_FAILED
    kept = [each for same in compiled.values() if enough and len(same) >= _LEAST_COMPILED for each in same]
    return [each for each in signs if each.kind != LINE or each in kept]


def _began_no_later(one: Observation, other: Observation) -> bool:
    if one.source == other.source or one.time is None or other.time is None:
        return one.source == other.source and one.place < other.place
    return one.time <= other.time


FUNCTIONS: Mapping[str, Functions] = {
    "compile_failed": {"narrow": _of_a_check},
    "compile_stuck": {"ordinary": _is_short_compilation},
    "recompilation": {"narrow": _again, "ordinary": _is_usual},
    "cold_requests": {"narrow": _during_requests, "ordinary": _are_few_requests},
}
PARTS: Mapping[str, str] = {
    "findings": _PATTERNS,
    "compiled_again": _COMPILED_AGAIN.pattern,
    "compiling": _COMPILING.pattern,
    "request_failed": _REQUEST_FAILED.pattern,
    "traced_again": _TRACED_AGAIN.pattern,
}
