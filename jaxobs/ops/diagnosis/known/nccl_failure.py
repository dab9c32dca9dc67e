"""A collective failed in NCCL; what broke is often elsewhere."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, SYMPTOM, Knowledge, Line

KNOWN = Knowledge(
    title="A collective failed in NCCL",
    impact=ENDED,
    role=SYMPTOM,
    general=2,
    signs=(
        Line(r"NCCL operation \w+.{0,80}failed"),
        Line("nccl(?:Remote|System|UnhandledCuda|Internal)Error"),
        Line("NCCL (?:error|failure) "),
    ),
    follows=(
        ANY_END,
        "nccl_start",
        "network_fault",
        "gpu_hardware",
        "kernel_fault",
        "peer_lost",
        "killed",
        "native_crash",
    ),
    fix="Read the first error of every process.",
    collect=("The logs of all processes with NCCL_DEBUG=WARN, and the kernel's messages of their hosts."),
    runbook="JaxFunctionErrors",
)
