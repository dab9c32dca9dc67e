"""A process that waits for its input for a large part of its steps."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "instance": "a:9464"}


def _time(step: str, wait: str, steps: str = "0+60x120") -> dict[str, str]:
    return {
        'jax_steps_total{job="train", instance="a:9464", loop="train"}': steps,
        'jax_time_seconds_total{job="train", instance="a:9464", category="step"}': step,
        'jax_time_seconds_total{job="train", instance="a:9464", category="input_wait"}': wait,
    }


ALERT = Alert(
    name="JaxInputBound",
    severity="warning",
    concern="performance",
    summary="A process spends a large part of its steps waiting for input.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) waited for batches for {{ $value | "
        "humanizePercentage }} of the time of its steps in the last half hour."
    ),
    expr="job_instance:jax_input_wait:ratio30m{@} > <share>",
    for_="15m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.25, unit="ratio", least=0.01, most=1,
            why=(
                "A loader that keeps up costs a few per cent of waiting; here, a faster loader would "
                "shorten the run by a quarter."
            ),
        )
    },
    panel=("debug", "input_wait"),
    runbook=Runbook(
        meaning=(
            "More than `<share>` of the time that the process spent in steps and waiting for batches "
            "from `jaxobs.data` was waiting. The finding `input_bound` reports the same from half of "
            "the time on, with the cause."
        ),
        impact=(
            "The devices are idle meanwhile. In a job of several processes, all wait for the slowest "
            "loader. You lose only time and money."
        ),
        diagnosis=(
            Step(
                do="See which processes and inputs are affected.",
                query="sum by (job, instance, input) (rate(jax_input_wait_seconds_total{@}[30m]))",
                answers=(
                    ("all similar", "The pipeline is too slow, or the storage that all of them share."),
                    ("one process", "Its host: neighbours on its cores, its network, its disk."),
                    ("one input of several", "That input: the training input matters, an evaluation's may not."),
                ),
            ),
            Step(
                do="See whether it grew slowly, rose at once, or was always there.",
                query="job_instance:jax_input_wait:ratio30m{@}",
                answers=(
                    ("at once", "A deployment, or the storage: see its own dashboards."),
                    ("at each new epoch", ("Shuffle buffers are refilled, or files are opened: "
                                          "prefetch across epochs.")),
                    ("always", "The pipeline was never fast enough for these devices."),
                ),
            ),
            Step(
                do="Ask the process what its loader does.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    (
                        "`input_bound`, with a cause and a line",
                        "Follow its advice: workers, prefetching, or moving work off the main thread.",
                    ),
                    ("nothing", "It waits for less than half of the time: look at the loader's own counters."),
                ),
            ),
            Step(
                do="See whether the host's cores are busy.",
                command="top -b -n 1 | head -n 20",
                answers=(
                    (
                        "all cores busy",
                        "Decoding and augmenting use all of them: add cores, or do less work on each batch.",
                    ),
                    ("idle cores", "Too few workers, or waiting for storage."),
                ),
            ),
        ),
        mitigation=(
            "Prefetch: let another thread fetch the next batches while the device works.",
            "Give the loader more workers, or the process more cores.",
            "Store the data decoded, in larger files, closer to the hosts.",
            "If the storage is slow for everybody, talk to those who operate it; the job continues meanwhile.",
        ),
        look_alikes=(
            ("The input delivers nothing at all", "no step is made", "JaxStepsStalled"),
            ("The device is slow", "`input_wait` is small", "JaxStepTimeRegression"),
            ("Results are fetched to the host each step", "the time is in `transfer`", "docs/goodput.md"),
        ),
        evidence=(
            "Waiting by process and input, from the first query.",
            "The finding `input_bound`, if it is active.",
            "The loader's settings: workers, prefetch, batch; cores of the host and their load.",
        ),
        verify="The share on the panel is below `<share>` for half an hour that includes the end of an epoch.",
    ),
    cases=(
        Case(
            kind="firing", at="50m", series=_time("0+42x120", "0+18x120"),
            fires=(Fired(labels=_LABELS, values=("30%",)),),
        ),
        Case(
            kind="firing", at="47m", series=_time("0+43.2x120", "0+16.8x120"),
            fires=(Fired(labels=_LABELS, values=("28%",)),),
        ),
        Case(kind="pending", at="45m", series=_time("0+43.2x120", "0+16.8x120")),
        Case(kind="healthy", at="60m", series=_time("0x40 0+60x80", "0+60x40 2400x80", "0x40 0+60x80")),
        Case(kind="healthy", at="90m", series=_time("0+46.8x120", "0+13.2x120")),
        Case(kind="recovering", at="120m", series=_time("0+40x50 2060+60x80", "0+20x50 1000x80")),
        Case(kind="target_gone", at="110m", series=_time("0+42x50 stale", "0+18x50 stale", "0+60x50 stale")),
        Case(
            kind="counter_reset", at="60m", series=_time("0+42x30 0+42x60", "0+18x30 0+18x60"),
            fires=(Fired(labels=_LABELS, values=("30%",)),),
        ),
    ),
    needs="input",
)  # fmt: skip
