"""A call that died of memory."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jax_out_of_memory_total{job="train", instance="a:9464", function="f", device="gpu:0"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_STEPS = 'jax_steps_total{job="train", instance="a:9464", loop="train"}'
_ANSWERS = 'jax_requests_total{job="train", instance="a:9464", route="/", cold="false", outcome="ok"}'
_LABELS = {"job": "train", "instance": "a:9464", "function": "f"}

ALERT = Alert(
    name="JaxOutOfMemory",
    severity="critical",
    concern="availability",
    summary="A call ran out of memory, and its process has made no progress since.",
    description=(
        "{{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) ran out of memory in "
        'the last half hour; failed calls: {{ printf "%.0f" $value }}.'
    ),
    expr=(
        "sum without (device) "
        "(max_over_time(job_instance_function_device:jax_out_of_memory:increase30m{@fn}[10m])) > 0\n"
        "unless on (job, instance) (\n"
        "  sum by (job, instance) (increase(jax_steps_total{@}[5m])) > 0\n"
        '  or sum by (job, instance) (increase(jax_requests_total{@, outcome="ok"}[5m])) > 0\n'
        ")"
    ),
    for_="10m",
    panel=("oncall", "out_of_memory"),
    runbook=Runbook(
        meaning=(
            "A call of a function failed with RESOURCE_EXHAUSTED, or with another text that JAX uses for out of "
            "memory, and for a quarter of an hour its process made no step and answered no request. A program that "
            "catches it and goes on, as when it looks for a batch size, does not page. The alert lasts for up to "
            "half an hour, even if the process is gone. A process that dies before its next scrape cannot report "
            "it: the next one there does, by JaxLastExitKilled."
        ),
        impact=(
            "The step or request is lost. A training run that does not catch the error ends and "
            "loses its work since the last checkpoint; in a job of several processes, the others "
            "stop with it."
        ),
        diagnosis=(
            Step(
                do=(
                    "Read the report that jaxobs wrote at that moment: what was requested, what was "
                    "in memory, and what to do."
                ),
                command="ls -t out-of-memory-*.txt | head -n 1 | xargs cat",
                answers=(
                    ("leaked_arrays", "One group of arrays had grown: the report names the line."),
                    ("absurd_request", ("More than the device has: a wrong shape. Look at the function's arguments.")),
                    (
                        "program_too_large",
                        (
                            "Parameters, activations and temporaries do not fit: use a smaller batch, "
                            "rematerialize, or shard."
                        ),
                    ),
                    ("other_process", "Another process holds memory of the device: give each its share."),
                    (
                        "fragmentation",
                        ("The total free memory was sufficient, but no single piece was: JaxDeviceMemoryFragmented."),
                    ),
                    ("no such file", "It is next to the event log, and in `/api/v1/events?kind=out_of_memory`."),
                ),
            ),
            Step(
                do="See whether it happens again, and where.",
                query="sum by (job, instance, function, device) "
                "(job_instance_function_device:jax_out_of_memory:increase30m{@fn}) > 0",
                answers=(
                    ("one process of many", "Its batch or its host differs: compare its inputs."),
                    ("all of them at once", ("The program needs too much: batch, sequence length or a new version.")),
                    ("it keeps rising", "The process catches the error and retries: requests fail now."),
                ),
            ),
            Step(
                do="See how full the device was before.",
                query="job_instance_device:jax_device_memory_headroom_ratio:min{@}",
                answers=(
                    ("it had been falling for hours", "Something grew: JaxArrayLeak."),
                    ("much was left", "One large request, or free memory in small pieces: JaxDeviceMemoryFragmented."),
                ),
            ),
        ),
        mitigation=(
            "Restart from the last checkpoint with a smaller batch; if there is a leak, restarting "
            "alone lasts as long as last time.",
            "In serving, reject or split inputs that are too long.",
            "If a deployment caused it, roll back.",
            (
                "To prevent it: donate the state, rematerialize (`jax.checkpoint`), shard, or fix the "
                "leak that is named."
            ),
        ),
        look_alikes=(
            (
                "The kernel killed the process",
                "`dmesg` reports an oom-kill, and no report was written",
                "JaxHostMemoryGrowth",
            ),
            (
                "The allocator warns and continues",
                "`This is not a failure` is in the log",
                "nothing: autotuning tried something",
            ),
            ("A full device, but no error", "headroom is low", "JaxDeviceMemoryHeadroomLow"),
        ),
        evidence=(
            "The report `out-of-memory-*.txt`.",
            "The event log, and the page that `jaxobs report EVENTLOG` makes of it.",
            "Batch size, sequence lengths, versions, and the latest change.",
        ),
        verify=(
            "The process makes progress, and no call ran out of memory for half an hour of work that "
            "includes the kind of batch or request that failed."
        ),
        gpu="If two processes share a GPU, give each its share: `XLA_CLIENT_MEM_FRACTION=0.45`.",
        tpu="`compile permanent error` occurs at compile time: the plan exceeds the chip's HBM, and "
        "restarting does not help.",
    ),
    cases=(
        Case(
            kind="firing",
            at="30m",
            series={_SERIES: "_x20 1x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(
            kind="firing",
            at="31m",
            series={_SERIES: "_x20 1x1 stale", _START: "0x22 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="29m", series={_SERIES: "_x20 1x60", _START: "0x80"}),
        Case(kind="pending", at="38m", series={_SERIES: "_x20 1x60", _START: "0x80", _STEPS: "0+6x25 150x60"}),
        Case(kind="pending", at="38m", series={_SERIES: "_x20 1x60", _START: "0x80", _ANSWERS: "0+6x25 150x60"}),
        Case(kind="healthy", at="60m", series={_SERIES: "2x80", _START: "-90000x80"}),
        Case(kind="healthy", at="40m", series={_SERIES: "_x20 1x60", _START: "0x80", _STEPS: "0+6x80"}),
        Case(kind="healthy", at="40m", series={_SERIES: "_x20 1x60", _START: "0x80", _ANSWERS: "0+6x80"}),
        Case(
            kind="firing",
            at="36m",
            series={_SERIES: "_x20 1x60", _START: "0x80", _STEPS: "0+6x20 120x60"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(
            kind="firing",
            at="36m",
            series={_SERIES: "_x20 1x60", _START: "0x80", _ANSWERS: "0+6x20 120x60"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="recovering", at="64m", series={_SERIES: "_x20 1x80", _START: "0x80"}),
        Case(kind="target_gone", at="35m", series={_SERIES: "_x20 1x1 stale", _START: "0x22 stale"}),
        Case(
            kind="counter_reset",
            at="52m",
            series={_SERIES: "3x40 1x40", _START: "0x40 2460x40"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
)
