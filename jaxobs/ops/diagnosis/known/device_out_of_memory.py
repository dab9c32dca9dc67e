"""The memory of a device ran out."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import ALERT, METRIC, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Alert, Event, Knowledge, Line, Metric


def _of_a_device(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """On the CPU, a counter does not tell the memory of the device from that of the host."""
    return [
        each for each in signs if each.kind not in (ALERT, METRIC) or not each.data.get("device", "").startswith("cpu")
    ]


KNOWN = Knowledge(
    title="A device ran out of memory",
    impact=ENDED,
    general=1,
    signs=(
        Line(
            r"RESOURCE_EXHAUSTED:.{0,80}(?:[Oo]ut of memory|Ran out of memory|allocat|\bhbm\b|"
            "compile permanent error|Attempting to)",
            unless=r"host memory|on host\b",
        ),
        Line(r"Out of memory (?:while trying to allocate|allocating) [\d.,]+", unless=r"on host\b"),
        Line(r"E010[01]: ?Runtime\w*AllocationFailure|CompileTimeHbmOom"),
        Line("Error loading program .{0,200}Attempting to reserve"),
        Line("Error allocating device buffer"),
        Line(r"Failed to allocate \d+ bytes for new constant"),
        Line(
            "CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|"
            "HIP out of memory",
            unless=r"on host\b",
        ),
        Line(r"Memory usage: \d{1,8} bytes free"),
        Line(r"CU\w+_STATUS_\w*ALLOC(?:ATION)?_FAILED|cudaErrorMemoryAllocation|cuMemAlloc\w* failed"),
        Line(
            "Failed to determine best cudnn convolution algorithm",
            unless_followed="DNN library|NOT_INITIALIZED|VERSION_MISMATCH|UNIMPLEMENTED|not initialized",
        ),
        Line(
            r"Shared memory (?:size limit exceeded|requested exceeds)|out of resource: shared memory|scoped vmem limit|"
            r"uses? too much shared data"
        ),
        Line(
            r"exceeds the legitimate user allocatable offset|Exceeded \w+ capacity by [\d.]+|"
            "No viable logical replica count for the embedding table"
        ),
        Line(r"unlikely to have enough memory\. Requires [\d.]+"),
        Line(r"Ran out of memory in memory space \w+|SparseCore Hbm usage .{0,80}exceeding available"),
        Event("out_of_memory:(?:compile|load|run|allocate|unknown):(?!host_limit).*"),
        Metric("jax_out_of_memory_total"),
        Metric("jax_out_of_memory_total", labels=(("device", "cpu.*"),), weak=True),
        Alert("JaxOutOfMemory", weak=False),
        Alert("JaxOutOfMemory"),
        Line(
            r"(?:failed|[Ee]rror|\(\w+\)): out of memory\b|CUFFT_ALLOC_FAILED|STATUS_(?:ERROR_)?(?:INSUFFICIENT_|"
            r"OUT_OF_)RESOURCES|"
            r"MIOPEN_STATUS_ALLOC_FAILED|RMM failure|hipErrorMemoryAllocation",
            unless=r"on host\b|[Hh]ost memory",
        ),
        Line(
            r"Cuda failure (?:\d+ )?'?out of memory|: the resource allocation failed|Failed to CUDA (?:malloc|calloc)|"
            r"(?:Xla|Jax)RuntimeError: INTERNAL: (?:[^:]{1,80}: )?[Ff]ailed to alloc(?:ate)? [\d.]+",
            unless=r"on host\b|pinned",
        ),
        Line(
            r"(?:Xla|Jax)RuntimeError: RESOURCE_EXHAUSTED: |RuntimeError: Resource exhausted: ",
            unless=r"host|gs://|s3://|HTTP|[Qq]uota|message larger|retry|threads?\b|ENOSPC|space left|files|grpc|RPC|"
            r"message length|cache|descriptor|vmem|smem|shared memory",
        ),
        Line(
            r"RESOURCE_EXHAUSTED:.{0,200}(?:HBM|\bhbm\b|[Mm]emory|\b[Aa]lloc)",
            unless=r"host memory|on host\b|gs://|s3://|HTTP|[Qq]uota|message larger",
        ),
    ),
    narrow=_of_a_device,
    follows=("absurd_allocation", "host_out_of_memory", "memory_leak", "recompilation", "accelerator_memory_taken"),
    needs=("log", "event-log", "metrics-file", "target", "prometheus"),
    shown_by=("event-log",),
    fix=(
        "Shard or rematerialize, donate what is not needed, or make the batch smaller; `jaxobs "
        "report EVENTLOG` shows what held the memory."
    ),
    collect="An event log of the run: it records what held the memory.",
    runbook="JaxOutOfMemory",
)
