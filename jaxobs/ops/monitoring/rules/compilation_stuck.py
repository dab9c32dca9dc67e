"""A compilation that does not end."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_compilation_oldest_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464"}

ALERT = Alert(
    name="JaxCompilationStuck",
    severity="critical",
    concern="availability",
    summary="A compilation has been in progress for very long.",
    description="{{ $labels.instance }} ({{ $labels.job }}) has been compiling one program for {{ $value | "
    "humanizeDuration }}.",
    expr="time() - jax_compilation_oldest_start_timestamp_seconds{@} > <seconds>",
    for_="5m",
    thresholds={
        "seconds": Threshold(
            value=3600,
            unit="seconds",
            least=60,
            most=604_800,
            why="The largest programs compile for tens of minutes. A compilation that takes an hour "
            "is waiting for something, or was unrolled.",
        )
    },
    panel=("debug", "in_progress"),
    runbook=Runbook(
        meaning=(
            "One phase of a compilation (tracing, lowering, compiling or loading) started more than "
            "`<seconds>` ago and has not ended. JAX announces the start of each phase, so this is "
            "detected while it is in progress. A deployment does not silence this alert, because no "
            "deployment takes that long."
        ),
        impact=(
            "The compiling thread does nothing else, and every caller of the same function waits "
            "with it. In a job of several processes, all others wait in their next collective: no "
            "step is made."
        ),
        diagnosis=(
            Step(
                do="See which processes are compiling, and for how long.",
                query="time() - jax_compilation_oldest_start_timestamp_seconds{@}",
                answers=(
                    (
                        "all processes of the job, for a similar time",
                        ("They wait for each other: they lowered different programs and exchange autotuning results."),
                    ),
                    ("one process", "Its program or its host: continue."),
                ),
            ),
            Step(
                do="See which function and phase it is.",
                command="curl -s http://HOST:9464/api/v1/snapshot | python3 -m json.tool | grep -A 12 "
                "'\"in_progress\"'",
                answers=(
                    (
                        "`trace` or `lower`",
                        "Python: an unrolled loop, or captured constants. Look at its stack.",
                    ),
                    ("`compile`", "The compiler: look at its log and at the native stack."),
                    ("`cache_load`", "The cache's storage hangs, or waits for a lock."),
                ),
            ),
            Step(
                do="Look at the stacks of the process, on its host.",
                command="py-spy dump --native --pid PID",
                answers=(
                    (
                        "`GetKeyValue`, `AutotunerPass`",
                        "It waits for autotuning results of the other processes: their programs differ.",
                    ),
                    (
                        "`filelock`, `lru_cache.py`",
                        "It waits for the lock of the cache directory, on a network disk, although "
                        "no process holds it any more.",
                    ),
                    ("a function of your own under `trace`", "Python is still tracing it."),
                ),
            ),
            Step(
                do="Look for the compiler's own warning.",
                command="grep -E 'slow_operation_alarm|Very slow compile|is taking a while' LOG",
                answers=(
                    ("`Very slow compile`", "The program is too large: unrolled layers, or huge constants."),
                    ("`Trying algorithm`", "Autotuning: it ends, perhaps after hours."),
                ),
            ),
        ),
        mitigation=(
            "If all processes wait for each other, stop the job and restart it: it does not end by "
            "itself for 24 hours.",
            (
                "If the program is large and this is its first time, let it finish: the persistent cache "
                "keeps the result."
            ),
            "Remove a stale lock file in the cache directory, if no process holds it.",
            "To prevent it: scan over layers, pass constants as arguments, and make sure that all "
            "processes lower the same program.",
        ),
        look_alikes=(
            ("Many short compilations in a row", "the start in progress is always recent", "JaxRecompilationStorm"),
            ("No compilation, and no step either", "nothing is in progress", "docs/several-processes.md, on `stuck`"),
            ("It ends, but takes longer than before", "minutes, at each start", "JaxCompileTimeRegression"),
        ),
        evidence=(
            "The function, phase and elapsed time, from the snapshot.",
            "The stacks from `py-spy dump --native` of two processes, a minute apart.",
            "The versions, `XLA_FLAGS`, and the last 100 lines of the log.",
        ),
        verify="Nothing is in progress on the panel, and steps are counted again.",
        gpu="On GPUs, autotuning is the most common cause. "
        "`--xla_gpu_experimental_enable_fusion_autotuner=false` disables it, at the cost of "
        "speed.",
    ),
    cases=(
        Case(
            kind="firing",
            at="77m",
            series={_SERIES: "600x120"},
            fires=(Fired(labels=_LABELS, values=("1h 7m 0s",)),),
        ),
        Case(kind="pending", at="74m", series={_SERIES: "600x120"}),
        Case(kind="healthy", at="69m", series={_SERIES: "600x120"}),
        Case(kind="healthy", at="100m", series={_SERIES: "600x30 2400x30 4200x60"}),
        Case(kind="recovering", at="90m", series={_SERIES: "600x80 5000x30"}),
        Case(kind="target_gone", at="90m", series={_SERIES: "600x80 stale"}),
    ),
)
