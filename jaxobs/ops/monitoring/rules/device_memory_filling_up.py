"""A device whose memory will be full in a few hours."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_FLOOR = "job_instance_device:jax_device_memory_in_use_bytes:min15m{@}"
_LIMIT = "jax_device_memory_limit_bytes{@}"
_LABELS = {"job": "train", "instance": "a:9464", "device": "gpu:0"}


def _device(in_use: str, limit: str = "1000x200") -> dict[str, str]:
    whose = 'job="train", instance="a:9464", device="gpu:0"'
    return {
        f"jax_device_memory_in_use_bytes{{{whose}}}": in_use,
        f"jax_device_memory_high_water_bytes{{{whose}}}": in_use,
        f"jax_device_memory_limit_bytes{{{whose}}}": limit,
    }


ALERT = Alert(
    name="JaxDeviceMemoryFillingUp",
    severity="warning",
    concern="capacity",
    summary="The memory of a device will be full soon.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) will be full in {{ "
        "$value | humanizeDuration }} at the rate of the last hour."
    ),
    expr=(
        "job_instance_device:jax_device_memory_time_to_full_seconds:deriv1h{@} < <seconds>\n"
        f"and {_FLOOR} - {_FLOOR} offset 30m > <rise> * {_LIMIT}\n"
        f"and {_FLOOR} offset 30m - {_FLOOR} offset 1h > <rise> * {_LIMIT}"
    ),
    for_="15m",
    keep_firing_for="15m",
    thresholds={
        "seconds": Threshold(
            value=7200,
            unit="seconds",
            least=300,
            most=604_800,
            why="Two hours are enough to take a checkpoint, find what grows, and restart during working hours.",
        ),
        "rise": Threshold(
            value=0.01,
            unit="ratio",
            least=0.0001,
            most=0.5,
            why="As a share of the limit, in each of the last two half hours: a single jump, as at a "
            "start, raises only one of them.",
        ),
    },
    panel=("devices", "time_to_full"),
    runbook=Runbook(
        meaning=(
            "The floor of the memory in use on a device rose in each of the last two half hours by "
            "more than `<rise>` of the limit, and at this rate the device is full in less than "
            "`<seconds>`. The floor is the lowest use within 15 minutes, so steps, evaluations and "
            "checkpoints do not count."
        ),
        impact="At the predicted time, a call fails with RESOURCE_EXHAUSTED. All work since the last "
        "checkpoint is lost with the run.",
        diagnosis=(
            Step(
                do="Find out whether arrays or programs grow.",
                query="deriv(jax_live_array_bytes{@}[1h]) * 3600",
                answers=(
                    ("about as much as the memory in use", "Arrays: the next step names the line."),
                    ("about 0", "Programs (see `jax_executables`), or something that JAX does not list."),
                ),
            ),
            Step(
                do="Ask the process what grows, and for the line that creates it.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("`array_leak`", "A list or history that keeps arrays: the line is named."),
                    ("`executable_leak`", "Programs keep compiling: JaxUnboundedShapes."),
                    (
                        "nothing",
                        (
                            "Growth is still too slow or too uneven to be reported; record what holds "
                            "the memory, as below."
                        ),
                    ),
                ),
            ),
            Step(
                do="Record what holds the memory, now and in 15 minutes, and compare.",
                command='curl -s -X POST -H "Authorization: Bearer $JAXOBS_ACTION_TOKEN" '
                "http://HOST:9464/api/v1/actions/memory",
                answers=(
                    ("a stack that holds more the second time", "That is the line."),
                    ("404", "Actions are off: `kill -USR2 PID` on the host does the same; see docs/captures.md."),
                ),
            ),
        ),
        mitigation=(
            (
                "Take a checkpoint now, and restart from it before the time is up: this gains as much "
                "time as it took to fill."
            ),
            "Keep `float(x)` or `jax.device_get(x)` of losses and metrics, not the arrays.",
            "Bound caches of requests or sessions.",
        ),
        look_alikes=(
            ("Full, but no longer growing", "the time to full has no value", "JaxDeviceMemoryHeadroomLow"),
            (
                "A buffer that fills up once, such as a replay buffer",
                "it stops growing at its size",
                "nothing, if the size is right",
            ),
            ("Host memory grows", "the device does not", "JaxHostMemoryGrowth"),
        ),
        evidence=(
            "The panel over the life of the process.",
            "The finding's text from `jaxobs explain`.",
            "Two memory captures, 15 minutes apart.",
        ),
        verify="The time to full has no value for an hour of normal work, or is longer than the run takes.",
        gpu="Read the captured memory profile with `pprof -top FILE`, and two of them with `pprof "
        "-top -diff_base FIRST SECOND`.",
    ),
    cases=(
        Case(
            kind="firing",
            at="97m",
            series=_device("600+2x150"),
            fires=(Fired(labels=_LABELS, values=("1h 43m 0s",)),),
        ),
        Case(
            kind="firing",
            at="95m",
            series=_device("2800+1.1x150", "3000x200"),
            fires=(Fired(labels=_LABELS, values=("1h 26m 49s",)),),
        ),
        Case(kind="pending", at="90m", series=_device("600+2x150")),
        Case(kind="healthy", at="110m", series=_device("2860+0.9x120", "3000x200")),
        Case(kind="healthy", at="70m", series=_device("300x30 930x150")),
        Case(kind="healthy", at="136m", series=_device("2820+0.9x90 2902+1.2x80", "3000x200")),
        Case(kind="recovering", at="150m", series=_device("2780+1.2x90 2889+0.9x80", "3000x200")),
        Case(kind="recovering", at="140m", series=_device("600+2x100 500x100")),
        Case(kind="target_gone", at="140m", series=_device("600+2x100 stale", "1000x101 stale")),
    ),
    needs="accelerator",
)
