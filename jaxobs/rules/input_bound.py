"""A process that waits for its input for a large part of its steps."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "instance": "a:9464"}


def _time(step: str, wait: str) -> dict[str, str]:
    return {
        'jax_time_seconds_total{job="train", instance="a:9464", category="step"}': step,
        'jax_time_seconds_total{job="train", instance="a:9464", category="input_wait"}': wait,
    }


ALERT = Alert(
    name="JaxInputBound",
    severity="warning",
    concern="performance",
    summary="A process waits for its input for a large part of its steps.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) waited for batches for {{ $value | humanizePercentage }} of the "
        "time of "
        "its steps in the last half hour."
    ),
    expr="job_instance:jax_input_wait:ratio30m{@} > <share>",
    for_="15m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.25, unit="ratio", least=0.01, most=1,
            why=(
                "A loader that keeps up is waited for during a few per cent; here a faster one shortens the run by a "
                "quarter."
            ),
        )
    },
    panel=("debug", "input_wait"),
    runbook=Runbook(
        meaning=(
            "Of the time that the process passed in steps and in waiting for batches of `jaxobs.data`, more than "
            "`<share>` was "
            "waiting. The finding `input_bound` says the same from half of the time on, with the cause."
        ),
        impact=(
            "The devices stand idle meanwhile. In a job of several processes all wait for the slowest loader. "
            "Nothing is lost but time and money."
        ),
        diagnosis=(
            Step(
                do="See which processes and inputs it is.",
                query="sum by (job, instance, input) (rate(jax_input_wait_seconds_total{@}[30m]))",
                answers=(
                    ("all alike", "The pipeline is too slow, or the storage that all share."),
                    ("one process", "Its host: neighbours on its cores, its network, its disk."),
                    ("one input of several", "That one: the training input matters, an evaluation's may wait."),
                ),
            ),
            Step(
                do="See whether it came slowly, at once, or was always there.",
                query="job_instance:jax_input_wait:ratio30m{@}",
                answers=(
                    ("at once", "A deployment, or the storage: see its own dashboards."),
                    ("at each new epoch", "Shuffle buffers are filled anew, or files opened: prefetch across epochs."),
                    ("always", "The pipeline was never fast enough for these devices."),
                ),
            ),
            Step(
                do="Let the process say what its loader does.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    (
                        "`input_bound`, with a cause and a line",
                        "Do what it says: workers, prefetch, or moving work off the main thread.",
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
                        "Decoding and augmenting take all of them: more cores, or less work on each batch.",
                    ),
                    ("idle cores", "Too few workers, or waiting for storage."),
                ),
            ),
        ),
        mitigation=(
            "Prefetch: let another thread fetch the next batches while the device works.",
            "Give the loader more workers, or the process more cores.",
            "Store the data decoded, in larger files, nearer to the hosts.",
            "If the storage is slow for everybody, talk to those who run it; the job goes on meanwhile.",
        ),
        look_alikes=(
            ("The input gives nothing at all", "no step is made", "JaxStepsStalled"),
            ("The device is slow", "`input_wait` is small", "JaxStepTimeRegression"),
            ("Results are fetched to the host each step", "the time is in `transfer`", "docs/goodput.md"),
        ),
        evidence=(
            "Waiting by process and input, from the first query.",
            "The finding `input_bound`, if it stands.",
            "The loader's settings: workers, prefetch, batch; cores of the host and their load.",
        ),
        verify="The share on the panel is below `<share>` for half an hour, an epoch's end included.",
    ),
    cases=(
        Case(
            kind="firing", at="50m", series=_time("0+42x120", "0+18x120"),
            fires=(Fired(labels=_LABELS, values=("30%",)),),
        ),
        Case(
            kind="firing", at="25m", series=_time("0+43.2x120", "0+16.8x120"),
            fires=(Fired(labels=_LABELS, values=("28%",)),),
        ),
        Case(kind="pending", at="14m", series=_time("0+43.2x120", "0+16.8x120")),
        Case(kind="healthy", at="90m", series=_time("0+46.8x120", "0+13.2x120")),
        Case(kind="recovering", at="120m", series=_time("0+40x50 2060+60x80", "0+20x50 1000x80")),
        Case(kind="target_gone", at="110m", series=_time("0+42x50 stale", "0+18x50 stale")),
        Case(
            kind="counter_reset", at="60m", series=_time("0+42x30 0+42x60", "0+18x30 0+18x60"),
            fires=(Fired(labels=_LABELS, values=("30%",)),),
        ),
    ),
    needs="input",
)  # fmt: skip
