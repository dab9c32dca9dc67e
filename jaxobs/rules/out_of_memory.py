"""A call that died of memory."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jax_out_of_memory_total{job="train", instance="a:9464", function="f", device="gpu:0"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464", "function": "f"}

ALERT = Alert(
    name="JaxOutOfMemory",
    severity="critical",
    concern="availability",
    summary="A call died of memory.",
    description=(
        "{{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) ran out of memory in the last half hour; "
        'calls that died: {{ printf "%.0f" $value }}.'
    ),
    expr="sum without (device) "
    "(max_over_time(job_instance_function_device:jax_out_of_memory:increase30m{@fn}[10m])) > 0",
    for_="1m",
    panel=("oncall", "out_of_memory"),
    runbook=Runbook(
        meaning=(
            "A call of a function ended with RESOURCE_EXHAUSTED, or with another text by which JAX says that memory is "
            "out. It is told for half an hour, also when the process is gone. A process that dies before its next "
            "scrape cannot tell: then its event log has it."
        ),
        impact=(
            "The step or request is lost. A training run that does not catch the error ends, and what it did since the "
            "last checkpoint is lost; in a job of several processes the others stop with it."
        ),
        diagnosis=(
            Step(
                do="Read the report that jaxobs wrote at that moment: what was wanted, what lay there, and what to do.",
                command="ls -t out-of-memory-*.txt | head -n 1 | xargs cat",
                answers=(
                    ("leaked_arrays", "One group of arrays had grown: the line is named."),
                    ("absurd_request", "More than the device has: a wrong shape. Look at the function's arguments."),
                    (
                        "program_too_large",
                        "Parameters, activations and temporaries do not fit: smaller batch, rematerialise, shard.",
                    ),
                    ("other_process", "Somebody else holds memory of the device: give each its part."),
                    ("fragmentation", "The sum of what is free was enough, no piece was: JaxDeviceMemoryFragmented."),
                    ("no such file", "It lies beside the event log, and in `/api/v1/events?kind=out_of_memory`."),
                ),
            ),
            Step(
                do="See whether it comes again, and where.",
                query="sum by (job, instance, function, device) "
                "(job_instance_function_device:jax_out_of_memory:increase30m{@fn}) > 0",
                answers=(
                    ("one process of many", "Its batch or its host differs: compare its inputs."),
                    ("all of them at once", "The program needs too much: batch, sequence length or a new version."),
                    ("it rises on", "The process catches it and tries again: requests fail now."),
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
            "Restart from the last checkpoint with a smaller batch; with a leak, restarting alone gives as long as "
            "last time.",
            "In serving, refuse or split what is longer than what fits.",
            "If it came with a deployment, roll back.",
            "For good: donate the state, rematerialise (`jax.checkpoint`), shard, or mend the leak that is named.",
        ),
        look_alikes=(
            (
                "The kernel killed the process",
                "`dmesg` tells of oom-kill, and no report was written",
                "JaxHostMemoryGrowth",
            ),
            (
                "The allocator warns and goes on",
                "`This is not a failure` stands in the log",
                "nothing: autotuning tried something",
            ),
            ("A device without room, but no error", "headroom is low", "JaxDeviceMemoryHeadroomLow"),
        ),
        evidence=(
            "The report `out-of-memory-*.txt`.",
            "The event log, and the page that `jaxobs report EVENTLOG` makes of it.",
            "Batch size, sequence lengths, versions, and what was changed last.",
        ),
        verify="No call died for half an hour of usual work, with the kind of batch or request that failed among it.",
        gpu="Where two processes share a GPU, give each its part: `XLA_CLIENT_MEM_FRACTION=0.45`.",
        tpu="`compile permanent error` comes at compile time: the plan exceeds the chip's HBM, and restarting does "
        "not help.",
    ),
    cases=(
        Case(
            kind="firing",
            at="21m",
            series={_SERIES: "_x20 1x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(
            kind="firing",
            at="30m",
            series={_SERIES: "_x20 1x1 stale", _START: "0x22 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="20m", series={_SERIES: "_x20 1x60", _START: "0x80"}),
        Case(kind="healthy", at="60m", series={_SERIES: "2x80", _START: "-90000x80"}),
        Case(kind="recovering", at="64m", series={_SERIES: "_x20 1x80", _START: "0x80"}),
        Case(kind="target_gone", at="35m", series={_SERIES: "_x20 1x1 stale", _START: "0x22 stale"}),
        Case(
            kind="counter_reset",
            at="45m",
            series={_SERIES: "3x40 1x40", _START: "0x40 2460x40"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
)
