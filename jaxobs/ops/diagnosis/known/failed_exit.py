"""A process ended itself with an exit code that tells of a failure, and did not say which."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, SYMPTOM, Event, Knowledge

KNOWN = Knowledge(
    title="A process ended with an exit code other than 0, and not by an exception",
    impact=ENDED,
    role=SYMPTOM,
    general=4,
    signs=(Event(r"exit:code:\d+"),),
    follows=(
        ANY_END,
        "collective_stuck",
        "compile_stuck",
        "failing_function",
        "input_bound",
        "killed",
        "memory_leak",
        "native_crash",
        "nccl_failure",
        "nonfinite_input",
        "nonfinite_values",
        "other_failed",
        "peer_lost",
        "process_stuck",
        "programs_diverge",
        "runtime_error",
        "version_skew",
        "wrong_kernel",
    ),
    needs=("event-log", "target"),
    fix="Read what it printed last.",
    collect="The log of the process to its end: before it left with that code, it probably said why.",
)
