"""A loss that stays NaN."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_nonfinite_total{job="train", instance="a:9464", name="loss"}'
_LABELS = {"job": "train", "name": "loss"}

ALERT = Alert(
    name="JaxNonFiniteLasting",
    severity="critical",
    concern="availability",
    summary="A watched value has not been finite for half an hour.",
    description=(
        "{{ $labels.name }} of {{ $labels.job }} has been NaN or infinite for half an hour: {{ $value | humanize }} "
        "times in the last 10 minutes."
    ),
    expr="max by (job, name) (increase(jax_nonfinite_total{@}[10m])) >= <values>",
    for_="30m",
    panel=("oncall", "nonfinite"),
    thresholds={
        "values": Threshold(
            value=4, unit="count", least=1, most=1_000_000,
            why=(
                "Loss scaling in float16 overflows once in two thousand steps, and recovers; a loss that stays NaN "
                "is one at each look."
            ),
        )
    },
    runbook=Runbook(
        meaning=(
            "For half an hour, at least `<values>` of the looks at a watched value within ten minutes found a NaN or "
            "an infinity. A loss that is NaN for so long does not become finite again: JaxNonFiniteValues reports the "
            "first one, as a ticket."
        ),
        impact="Every step since then is wasted, and so is each further one; checkpoints saved since are useless.",
        diagnosis=(
            Step(
                do="See in which step it began.",
                command="jaxobs explain EVENTLOG | grep -i -A3 nonfinite",
                answers=(("a step", "Restart from a checkpoint before it."), ("nothing", "See the next step.")),
            ),
            Step(
                do="See which values, and on which processes.",
                query="sum by (job, instance, name) (increase(jax_nonfinite_total{@}[10m])) > 0",
                answers=(
                    ("one process alone", "Its device or its batch: JaxDeviceEccErrors."),
                    ("all of them", "The program or its data: JaxNonFiniteValues has the steps."),
                ),
            ),
        ),
        mitigation=(
            "Stop the run: it does not recover, and overwrites good checkpoints.",
            "Restart from a checkpoint before the first NaN, with a lower learning rate or without the batch.",
        ),
        look_alikes=(
            ("Single overflows of loss scaling", "fewer than `<values>` in ten minutes", "JaxNonFiniteValues"),
            ("A metric that may be infinite", "the loss is finite", "do not watch it"),
        ),
        evidence=("Step, name and process of the first one.", "The last checkpoint before it."),
        verify="The counter does not rise in ten minutes of training.",
    ),
    cases=(
        Case(kind="firing", at="57m", series={_SERIES: "0x20 1+1x100"}, fires=(Fired(labels=_LABELS, values=("10",)),)),
        Case(
            kind="firing", at="70m", series={_SERIES: "0x20 0+0.45x100"},
            fires=(Fired(labels=_LABELS, values=("4.5",)),),
        ),
        Case(kind="pending", at="52m", series={_SERIES: "0x20 1+1x100"}),
        Case(kind="healthy", at="100m", series={_SERIES: "0+0.35x120"}),
        Case(kind="healthy", at="100m", series={_SERIES: "0x20 1+1x10 11x100"}),
        Case(kind="recovering", at="115m", series={_SERIES: "0x20 1+1x80 81x100"}),
        Case(kind="target_gone", at="85m", series={_SERIES: "0x20 1+1x50 stale"}),
        Case(
            kind="counter_reset", at="70m", series={_SERIES: "0x20 1+1x30 0+1x60"},
            fires=(Fired(labels=_LABELS, values=("10",)),),
        ),
    ),
    needs="watched_values",
)  # fmt: skip
