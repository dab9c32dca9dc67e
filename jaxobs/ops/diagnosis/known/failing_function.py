"""A function of the program fails again and again, and the program catches it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import LINE, METRIC, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ANY_END, WRONG, Alert, Event, Knowledge, Line, Metric

LEAST = 5
SHARE = 0.01
"""Of the calls of a function: programs that try what fits, and then run for long, stay below."""
APART = 300
"""Lines of a log between two requests that fail, tracebacks and all: beyond, they are exceptions."""


def _often(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Of the requests in a log that fail, those that come close behind each other; of errors, those beside a count."""
    lines: defaultdict[tuple[str, str], list[Observation]] = defaultdict(list)
    for each in signs:
        if each.kind == LINE:
            lines[each.source, each.process].append(each)
    often = {
        key
        for key, some in lines.items()
        if len(some) >= LEAST and some[LEAST - 1].place - some[0].place <= APART * LEAST
    }
    kept = [each for each in signs if each.kind != LINE or (each.source, each.process) in often]
    counted = any(not each.name.startswith("error:") for each in kept)
    return [each for each in kept if counted and each.data.get("uncaught") != "yes"]


def _seldom(evidence: Evidence, sign: Observation) -> bool:
    """Whether few of the calls of that function failed."""
    calls = [
        each.value or 0.0
        for each in evidence.of_kind(METRIC)
        if each.name == _CALLS
        and each.process == sign.process
        and each.data.get("function") == sign.data.get("function")
    ]
    return sign.kind == METRIC and bool(calls) and (sign.value or 0.0) < SHARE * max(calls)


_CALLS = "jax_function_calls_total"

KNOWN = Knowledge(
    title="A function of the program raises again and again, and the program goes on",
    impact=WRONG,
    general=3,
    signs=(
        Alert("JaxFunctionErrors", weak=False),
        Alert("JaxRequestErrorsHigh"),
        Alert("JaxSloStepSuccessBurn"),
        Event("finding:failed_requests"),
        Event("error:.*"),
        # As many as the alert takes for a fault.
        Metric("jax_function_errors_total", over=2, labels=(("error", "(?!(?:KeyboardInterrupt|StopIteration)$).*"),)),
        Line(r"(?<=HTTP/1\.[01]\" )500\b", info=True, passes=False),
    ),
    narrow=_often,
    beside=(_CALLS,),
    ordinary=_seldom,
    follows=(ANY_END, "device_out_of_memory", "absurd_allocation", "nonfinite_values"),
    needs=("log", "event-log", "metrics-file", "target", "prometheus"),
    fix="See the exception and its line with `jaxobs explain`; steps or requests that fail are lost work.",
    collect="The event log, or the address of the process: `jaxobs explain` shows the exceptions that it caught.",
    runbook="JaxFunctionErrors",
)
