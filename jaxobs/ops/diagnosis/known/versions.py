"""Functions for releases that do not fit together."""

import re
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.api_changes import MISSING
from jaxobs.ops.diagnosis.evidence import ALERT, FORMER, LINE, METRIC, START, Evidence, Observation
from jaxobs.ops.diagnosis.full_devices import full_before
from jaxobs.ops.diagnosis.knowledge import FINDINGS, Functions

_NOT_MADE = re.compile(
    r"_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)|INVALID_PTX|[Cc]reate|not initialized|not been initialized"
)
_NO_MEMORY = re.compile(
    r"ran out of memory|[Oo]ut of memory|OUT_OF_MEMORY|RESOURCE_EXHAUSTED|[Rr]esource exhausted|ALLOC_FAILED|"
    r"too much shared data"
)


def _with_memory(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A library that cannot be set up where memory is short says nothing of its version."""
    short = {(each.source, each.process) for each in evidence.of_kind(LINE) if _NO_MEMORY.search(each.text)}
    return [
        each
        for each in signs
        if not _NOT_MADE.search(each.text)
        or ((each.source, each.process) not in short and not full_before(evidence, each))
    ]


_NO_EXTENSION = r"\b(?:cuda|rocm)_plugin_extension (?:is )?not found"
_MISSED = re.compile(r"initialize backend|[Uu]nknown backend|No FFI handler registered|custom call target")


def _where_it_is_missed(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A plugin without its extension harms nobody who computes on the CPU, or calls nothing of it."""
    missed = {(each.source, each.process) for each in evidence.of_kind(LINE) if _MISSED.search(each.text)}
    return [each for each in signs if not re.search(_NO_EXTENSION, each.text) or (each.source, each.process) in missed]


_COMPARED = ("version:jax", "version:jaxlib", "version:libtpu", "flag:XLA_FLAGS", "flag:LIBTPU_INIT_ARGS")


def _differing(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns what tells of versions that differ beside a fault.

    These are the manifests of a job of several processes, one of which has an error, and the versions of a replica that
    runs others than most, and alone has requests that fail.
    """
    starts = [each for each in evidence.of_kind(START) if each.data.get("count", "1") not in ("", "1")]
    told = {each.process: tuple(each.data.get(key, "") for key in _COMPARED) for each in starts}
    differ = len(set(told.values())) > 1
    return [
        each
        for each in signs
        if each.kind == ALERT
        or (_is_odd_and_fails(evidence, each) if each.kind == METRIC else differ and each.process in told)
    ]


_OF_A_BUILD = ("jax", "jaxlib", "python")
_FAILED = "failed_requests"


def _is_odd_and_fails(evidence: Evidence, info: Observation) -> bool:
    """Whether requests fail in processes of these versions alone, and most processes of the job run others."""
    own, builds = _build(info), {}
    for each in evidence.metric(info.name):
        if (
            each.source == info.source
            and counters.job(each)[:-1] == counters.job(info)[:-1]
            and FORMER not in each.data
        ):
            builds[each.process] = _build(each)
    others = [build for build in builds.values() if build != own]
    failing = {
        each.process
        for each in evidence.observations
        if each.name == f"finding:{_FAILED}"
        or (each.name == FINDINGS and each.value and each.data.get("finding") == _FAILED and FORMER not in each.data)
    }
    failing &= set(builds)
    fails_alone = bool(failing) and all(builds[each] == own for each in failing) and info.process in failing
    return FORMER not in info.data and fails_alone and len(others) > len(builds) - len(others)


def _build(info: Observation) -> tuple[str, ...]:
    return tuple(info.data.get(key, "") for key in _OF_A_BUILD)


FUNCTIONS: Mapping[str, Functions] = {
    "cuda_library_mismatch": {"narrow": _with_memory},
    "plugin_mismatch": {"narrow": _where_it_is_missed},
    "version_skew": {"narrow": _differing},
}
PARTS: Mapping[str, str] = {"missing": MISSING, "no_extension": _NO_EXTENSION}
