"""Which runbook an alert has, and which diagnoses can explain it: one explicit table.

A test compares it with the declared alerts and with the signs of the diagnoses: a new alert without a row fails it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jaxobs.base.links import UNKNOWN_ALERT, runbook_url
from jaxobs.ops.diagnosis.knowledge import ENDED, SLOW, STUCK, WRONG
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.result import Cause
from jaxobs.ops.monitoring import alerting, promql
from jaxobs.ops.monitoring.generate.runbooks import human
from jaxobs.ops.monitoring.rule_types import Alert
from jaxobs.ops.monitoring.site import Site

_GAP = re.compile(r"`?<([a-z][a-z_0-9]*)>`?")

_PLACE = re.compile(r'"scope-(\d+)"')

GENERAL = "general triage"
"""The runbook of an alert that is not in the table."""

_MEMORY = ("device_out_of_memory", "memory_leak", "recompilation", "absurd_allocation", "accelerator_memory_taken")
_COMPILING = (
    "recompilation", "cold_requests", "cache_lost", "cache_unusable", "cache_corrupt", "cache_other_cpu",
    "compile_stuck",
)  # fmt: skip
_CACHE = ("cache_lost", "cache_unusable", "cache_corrupt", "cache_other_cpu", "disk_full", "storage_denied",
          "storage_unavailable")  # fmt: skip
_GPU = ("gpu_hardware", "device_throttled", "kernel_fault", "tpu_halted", "network_fault")
_STORAGE = ("disk_full", "storage_denied", "storage_unavailable", "checkpoint_damaged", "checkpoint_mismatch")
_ERRORS = (
    "failing_function", "program_error", "runtime_error", "unknown_error", "device_out_of_memory", "donated_array_used",
    "tracer_error",
    "sharding_mismatch", "executable_mismatch", "kernel_fault", "remote_array_fetched", "process_finding",
)  # fmt: skip
_NUMBERS = ("nonfinite_values", "nonfinite_input", "wrong_kernel", "gpu_hardware")


@dataclass(frozen=True, slots=True)
class Row:
    """Faults that can explain an alert."""

    causes: tuple[str, ...] = ()
    """Diagnoses, the likely ones first."""
    impacts: tuple[str, ...] = ()
    """Any fault that does this to the job explains it as well: one that ended a process explains that it is gone."""


TABLE: Mapping[str, Row] = {
    # Processes that end, are gone or make no progress: whatever ended or stopped one explains it.
    "JaxCrashLoop": Row((), (ENDED,)),
    "JaxFleetRestarts": Row(("preemption", "host_out_of_memory"), (ENDED,)),
    "JaxJobAbsent": Row(("preemption", "time_limit"), (ENDED,)),
    "JaxLastExitKilled": Row(("host_out_of_memory", "preemption", "time_limit", "memory_leak"), (ENDED,)),
    "JaxPreemptedOften": Row(("preemption", "time_limit"), (ENDED,)),
    "JaxIdleServiceGone": Row(("preemption", "host_out_of_memory"), (ENDED,)),
    "JaxProcessCountMismatch": Row(("coordinator_unreachable",), (ENDED, STUCK)),
    "JaxReplicasLost": Row(("preemption", "host_out_of_memory"), (ENDED, STUCK)),
    "JaxTargetDown": Row(("host_out_of_memory", "preemption"), (ENDED, STUCK)),
    "JaxTrainingGone": Row(("preemption", "time_limit"), (ENDED, STUCK)),
    "JaxProcessStuck": Row(("process_stuck", "compile_stuck", "programs_diverge"), (STUCK, ENDED)),
    "JaxStepsStalled": Row(("process_stuck", "compile_stuck", "programs_diverge", "input_worker_died"), (STUCK, ENDED)),
    "JaxRequestsStalled": Row(("process_stuck", "compile_stuck", "cold_requests", "recompilation"), (STUCK, ENDED)),
    "JaxProgramDivergence": Row(("programs_diverge", "inputs_differ", "version_skew")),
    "JaxVersionSkew": Row(("version_skew", "jaxlib_mismatch", "plugin_mismatch")),
    # Compilations and the persistent cache.
    "JaxCompilationStuck": Row(("compile_stuck", "recompilation", *_CACHE), (STUCK,)),
    "JaxCompileTimeRegression": Row(("cache_lost", "version_skew", "recompilation", "device_throttled")),
    "JaxRecompilationStorm": Row(_COMPILING),
    "JaxUnboundedShapes": Row(_COMPILING),
    "JaxThunderingCompile": Row(_COMPILING),
    "JaxPersistentCacheIneffective": Row((*_CACHE, "recompilation", "version_skew")),
    "JaxPersistentCacheLostAfterRestart": Row((*_CACHE, "version_skew")),
    "JaxPersistentCacheNotSaving": Row(_CACHE),
    "JaxDeploymentUnderWay": Row(),
    # Memory.
    "JaxArrayLeak": Row(("memory_leak",)),
    "JaxExecutableLeak": Row(("memory_leak", "recompilation")),
    "JaxHostMemoryGrowth": Row(("host_out_of_memory", "memory_leak", "recompilation")),
    "JaxDeviceMemoryFillingUp": Row(_MEMORY),
    "JaxDeviceMemoryFragmented": Row((*_MEMORY, "cold_requests")),
    "JaxDeviceMemoryHeadroomLow": Row((*_MEMORY, "kv_cache_too_small")),
    "JaxOutOfMemory": Row((*_MEMORY, "kv_cache_too_small", "host_out_of_memory")),
    # Devices.
    "JaxDeviceEccErrors": Row(_GPU),
    "JaxDeviceIdle": Row(("input_bound", "recompilation", "straggler", "process_finding"), (STUCK, ENDED)),
    "JaxDeviceLinkFault": Row(("gpu_hardware", "nccl_failure", "network_fault")),
    "JaxDeviceLost": Row(_GPU, (ENDED,)),
    "JaxDeviceTemperatureHigh": Row(("device_throttled", "gpu_hardware")),
    "JaxDeviceThrottled": Row(("device_throttled", "gpu_hardware")),
    "JaxDeviceXidErrors": Row(_GPU),
    # Steps, requests, numbers.
    "JaxCheckpointWorkAtRisk": Row(_STORAGE, (STUCK, ENDED)),
    "JaxFunctionErrors": Row((*_ERRORS, "input_worker_died"), (ENDED,)),
    "JaxGoodputLow": Row(("recompilation", "input_bound", "cache_lost", "straggler"), (SLOW, STUCK, ENDED)),
    "JaxInputBound": Row(("input_bound", "input_worker_died", "storage_unavailable", "straggler")),
    "JaxNonFiniteLasting": Row(_NUMBERS, (WRONG,)),
    "JaxNonFiniteValues": Row(_NUMBERS, (WRONG,)),
    "JaxColdRequestsHigh": Row(_COMPILING),
    "JaxRequestErrorsHigh": Row((*_ERRORS, "kv_cache_too_small"), (ENDED, STUCK)),
    "JaxRequestQueueing": Row(("cold_requests", "recompilation", "kv_cache_too_small"), (SLOW, STUCK, ENDED)),
    "JaxStepTimeRegression": Row(("device_throttled", "straggler", "input_bound", "recompilation"), (SLOW,)),
    "JaxStraggler": Row(("straggler", "device_throttled", "gpu_hardware", "input_bound", "process_stuck")),
    # Objectives.
    "JaxSloCacheHitsBurn": Row((*_CACHE, "recompilation", "version_skew")),
    "JaxSloColdRequestsBurn": Row(_COMPILING),
    "JaxSloGoodputBurn": Row(("recompilation", "input_bound", "cache_lost", "straggler"), (SLOW, STUCK, ENDED)),
    "JaxSloNoData": Row((), (ENDED, STUCK)),
    "JaxSloRequestAvailabilityBurn": Row(_ERRORS, (ENDED, STUCK)),
    "JaxSloStepSuccessBurn": Row((*_ERRORS, "nonfinite_values"), (ENDED,)),
    # The observer itself: no fault of the job explains it, its runbook does.
    "JaxobsCapabilityLost": Row(("version_skew", "jaxlib_mismatch")),
    "JaxobsInternalErrors": Row(),
    "JaxobsScrapeSlow": Row(("recompilation",)),
    "JaxobsSeriesDropped": Row(("recompilation",)),
}
"""Rows by the alert's name."""


