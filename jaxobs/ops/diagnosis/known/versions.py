"""Functions for releases that do not fit together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis.api_changes import MISSING
from jaxobs.ops.diagnosis.evidence import ALERT, LINE, START, Evidence, Observation
from jaxobs.ops.diagnosis.full_devices import full_before
from jaxobs.ops.diagnosis.knowledge import Functions

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
    """Beside an error of a job of several processes: the manifests that differ from that of the first process."""
    starts = [each for each in evidence.of_kind(START) if each.data.get("count", "1") not in ("", "1")]
    told = {each.process: tuple(each.data.get(key, "") for key in _COMPARED) for each in starts}
    differ = len(set(told.values())) > 1
    return [each for each in signs if each.kind == ALERT or (differ and each.process in told)]


FUNCTIONS: Mapping[str, Functions] = {
    "cuda_library_mismatch": {"narrow": _with_memory},
    "plugin_mismatch": {"narrow": _where_it_is_missed},
    "version_skew": {"narrow": _differing},
}
PARTS: Mapping[str, str] = {"missing": MISSING, "no_extension": _NO_EXTENSION}
