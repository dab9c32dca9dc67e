"""A start that compiles most of what the job's earlier processes had looked up already."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "instance": "b:9464"}


def _requests(instance: str, function: str, result: str) -> str:
    whose = f'job="train", instance="{instance}:9464", function="{function}", result="{result}"'
    return f"jax_persistent_cache_requests_total{{{whose}}}"


def _start(hits: str, misses: str, began: str = "_x79 4800x80") -> dict[str, str]:
    """Process a looked `f` and `g` up and is gone; b begins after 80 minutes, and hits `g` and misses `f`."""
    return {
        _requests("a", "f", "miss"): "1x70 stale",
        _requests("a", "g", "miss"): "1x70 stale",
        _requests("b", "g", "hit"): hits,
        _requests("b", "f", "miss"): misses,
        'jax_process_start_timestamp_seconds{job="train", instance="b:9464"}': began,
    }


ALERT = Alert(
    name="JaxPersistentCacheIneffective",
    severity="info",
    concern="performance",
    summary="Most lookups in the persistent cache miss, although the job ran before.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) did not find {{ $value | humanizePercentage }} "
        "of its programs in the persistent cache, for functions that earlier processes of the job "
        "had also looked up."
    ),
    expr=(
        "sum without (function, result) (\n"
        '  jax_persistent_cache_requests_total{@fn, result="miss"}\n'
        "  and on (job, function) last_over_time(job_function:jax_persistent_cache_lookups:count{@fn}[1d] offset 1h)\n"
        ")\n"
        "/\n"
        '(sum without (function, result) (jax_persistent_cache_requests_total{@fn, result=~"hit|miss"}) > <lookups>)\n'
        "> <share>\n"
        "and on (job, instance) (time() - jax_process_start_timestamp_seconds{@} < 3600)"
    ),
    for_="10m",
    labels={"phase": "compile"},
    thresholds={
        "share": Threshold(
            value=0.5,
            unit="ratio",
            least=0.01,
            most=0.99,
            why="A new version changes some programs, and small ones are never stored; if most are "
            "missing, the cache is of no use.",
        ),
        "lookups": Threshold(
            value=10,
            unit="count",
            least=1,
            most=100_000,
            why=(
                "With fewer lookups the share says little: a few single operations that compile too fast to be stored."
            ),
        ),
    },
    panel=("oncall", "cache_hit_ratio"),
    runbook=Runbook(
        meaning=(
            "A process that started within the last hour looked up more than `<lookups>` programs, "
            "and more than `<share>` of them were missing although earlier processes of its job had "
            "looked up the same functions. The cache is on but has no effect."
        ),
        impact=(
            "Each start recompiles known programs: restarts after a failure, deployments and scaling "
            "up take minutes longer, and the accelerators are idle meanwhile."
        ),
        diagnosis=(
            Step(
                do="Read why each program missed: the event log has the part of the key that differs.",
                command='grep \'"event":\\s*"cache_lookup"\' EVENTLOG | grep -o \'"reason":\\s*"[^"]*"\' | sort | '
                "uniq -c",
                answers=(
                    (
                        "another XLA flag, jaxlib or device",
                        "The environment changed: pin it, or expect one cold start.",
                    ),
                    (
                        "another program for the same argument types",
                        "Something in the code differs from start to start, or it was edited.",
                    ),
                    ("was never stored", "Too fast, too small, callbacks: see the next step."),
                ),
            ),
            Step(
                do="See why programs are not stored.",
                query="sum by (job, reason) (jax_persistent_cache_unsaved_total{@})",
                answers=(
                    ("`too_fast`", ("Set `jax_persistent_cache_min_compile_time_secs` to 0 to store them as well.")),
                    ("`callbacks`", "Remove `jax.debug.print` and checks from production code."),
                    ("`not_writer`", "Only process 0 stores: the others need access to its directory."),
                    ("`error`", "JaxPersistentCacheNotSaving has the steps."),
                ),
            ),
            Step(
                do="See whether the entries exist and can be read.",
                command="jaxobs cache inspect DIR --event-log EVENTLOG",
                answers=(
                    ("PROBLEM (broken_entries)", "Delete the files it names: JAX never replaces them."),
                    ("no entries", "The directory is new at each start, or entries go to another one."),
                    ("entries, and no problem", "The keys differ: try the next step."),
                ),
            ),
            Step(
                do="Test whether a second start hits at all.",
                command="jaxobs cache verify -- python train.py --steps 3",
                answers=(
                    (
                        "The warm start hits.",
                        "The environment of the real job differs: flags, versions, path of the directory.",
                    ),
                    ("PROBLEM: ... was recompiled", ("The command reports the reason and the fix for each function.")),
                ),
            ),
        ),
        mitigation=(
            "You can leave it at night: the process works once it has compiled.",
            "Give all processes the same directory, at the same path, on storage that outlives them.",
            "Fill it before a deployment with `jaxobs cache warm EVENTLOG --script FILE --cache-dir DIR`.",
        ),
        look_alikes=(
            (
                "The first start of a new version",
                "the program differs, and the next start hits",
                "nothing: this is expected once",
            ),
            ("It hit before", "earlier processes had hits", "JaxPersistentCacheLostAfterRestart"),
            ("Writing fails", "the reason is `error` or `unknown`", "JaxPersistentCacheNotSaving"),
            ("No cache at all", "`result` is `disabled`", "docs/persistent-cache.md"),
        ),
        evidence=(
            "The reasons of the misses, from the event log.",
            "The output of `jaxobs cache inspect` and of `jaxobs cache verify`.",
            "`XLA_FLAGS`, the versions and the directory's path of an old and of a new process.",
        ),
        verify="After the next start of the same version, most lookups are `hit` on the panel.",
        gpu="On GPUs, the autotuner's choices are part of the compile and have their own directory "
        "inside the cache, which is disabled in buckets.",
        tpu="`LIBTPU_INIT_ARGS` is part of the key, like `XLA_FLAGS`.",
    ),
    cases=(
        Case(
            kind="firing",
            at="93m",
            series=_start("_x81 5x60", "_x81 6x60"),
            fires=(Fired(labels=_LABELS, values=("54.55%",)),),
        ),
        Case(kind="pending", at="90m", series=_start("_x81 5x60", "_x81 6x60")),
        Case(kind="healthy", at="95m", series=_start("_x81 8x60", "_x81 7x60")),
        Case(kind="healthy", at="95m", series=_start("_x81 0x60", "_x81 9x60")),
        Case(
            kind="healthy",
            at="60m",
            series={**_start("_x81 0x60", "_x5 20x60", "240x80"), _requests("a", "f", "miss"): "_"},
        ),
        Case(kind="recovering", at="145m", series=_start("_x81 5x80", "_x81 6x80")),
        Case(kind="target_gone", at="100m", series=_start("_x81 5x15 stale", "_x81 6x15 stale", "_x79 4800x17 stale")),
        Case(
            kind="counter_reset",
            at="93m",
            series={
                _requests("b", "g", "hit"): "40x79 0x1 5x60",
                _requests("b", "f", "miss"): "2x79 0x1 6x60",
                'jax_process_start_timestamp_seconds{job="train", instance="b:9464"}': "0x79 4800x60",
            },
            fires=(Fired(labels=_LABELS, values=("54.55%",)),),
        ),
    ),
)
