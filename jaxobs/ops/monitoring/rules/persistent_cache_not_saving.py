"""Compiled programs that could not be written to the persistent cache."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_UNSAVED = 'jax_persistent_cache_unsaved_total{job="train", instance="a:9464", reason="error"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464", "reason": "error"}

ALERT = Alert(
    name="JaxPersistentCacheNotSaving",
    severity="warning",
    concern="performance",
    summary="Compiled programs cannot be written to the persistent cache.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) failed to store programs in the persistent "
        'cache: {{ printf "%.0f" $value }} in the last 30 minutes, reason `{{ $labels.reason }}`. '
        "The next start recompiles them."
    ),
    expr='job_instance_reason:jax_persistent_cache_unsaved:increase30m{@, reason=~"error|unknown"} > <programs>',
    for_="5m",
    labels={"phase": "compile"},
    thresholds={
        "programs": Threshold(
            value=0,
            unit="count",
            least=0,
            most=100_000,
            why="Every failed write is a program that each later start recompiles, until somebody repairs it.",
        )
    },
    panel=("debug", "cache_unsaved"),
    runbook=Runbook(
        meaning=(
            "JAX compiled more than `<programs>` programs within half an hour that it should have "
            "stored, and did not: writing failed, an existing entry cannot be read, or the reason is "
            "unknown. JAX itself only warns, once."
        ),
        impact=(
            "None now. Each later start recompiles these programs, for as long as the directory "
            "stays as it is; JAX never repairs an unreadable entry."
        ),
        diagnosis=(
            Step(
                do="Read what went wrong with each program.",
                command='grep \'"event":\\s*"compilation"\' EVENTLOG | grep -o \'"uncached_detail":\\s*"[^"]*"\' | '
                "sort | uniq -c",
                answers=(
                    (
                        "No space left on device",
                        "The disk is full: make room, or set `jax_compilation_cache_max_size`.",
                    ),
                    (
                        "Permission denied, Forbidden",
                        "The directory or bucket belongs to another user: fix its permissions.",
                    ),
                    ("the entry cannot be read", "Delete the file that is named."),
                    ("filelock", "`jax_compilation_cache_max_size` requires the package `filelock`."),
                ),
            ),
            Step(
                do="Check the whole directory.",
                command="jaxobs cache inspect DIR",
                answers=(
                    ("PROBLEM (broken_entries)", "It prints the command that deletes them."),
                    ("no problem", "Writing fails before a file exists: check permissions and free space."),
                ),
            ),
            Step(
                do="See which processes are affected.",
                query='job_instance_reason:jax_persistent_cache_unsaved:increase30m{@, reason=~"error|unknown"} > 0',
                answers=(
                    ("one instance", "Its host: mount, space, permissions."),
                    ("all of a job", "The shared storage, or its credentials."),
                ),
            ),
        ),
        mitigation=(
            "Leave the job alone: it works. Repair the storage before the next start.",
            "Make room, or fix the permissions, in the directory that `jax_compilation_cache_dir` names.",
            "Delete broken entries; the next process that compiles them stores them again.",
            "Fill the cache afterwards with `jaxobs cache warm EVENTLOG --script FILE --cache-dir DIR`.",
        ),
        look_alikes=(
            (
                "Programs left out on purpose",
                "the reason is `too_fast`, `too_small`, `not_writer` or `callbacks`",
                "docs/persistent-cache.md",
            ),
            (
                "Written, but never found again",
                "no such reason is counted, and lookups miss",
                "JaxPersistentCacheIneffective",
            ),
        ),
        evidence=(
            "The texts from the event log.",
            "`df -h DIR`, `ls -ld DIR` and the user that the process runs as.",
        ),
        verify="The panel shows no `error` at the next start, and the start after that has hits.",
        tpu="In a bucket, jaxobs does not look at files: only JAX's warnings are counted.",
    ),
    cases=(
        Case(
            kind="firing",
            at="27m",
            series={_UNSAVED: "_x20 1x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="24m", series={_UNSAVED: "_x20 1x60", _START: "0x80"}),
        Case(kind="healthy", at="50m", series={_UNSAVED: "3x80", _START: "0x80"}),
        Case(kind="healthy", at="10m", series={_UNSAVED: "3x80", _START: "-90000x80"}),
        Case(kind="healthy", at="27m", series={_UNSAVED.replace("error", "too_fast"): "_x20 1x60", _START: "0x80"}),
        Case(kind="recovering", at="55m", series={_UNSAVED: "_x20 1x60", _START: "0x80"}),
        Case(kind="target_gone", at="35m", series={_UNSAVED: "_x20 1x8 stale", _START: "0x29 stale"}),
        Case(
            kind="counter_reset",
            at="48m",
            series={_UNSAVED: "3x40 1x40", _START: "0x40 2460x40"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
)
