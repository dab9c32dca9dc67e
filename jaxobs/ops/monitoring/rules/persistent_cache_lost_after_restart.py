"""A start that compiles what its job used to load from the persistent cache."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "instance": "b:9464"}


def _requests(instance: str, result: str) -> str:
    whose = f'job="train", instance="{instance}:9464", function="f"'
    return f'jax_persistent_cache_requests_total{{{whose}, result="{result}"}}'


_COMPILED = 'jax_function_compile_seconds_sum{job="train", instance="b:9464", function="f", phase="compile"}'
_BEGAN = 'jax_process_start_timestamp_seconds{job="train", instance="b:9464"}'


def _restarted(before: str, seconds: str, began: str = "_x79 4800x80", last: str = "80") -> dict[str, str]:
    """Process a hit `f` (where `before` is `hit`) and is gone; b begins after 80 minutes and compiles it."""
    return {
        _requests("a", before): "1x70 stale",
        _requests("b", "miss"): f"_x81 1x{last}",
        _COMPILED: f"_x81 {seconds}",
        _BEGAN: began,
    }


ALERT = Alert(
    name="JaxPersistentCacheLostAfterRestart",
    severity="info",
    concern="performance",
    summary="After a restart, programs are compiled that were previously loaded from the persistent cache.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) has compiled for {{ $value | humanizeDuration }} "
        "since it started, for functions that earlier processes of the job had loaded from the "
        "persistent cache."
    ),
    expr=(
        "sum without (function, phase) (\n"
        '  jax_function_compile_seconds_sum{@fn, phase="compile"}\n'
        '  and on (job, instance, function) jax_persistent_cache_requests_total{@fn, result="miss"}\n'
        "  and on (job, function) last_over_time(job_function:jax_persistent_cache_hits:count{@fn}[7d] offset 1h)\n"
        ") > <seconds>\n"
        "and on (job, instance) (time() - jax_process_start_timestamp_seconds{@} < 3600)"
    ),
    for_="5m",
    labels={"phase": "compile"},
    thresholds={
        "seconds": Threshold(
            value=60,
            unit="seconds",
            least=0,
            most=86_400,
            why="A restart may cost a minute beyond loading; single small programs do not add up to it.",
        )
    },
    panel=("debug", "cache_results"),
    runbook=Runbook(
        meaning=(
            "Functions that processes of this job loaded from the persistent cache within the last "
            "week were looked up by a process that started within the last hour, missed, and were "
            "compiled: more than `<seconds>` in total. The cache worked before, and no longer does."
        ),
        impact=(
            "Restarts take as long as the very first start. In a job of many processes all of them "
            "pay, and each failure of a host costs minutes of all accelerators."
        ),
        diagnosis=(
            Step(
                do="Find out what differs: the event log names the part of the key.",
                command='grep \'"event":\\s*"cache_lookup"\' EVENTLOG | grep \'"result":\\s*"miss"\' | tail -n 5',
                answers=(
                    ("`flags`", "An XLA flag was added or changed, even one that is set to its default."),
                    (
                        "`program`",
                        (
                            "The code changed: expected once after a deployment. If it did not change, "
                            "it differs at each start."
                        ),
                    ),
                    ("`jaxlib`, `backend`, `devices`", "Another image, driver or kind of machine."),
                    ("its entry was deleted since", "The directory was emptied or evicts entries: see its size."),
                    ("it is in another directory", "The path changed: up to JAX 0.10 it is part of the key."),
                ),
            ),
            Step(
                do="See whether the entries exist.",
                query="jax_persistent_cache_entries{@}",
                answers=(
                    (
                        "0, or far fewer than before",
                        "Emptied: a new volume, a cleanup job, or eviction by `jax_compilation_cache_max_size`.",
                    ),
                    ("as many as before", "They exist under other keys."),
                    ("no answer", "A bucket, or a directory that jaxobs cannot see: list it manually."),
                ),
            ),
            Step(
                do="See whether a deployment changed versions.",
                query="count by (job, jaxobs, jax, jaxlib, plugin) (jax_build_info{@})",
                answers=(("two rows for one job", "Old and new processes: each version has its own entries."),),
            ),
        ),
        mitigation=(
            "After a deployment: wait. The next restart hits, unless the program differs each time.",
            "Restore the flags, the image or the directory path that the earlier processes had.",
            "Restore the volume, or fill the cache with `jaxobs cache warm EVENTLOG --script FILE "
            "--cache-dir DIR` before more processes restart.",
        ),
        look_alikes=(
            ("It never hit", "there were no hits in the last week", "JaxPersistentCacheIneffective"),
            ("New functions", "they were never looked up before", "nothing: they must be compiled once"),
            ("All processes at once", "ten or more compile the same function", "JaxThunderingCompile"),
        ),
        evidence=(
            "The lines of the misses from the event log, with `differs` and `reason`.",
            "`env | grep -E 'XLA|JAX|TPU'` of an old and of a new process.",
            "The output of `jaxobs cache inspect DIR`.",
        ),
        verify=("Restart one process: its lookups are `hit`, and the alert ends an hour after the last cold start."),
        gpu="Another GPU model means another key, and so does another CUDA version in the plugin.",
        tpu="Another topology means another key: a slice of another size starts cold.",
    ),
    cases=(
        Case(
            kind="firing",
            at="88m",
            series=_restarted("hit", "66x80"),
            fires=(Fired(labels=_LABELS, values=("1m 6s",)),),
        ),
        Case(kind="pending", at="85m", series=_restarted("hit", "66x80")),
        Case(kind="healthy", at="90m", series=_restarted("hit", "54x80")),
        Case(kind="healthy", at="90m", series=_restarted("miss", "66x80")),
        Case(
            kind="healthy",
            at="50m",
            series={
                _requests("b", "hit"): "_x1 1x80",
                _requests("b", "miss"): "_x1 1x80",
                _COMPILED: "_x1 66x80",
                _BEGAN: "0x80",
            },
        ),
        Case(kind="recovering", at="145m", series=_restarted("hit", "66x80")),
        Case(
            kind="target_gone",
            at="95m",
            series=_restarted("hit", "66x10 stale", "_x79 4800x12 stale", "10 stale"),
        ),
        Case(
            kind="counter_reset",
            at="88m",
            series={
                _requests("b", "hit"): "9x70 stale",
                _requests("b", "miss"): "4x70 _x10 1x80",
                _COMPILED: "300x70 _x10 66x80",
                _BEGAN: "0x70 _x8 4800x80",
            },
            fires=(Fired(labels=_LABELS, values=("1m 6s",)),),
        ),
    ),
)
