"""The processes of a job run different programs."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import STUCK, Alert, Event, Knowledge, Line

KNOWN = Knowledge(
    title="The processes of the job run different programs",
    impact=STUCK,
    signs=(
        Line("An unexpected (?:leader|peer) shows up in the launch group"),
        Line("INCONSISTENT_TPU_PROGRAM"),
        Line("likely caused by inconsistent (?:TPU programs|HLO module)"),
        Line("[Ff]ingerprint mismatch"),
        Line(r"\bMPI_ERR_TRUNCATE\b"),
        Line(r"Received data size doesn't match expected size|[Cc]ollective (?:operation )?mismatch"),
        Line(r"NCCL WARN .{0,80}[Mm]essage truncated ?: receiv"),
        Line(
            r"sync_global_devices name mismatch|Conflicting tasks specified for the same barrier|"
            r"non-participating task \([^)]*\) called the barrier"
        ),
        Event("finding:diverging_programs"),
        Alert("JaxProgramDivergence", weak=False),
    ),
    follows=("version_skew", "inputs_differ"),
    needs=("log", "event-log", "target"),
    fix=(
        "Use one image, one set of versions and flags (XLA_FLAGS, LIBTPU_INIT_ARGS) and the same "
        "shapes in the same order on every process; compare their HLO dumps (`jaxobs doctor "
        "--xla-dump A B`)."
    ),
    runbook="JaxProgramDivergence",
)