@functools.cache
def declared() -> Mapping[str, Alert]:
    """The alerts that jaxobs brings, by name; of one with several windows the first."""
    found: dict[str, Alert] = {}
    for each in alerting.declared(Site()):
        found.setdefault(each.name, each)
    return found


def page(alert: str) -> str:
    """Returns the address of an alert's runbook; of one that is not known, of the page about this agent."""
    return runbook_url(alert) if alert in TABLE else UNKNOWN_ALERT


def explains(cause: Cause, alert: str) -> bool | None:
    """Returns whether a fault can explain an alert; None for an alert that is not in the table: nobody knows."""
    row = TABLE.get(alert)
    if row is None:
        return None
    return cause.id in row.causes or cause.impact in row.impacts or bool({*cause.consequences} & {*row.causes})


def expected(alert: str) -> tuple[str, ...]:
    """Returns the diagnoses that can explain an alert, the likely ones first; all for one that is not in the table."""
    row = TABLE.get(alert)
    if row is None:
        return tuple(known())
    by_impact = [name for name, each in known().items() if each.impact in row.impacts]
    return tuple(dict.fromkeys((*row.causes, *by_impact)))


def filled(expr: str, alert: Alert, scope: Mapping[str, str]) -> str:
    """Returns an expression of a runbook for the series with these labels.

    Values come from outside and may look like a gap of the expression: they are put in last, quoted.
    """
    thresholds = {name: each.value for name, each in alert.thresholds.items()}
    names = sorted(scope)
    places = ", ".join(f'{name}="scope-{number}"' for number, name in enumerate(names))
    text = promql.filled(expr, places, thresholds)
    return _PLACE.sub(lambda place: promql.quoted(scope[names[int(place[1])]]), text)


def told(text: str, alert: Alert) -> str:
    """Returns a text of a runbook with the values of the thresholds in it."""

    def value(gap: re.Match[str]) -> str:
        known = alert.thresholds.get(gap[1])
        return gap[0] if known is None else human(known.value, known.unit)

    return _GAP.sub(value, text)
