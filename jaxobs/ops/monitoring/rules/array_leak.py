"""Live arrays that pile up."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jax_findings{job="train", instance="a:9464", finding="array_leak"}'
_LABELS = {"job": "train", "instance": "a:9464", "finding": "array_leak"}

ALERT = Alert(
    name="JaxArrayLeak",
    severity="warning",
    concern="capacity",
    summary="Arrays accumulate and are never released.",
    description="{{ $labels.instance }} ({{ $labels.job }}) has {{ $value | humanize }} groups of arrays that grow "
    "with each step.",
    expr='jax_findings{@, finding="array_leak"} > 0',
    for_="15m",
    keep_firing_for="10m",
    panel=("devices", "live_array_bytes"),
    runbook=Runbook(
        meaning=(
            "jaxobs detects live arrays of one shape, type and sharding whose number rises steadily "
            "for as long as the program runs, without any of them being released. A buffer that "
            "fills up looks the same until it is full, so the alert waits for a quarter of an hour."
        ),
        impact=(
            "The device fills up (on the CPU backend, the host does). When it is full, a call runs "
            "out of memory and all work since the last checkpoint is lost, hours after the line that "
            "caused it."
        ),
        diagnosis=(
            Step(
                do="Ask the process for the arrays, the rate and the line that creates them.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    (
                        "created at FILE:LINE: 1 per call",
                        "A list, dictionary, closure or history keeps one result of each call.",
                    ),
                    (
                        "arrays of ever-changing shapes together",
                        "Results of requests or sequences are kept: look for an unbounded cache.",
                    ),
                    ("the finding is over", "It was a buffer, and is full: there is nothing to do."),
                ),
            ),
            Step(
                do="See how fast it grows, in bytes an hour.",
                query="deriv(jax_live_array_bytes{@}[1h]) * 3600",
                answers=(
                    ("it fills the device within the run", "Act now: see the mitigation."),
                    ("it does not", "It can wait for working hours."),
                ),
            ),
            Step(
                do="See when the device will be full.",
                query="job_instance_device:jax_device_memory_time_to_full_seconds:deriv1h{@}",
                answers=(("a number", "The seconds left. JaxDeviceMemoryFillingUp fires two hours before."),),
            ),
        ),
        mitigation=(
            (
                "Take a checkpoint, and restart from it at a convenient time: a fresh process starts "
                "without the accumulated arrays."
            ),
            "At the line that is named, keep only `float(x)` or `jax.device_get(x)` of what is "
            "needed, or a `collections.deque(maxlen=...)`.",
            "In a notebook, or after a caught exception: clear `sys.last_traceback` and anything "
            "that holds the frames.",
        ),
        look_alikes=(
            ("Compiled programs accumulate", "`jax_executables` rises, arrays do not", "JaxExecutableLeak"),
            (
                "The process grows on the host, arrays do not",
                "the finding is `host_memory_leak`",
                "JaxHostMemoryGrowth",
            ),
            ("A replay buffer or a cache that fills once", "it stops growing, and the finding ends", "docs/leaks.md"),
        ),
        evidence=(
            "The finding's text from `jaxobs explain`.",
            "The page that `jaxobs report EVENTLOG` makes, with the memory over time.",
        ),
        verify=("`jaxobs explain` marks the finding as over, and the number of live arrays stays level for an hour."),
    ),
    cases=(
        Case(kind="firing", at="30m", series={_SERIES: "0x9 1x60"}, fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="pending", at="20m", series={_SERIES: "0x9 1x60"}),
        Case(kind="healthy", at="60m", series={_SERIES: "0x60"}),
        Case(kind="healthy", at="60m", series={_SERIES.replace("array_leak", "input_bound"): "1x60"}),
        Case(kind="recovering", at="55m", series={_SERIES: "0x9 1x30 0x30"}),
        Case(kind="target_gone", at="55m", series={_SERIES: "0x9 1x30 stale"}),
    ),
)
