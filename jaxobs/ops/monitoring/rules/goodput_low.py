"""A job that puts little of its time into steps, for hours."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train"}
_WHOSE = 'job="train", instance="a:9464"'


def _time(step: str, idle: str, end: str = "x720") -> dict[str, str]:
    """Seconds per sample that go into steps and into nothing; samples are a minute apart."""
    stale = " stale" if end != "x720" else ""
    return {
        f'jax_time_seconds_total{{{_WHOSE}, category="step"}}': step + stale,
        f'jax_time_seconds_total{{{_WHOSE}, category="idle"}}': idle + stale,
        f'jax_steps_total{{{_WHOSE}, loop="train"}}': f"0+60{end}{stale}",
        f"jax_process_start_timestamp_seconds{{{_WHOSE}}}": f"0{end}{stale}",
    }


ALERT = Alert(
    name="JaxGoodputLow",
    severity="warning",
    concern="performance",
    summary="A job has spent little of its time in steps for hours.",
    description=(
        "{{ $labels.job }} spent {{ $value | humanizePercentage }} of the time of its processes in "
        "steps and evaluations in the last 6 hours."
    ),
    expr="max without (instance) (job_instance:jax_goodput:ratio6h{@}) < <share>",
    for_="1h",
    keep_firing_for="30m",
    thresholds={
        "share": Threshold(
            value=0.5, unit="ratio", least=0.01, most=0.99,
            why=("With less than half, you pay more for waiting than for training. Well-run jobs "
                "reach 0.9 and more."),
        )
    },
    panel=("executive", "goodput"),
    runbook=Runbook(
        meaning=(
            "Over six hours, less than `<share>` of the time of the job's processes went into steps "
            "and evaluations. What comes before the first steps and pauses of five minutes do not count, and only "
            "jobs that trained for 90 of these minutes are judged. "
            "JaxSloGoodputBurn measures against an objective (90 % over a period) and fires on the "
            "rate at which its budget is spent; this alert is the lower limit, for jobs without that "
            "objective too. If both fire, follow either: the diagnosis is the same."
        ),
        impact="You pay for accelerators that do not train: the run takes more than twice as long as it needs.",
        diagnosis=(
            Step(
                do="See what the time went into instead.",
                query='topk(5, sum by (job, category) (rate(jax_time_seconds_total{@, category!~"step|eval"}[6h])))',
                answers=(
                    ("`input_wait`", "JaxInputBound."),
                    ("`compile`, `trace`", "JaxRecompilationStorm, or a start without a persistent cache."),
                    ("`init`, `cache_load`", "Processes keep restarting: JaxFleetRestarts."),
                    ("`checkpoint`", "Saving delays the steps: save asynchronously, or less often."),
                    ("`transfer`", "Results are fetched to the host in each step."),
                    (
                        "`idle`",
                        "The program does something that jaxobs cannot see: logging, or waiting for others.",
                    ),
                ),
            ),
            Step(
                do="See which processes have the lowest share.",
                query='bottomk(5, sum by (job, instance) (rate(jax_time_seconds_total{@, category=~"step|eval"}[6h])))',
                answers=(
                    ("all similar", "The program."),
                    ("a few", "Their hosts, or a part of the job that does other work."),
                ),
            ),
            Step(
                do="See what one of them is doing now.",
                command="jaxobs top http://HOST:9464",
                answers=(("the bar of the time", "The growing category is the cause."),),
            ),
        ),
        mitigation=(
            "Reduce the largest category, as the table above says.",
            "If restarts cost most: use a persistent cache, and save checkpoints more often.",
            "If you cannot fix it tonight, ask whether the run should keep its accelerators.",
        ),
        look_alikes=(
            ("No step at all", "`jax_steps_total` does not rise", "JaxStepsStalled"),
            (
                "The steps themselves are slow",
                "the share is high, the step time has risen",
                "JaxStepTimeRegression",
            ),
            (
                "A process for notebooks",
                "people think between cells",
                "exclude its job, or disable the alert for it",
            ),
        ),
        evidence=(
            "The panel of lost time over a day.",
            "`jaxobs report EVENTLOG` of the process with the lowest share.",
        ),
        verify=("The goodput over the last hour is above `<share>`; the alert itself follows as its "
               "six hours pass."),
    ),
    cases=(
        Case(
            kind="firing", at="200m", series=_time("0+27x720", "0+33x720"),
            fires=(Fired(labels=_LABELS, values=("45%",)),),
        ),
        Case(kind="pending", at="155m", series=_time("0+27x720", "0+33x720")),
        Case(kind="healthy", at="300m", series=_time("0+33x720", "0+27x720")),
        Case(kind="recovering", at="600m", series=_time("0+27x240 6540+60x480", "0+33x240 7920x480")),
        Case(kind="target_gone", at="320m", series=_time("0+27x250", "0+33x250", "x250")),
        Case(
            kind="job_finished", at="330m",
            series={
                **_time("0+33x100 3300x620", "0+27x100 2760+60x620"),
                f'jax_steps_total{{{_WHOSE}, loop="train"}}': "0+60x100 6000x620",
            },
        ),
        Case(
            kind="counter_reset", at="240m", series=_time("0+27x50 0+27x620", "0+33x50 0+33x620"),
            fires=(Fired(labels=_LABELS, values=("45%",)),),
        ),
    ),
    needs="steps",
)  # fmt: skip
