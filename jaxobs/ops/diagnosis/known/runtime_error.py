"""JAX's runtime failed with a text that no diagnosis knows."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, SYMPTOM, Knowledge, Line

KNOWN = Knowledge(
    title="JAX's runtime raised an error that no diagnosis knows",
    impact=ENDED,
    role=SYMPTOM,
    general=2,
    signs=(
        Line(
            "(?:Xla|Jax)RuntimeError: (?:INTERNAL|UNKNOWN|UNAVAILABLE|ABORTED|CANCELLED|DATA_LOSS|"
            r"DEADLINE_EXCEEDED|FAILED_PRECONDITION|UNIMPLEMENTED|RESOURCE_EXHAUSTED)\b",
            unless=r"[Cc]allback error\b",
        ),
        Line(
            r"(?:^|StackTrace: )RuntimeError: (?:Bad StatusOr access: |\()?(?:INTERNAL|UNKNOWN|ABORTED|UNAVAILABLE|"
            r"CANCELLED|UNIMPLEMENTED|"
            r"[Ii]nternal|[Uu]nknown|[Aa]borted|[Uu]navailable|[Cc]ancelled|[Uu]nimplemented|DATA_LOSS|"
            r"DEADLINE_EXCEEDED|"
            r"[Dd]eadline exceeded|FAILED_PRECONDITION|[Ff]ailed precondition|RESOURCE_EXHAUSTED|"
            r"[Rr]esource exhausted)\b: ?"
        ),
        Line(r"\b(?:INTERNAL|Internal): RET_CHECK failure"),
        Line(
            r"errors_impl\.(?:Aborted|Unavailable|Cancelled|Internal|DeadlineExceeded|Unknown|"
            r"FailedPrecondition)Error\b",
            unless=r"FailedPreconditionError: .{0,300}\[Op:",
        ),
    ),
    follows=(
        ANY_END,
        "peer_lost",
        "killed",
        "native_crash",
        "collective_stuck",
        "nccl_failure",
    ),
    fix="Look for the first error of the runtime above it, in every process.",
    collect=(
        "The lines above the error (those of `.cc` files above all) with TF_CPP_MIN_LOG_LEVEL=0, "
        "the logs of the other processes, and the text searched for in the issues of JAX and XLA."
    ),
    runbook="JaxFunctionErrors",
)
