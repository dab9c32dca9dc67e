"""A function of the program fails again and again, and the program catches it."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ANY_END, WRONG, Alert, Knowledge

KNOWN = Knowledge(
    title="A function of the program raises again and again, and the program goes on",
    impact=WRONG,
    general=4,
    signs=(
        Alert("JaxFunctionErrors", weak=False),
        Alert("JaxRequestErrorsHigh"),
        Alert("JaxSloStepSuccessBurn"),
    ),
    follows=(ANY_END, "device_out_of_memory", "absurd_allocation", "nonfinite_values"),
    needs=("prometheus",),
    fix="See the exception and its line with `jaxobs explain`; steps or requests that fail are lost work.",
    collect="The event log, or the address of the process: `jaxobs explain` shows the exceptions that it caught.",
    runbook="JaxFunctionErrors",
)
