"""A process that grows on its host."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jax_findings{job="train", instance="a:9464", finding="host_memory_leak"}'
_LABELS = {"job": "train", "instance": "a:9464", "finding": "host_memory_leak"}

ALERT = Alert(
    name="JaxHostMemoryGrowth",
    severity="warning",
    concern="capacity",
    summary="The memory of a process on its host keeps growing.",
    description=("The memory of {{ $labels.instance }} ({{ $labels.job }}) on its host grows for as long as it runs."),
    expr='jax_findings{@, finding="host_memory_leak"} > 0',
    for_="15m",
    keep_firing_for="10m",
    panel=("debug", "host"),
    runbook=Runbook(
        meaning=(
            "jaxobs detects that the resident memory of the process, excluding the arrays of the CPU "
            "backend, rises steadily and does not fall: results that were fetched and kept, an "
            "unbounded cache, an input pipeline that reads too far ahead, or a native library."
        ),
        impact=(
            "When the limit of the container or the memory of the host is reached, the kernel kills "
            "the process without notice: no exception, no report, and in a job of several processes "
            "all others stop as well."
        ),
        diagnosis=(
            Step(
                do="Ask the process for the function whose results are kept, if there is one.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    (
                        "a function is named",
                        "Its results are fetched (`np.asarray`, `jax.device_get`) and kept: look at its callers.",
                    ),
                    ("no function is named", "Not results of JAX: the input, a cache, a library."),
                ),
            ),
            Step(
                do="On the host, compare the memory with its limit.",
                command="grep -E 'VmRSS|RssAnon|RssShmem' /proc/PID/status; cat /sys/fs/cgroup/memory.max",
                answers=(
                    ("`RssShmem` grows", "Shared memory: workers of the input pipeline."),
                    ("`RssAnon` grows", "The process's own objects: the next step."),
                    ("near the limit", "Restart it before the kernel does."),
                ),
            ),
            Step(
                do="Find the lines that allocate, for two minutes.",
                command="memray attach --duration 120 PID",
                answers=(
                    ("a line of the program", "What it allocates is kept: see what holds it."),
                    ("a native library", "Report it to its authors; look for a newer version."),
                ),
            ),
            Step(
                do="See whether compiled programs grow as well.",
                query="deriv(jax_executables{@}[1h]) * 3600",
                answers=(
                    ("it rises", "That is the reason: JaxExecutableLeak."),
                    ("about 0", "It is not the programs."),
                ),
            ),
        ),
        mitigation=(
            "Take a checkpoint, and restart from it before the limit is reached.",
            "Bound what is kept: `collections.deque(maxlen=...)`, "
            "`functools.lru_cache(maxsize=...)`, fewer prefetched batches.",
            "Raise the limit of the container, if the memory it needs is bounded after all.",
        ),
        look_alikes=(
            ("Arrays on a device", "`jax_live_array_bytes` rises", "JaxArrayLeak"),
            ("Compiled programs", "`jax_executables` rises", "JaxExecutableLeak"),
            (
                "The page cache of files that were read",
                "`memory.current` of the container rises, `VmRSS` does not",
                "nothing: the kernel reclaims it",
            ),
        ),
        evidence=(
            "`/proc/PID/status`, twice, an hour apart.",
            "The output of `jaxobs explain` and of `memray`.",
            "The settings of the input pipeline: workers, prefetched batches.",
        ),
        verify="The resident memory stays level for some hours of normal work, and the finding is over.",
        tpu="Checkpoints and batches in `pinned_host` memory count here as well: see `jax_live_array_space_bytes`.",
    ),
    cases=(
        Case(kind="firing", at="30m", series={_SERIES: "0x9 1x60"}, fires=(Fired(labels=_LABELS),)),
        Case(kind="pending", at="20m", series={_SERIES: "0x9 1x60"}),
        Case(kind="healthy", at="60m", series={_SERIES: "0x60"}),
        Case(kind="healthy", at="60m", series={_SERIES.replace("host_memory_leak", "array_leak"): "1x60"}),
        Case(kind="recovering", at="55m", series={_SERIES: "0x9 1x30 0x30"}),
        Case(kind="target_gone", at="55m", series={_SERIES: "0x9 1x30 stale"}),
    ),
)
