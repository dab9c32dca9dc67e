"""A compilation does not end."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import STUCK, Alert, Knowledge, Line

KNOWN = Knowledge(
    title="A compilation does not end",
    impact=STUCK,
    signs=(
        Line(r"\[Compiling module .{0,200}\] Very slow compile\?", weak=True, info=True),
        Alert("JaxCompilationStuck", weak=False),
    ),
    refuted_by=(Line(r"The operation took \d", info=True),),
    needs=("log", "prometheus"),
    fix=(
        "See what compiles (`jaxobs top`) and where it is (`py-spy dump --native`): a large "
        "unrolled module, autotuning, or processes that wait for each other with different "
        "programs."
    ),
    collect=(
        "Whether that compilation ended, and the native stacks of the process (`py-spy dump --native --pid PID`)."
    ),
    runbook="JaxCompilationStuck",
)
