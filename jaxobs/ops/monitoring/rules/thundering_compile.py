"""Many processes that compile one and the same program at once."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "function": "f"}


def _job(processes: int, seconds: str, begin: str, compiled: str, count: str = "1x60") -> dict[str, str]:
    """Processes that begin at a time (in seconds) and compile one function in that many seconds."""
    found = {}
    for number in range(processes):
        whose = f'job="train", instance="{number}:9464"'
        found[f"jax_process_start_timestamp_seconds{{{whose}}}"] = begin
        found[f'jax_compilations_total{{{whose}, function="f", cause="first_call", cache="miss"}}'] = compiled
        found[f'jax_function_compile_seconds_sum{{{whose}, function="f", phase="compile"}}'] = seconds
        found[f'jax_function_compile_seconds_count{{{whose}, function="f", phase="compile"}}'] = count
    return found


_START = "_x30 1800x60"
_ONCE = "_x31 1x60"

ALERT = Alert(
    name="JaxThunderingCompile",
    severity="info",
    concern="performance",
    summary="Many processes compile the same program at once.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} compiled {{ $labels.function }} in "
        "the last 10 minutes, each by itself: none found it in a persistent cache."
    ),
    expr=(
        "count by (job, function) (job_instance_function:jax_compilations:increase10m{@fn} > 0) >= <processes>\n"
        "and\n"
        "job_function:jax_function_compile_seconds:mean{@fn} > <seconds>"
    ),
    for_="2m",
    keep_firing_for="10m",
    labels={"phase": "compile"},
    thresholds={
        "processes": Threshold(
            value=10,
            unit="count",
            least=2,
            most=1_000_000,
            why=(
                "A few processes that start together are normal; with ten or more, the same work is "
                "worth doing only once."
            ),
        ),
        "seconds": Threshold(
            value=20,
            unit="seconds",
            least=0,
            most=86_400,
            why="Loading from a cache takes up to some seconds as well: less than this is not worth sharing.",
        ),
    },
    panel=("fleet", "compiling_processes"),
    runbook=Runbook(
        meaning=(
            "At least `<processes>` processes of one job compiled the same function within 10 "
            "minutes, in more than `<seconds>` each. In JAX every process compiles for itself; only "
            "a persistent cache that all of them share, and that one has filled, saves the others "
            "the work."
        ),
        impact=(
            "The job starts or continues only when the last process has compiled. Processes on the "
            "same host slow each other down. Scaling up under load takes as long as a cold start."
        ),
        diagnosis=(
            Step(
                do="See the results of the processes' lookups.",
                query="sum by (job, result) (jax_persistent_cache_requests_total{@fn})",
                answers=(
                    (
                        "only `disabled`",
                        "No cache: set `JAX_COMPILATION_CACHE_DIR` to a directory that all hosts share.",
                    ),
                    ("mostly `miss`", "There is a cache without the program: the next step shows why."),
                    ("`hit` rises now", ("The first processes have stored it, the rest load it: it ends by itself.")),
                ),
            ),
            Step(
                do="See why programs are not stored.",
                query="sum by (job, reason) (jax_persistent_cache_unsaved_total{@})",
                answers=(
                    (
                        "`not_writer`",
                        "Only process 0 stores; the others wait for its entry only if the directory is shared.",
                    ),
                    ("`callbacks`, `too_fast`", "JAX does not store such programs: see docs/persistent-cache.md."),
                    ("`error`", "JaxPersistentCacheNotSaving has the steps."),
                ),
            ),
            Step(
                do="Test on one machine whether a second start hits.",
                command="jaxobs cache verify -- python train.py",
                answers=(
                    (
                        "The warm start hits.",
                        "The cache works there: the hosts do not share the directory, or its path differs.",
                    ),
                    (
                        "the key differs",
                        ("The command names the part that differs from process to process, and the fix."),
                    ),
                ),
            ),
        ),
        mitigation=(
            ("If it is a single start, wait: it ends when all have compiled. Do not restart, which starts it over."),
            "Start one process first, and the others when it has stored its programs.",
            "Fill the shared cache before the deployment: `jaxobs cache warm EVENTLOG --script FILE --cache-dir DIR`.",
        ),
        look_alikes=(
            (
                "One process keeps recompiling",
                "only one instance, with causes other than `first_call`",
                "JaxRecompilationStorm",
            ),
            (
                "The cache had it before the restart",
                "yesterday's processes of the job hit",
                "JaxPersistentCacheLostAfterRestart",
            ),
            (
                "Processes wait for each other while compiling",
                "compilations are in progress and do not end",
                "JaxCompilationStuck",
            ),
        ),
        evidence=(
            "The number of processes and the compile time, from the panel.",
            "`jax_compilation_cache_dir` and `XLA_FLAGS` of two of the processes.",
            "The output of `jaxobs cache verify`.",
        ),
        verify="At the next start most lookups are `hit`, and the panel shows fewer than `<processes>` processes "
        "compiling.",
        gpu="With `jax_share_binary_between_hosts`, one process compiles and sends the program to "
        "the others; it waits if their programs differ.",
        tpu="Hosts of one slice run one program: with a shared bucket as the cache, only the first "
        "start after a change is cold.",
    ),
    cases=(
        Case(
            kind="firing",
            at="34m",
            series=_job(11, "_x31 22x60", _START, _ONCE),
            fires=(Fired(labels=_LABELS, values=("11",)),),
        ),
        Case(kind="pending", at="32m", series=_job(11, "_x31 22x60", _START, _ONCE)),
        Case(kind="healthy", at="35m", series=_job(9, "_x31 22x60", _START, _ONCE)),
        Case(kind="healthy", at="35m", series=_job(11, "_x31 17x60", _START, _ONCE)),
        Case(kind="healthy", at="8m", series=_job(11, "22x60", "-9000x60", "1x60")),
        Case(kind="recovering", at="65m", series=_job(11, "_x31 22x60", _START, _ONCE)),
        Case(kind="target_gone", at="60m", series=_job(11, "_x31 22x8 stale", "_x30 1800x8 stale", "_x31 1x8 stale")),
        Case(
            kind="counter_reset",
            at="36m",
            series=_job(11, "50x31 22x60", "0x29 1800x60", "2x31 1x60", "2x31 1x60"),
            fires=(Fired(labels=_LABELS, values=("11",)),),
        ),
    ),
)
