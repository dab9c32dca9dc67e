"""The host, or the container, ran out of memory."""

from __future__ import annotations

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, NOT_YET_KILLED, Alert, Event, Knowledge, Line, Metric

_TERMINATED = "kube_pod_container_status_last_terminated_reason"
"""Of kube-state-metrics."""


def _is_of_others(evidence: Evidence, sign: Observation) -> bool:
    """Whether a container ended before the time that is looked at, or is none of a process with JAX."""
    if sign.name != _TERMINATED:
        return False
    pod = (sign.data.get("namespace", ""), sign.data.get("pod", ""))
    return pod not in counters.pods(evidence, sign.source) or not counters.has_just_become(evidence, sign)


KNOWN = Knowledge(
    title="The host or the container ran out of memory",
    impact=ENDED,
    general=1,
    signs=(
        Line(r"(?:Memory cgroup o|O)ut of memory: Kill(?:ed)? process \d+", info=True, passes=False),
        Line("oom-kill:constraint=|System OOM encountered", info=True, passes=False),
        Line(
            r"\"OOMKilled\"\s*:\s*true|\bOOMKilled\b(?![\"']?\s*[:=]\s*[\"']?(?:false|False|0|no)\b)",
            info=True,
            passes=False,
        ),
        Line(r"^srun: error: \S+: tasks? [\d,-]+: Out Of Memory", info=True, passes=False),
        Line("oom_reaper: reaped process", info=True, passes=False),
        Line(r"[Dd]etected \d+ oom[-_ ]kill event|oom_kill event", info=True, passes=False),
        Line(
            r"(?:low on resource: memory|MemoryPressure\b.{0,40}[Ee]vict|"
            "[Ee]vict.{0,60}MemoryPressure)",
            info=True,
            passes=False,
        ),
        Line(r"killed due to the node running low on memory|ray\.exceptions\.OutOfMemoryError", passes=False),
        Line(r"(?:^|[\s.])_?(?:Array)?MemoryError\b(?!:? was)", unless="RMM"),
        Line("std::bad_alloc", unless="RMM"),
        Line("Cannot allocate memory", unless="ibv_|NET/(?:IB|OFI)"),
        Event(r"out_of_memory:(?:host:.*|\w+:host_limit.*)"),
        Metric("jax_out_of_memory_total", labels=(("device", "cpu.*"),), weak=True),
        Event("finding:host_memory_leak", weak=True),
        Line(
            r"\"?[Ee]xit(?:ed)?(?: with)?(?: exit)?[ -]?(?:[Cc]ode|status)?[\":= ]*\(?137\b|^Killed$|"
            r"\bline \d+: +\d+ Killed\b|^\w*sh: killed\b|SIGKILL|[Ss]ignal:? 9\b",
            unless=NOT_YET_KILLED,
            weak=True,
            info=True,
            passes=False,
        ),
        Alert("JaxHostMemoryGrowth"),
        Metric(_TERMINATED, labels=(("reason", "OOMKilled"),)),
        Line(
            r"[Ee]xceeded (?:job )?memory limit|job killed: mem \w+ exceeded|[Oo]ut of host memory|"
            r"bytes (?:of pinned host memory|on host\b)|"
            r"cu(?:da)?(?:Mem)?HostAlloc failed|NCCL WARN Failed to (?:malloc|CUDA host alloc)|"
            r"used more memory than|DefaultCPUAllocator: (?:can't allocate|"
            r"not enough) memory",
            passes=False,
        ),
        Line(
            r"[Aa]llocator \(?\w*(?:host_bfc|cpu_allocator_for_gpu)\w*\)? ran out of memory|"
            r"RESOURCE_EXHAUSTED:.{0,120}\ballocator \w*host_bfc",
            unless="is not a failure",
        ),
        Line(
            r"TERM_MEMLIMIT|exceeded MEM usage (?:hard|soft) limit|gone over (?:\w+ )?memory limit|"
            r"ran out-of-memory and exited|"
            r"systemd-oomd.{0,40}Killed|Killed .{0,80}due to memory|exceeded .{0,20}memory limit.{0,40}kill",
            info=True,
            passes=False,
        ),
    ),
    rivals=("preemption",),
    needs=("log", "event-log", "metrics-file", "target", "prometheus"),
    fix=(
        "Give the container more memory, or use less: fewer loader workers and prefetched "
        "batches, no copies of the data set in each process, checkpoints restored by shard."
    ),
    collect=(
        "The kernel's messages of the host (`dmesg -T | grep -i -E 'oom|killed process'`) and "
        "the state of the pod (`kubectl describe pod`): reason and exit code."
    ),
    runbook="JaxHostMemoryGrowth",
    ordinary=_is_of_others,
)
