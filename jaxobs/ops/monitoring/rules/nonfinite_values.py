"""Watched values that hold a NaN or an infinity."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_nonfinite_total{job="train", instance="a:9464", name="loss"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_STEPS = 'jax_steps_total{job="train", instance="a:9464", loop="train"}'
_LABELS = {"job": "train", "instance": "a:9464", "name": "loss"}

ALERT = Alert(
    name="JaxNonFiniteValues",
    severity="warning",
    concern="availability",
    summary="A watched value contains NaNs or infinities.",
    description=(
        "{{ $labels.name }} of {{ $labels.instance }} ({{ $labels.job }}) was not finite {{ $value | humanize }} "
        "times in the last half hour."
    ),
    expr=(
        "max_over_time(job_instance_name:jax_nonfinite:increase30m{@}[10m]) > <values>\n"
        "unless\n"
        "max_over_time(job_instance_name:jax_nonfinite:increase30m{@}[10m])\n"
        "< on (job, instance) group_left () (<share> * sum by (job, instance) (increase(jax_steps_total{@}[30m])))"
    ),
    for_="2m",
    thresholds={
        "values": Threshold(
            value=0, unit="count", least=0, most=1_000_000,
            why="A loss is always finite.",
        ),
        "share": Threshold(
            value=0.0006, unit="ratio", least=0, most=1,
            why="Of the steps of half an hour: loss scaling in float16 overflows in one of 2,000, as it is meant to.",
        ),
    },
    panel=("oncall", "nonfinite"),
    runbook=Runbook(
        meaning=(
            "A value that the program passed to `jaxobs.watch` contained a NaN or an infinity more "
            "than `<values>` times in half an hour. The first time counts too."
        ),
        impact=(
            "A NaN in the loss enters the parameters with the next update and stays there: all work "
            "since then is lost, and checkpoints saved since then contain it. The run does not stop "
            "by itself."
        ),
        diagnosis=(
            Step(
                do="See whether it happened once or continues, and on which processes.",
                query="sum by (job, instance, name) (job_instance_name:jax_nonfinite:increase30m{@}) > 0",
                answers=(
                    ("about as many as steps", "It is in the parameters: stop, and return to a checkpoint."),
                    ("a few, and loss scaling is on", ("Overflows that the loss scaling skips: raise "
                                                      "the threshold.")),
                    ("one process of many", "Its batch or its device: compare them."),
                ),
            ),
            Step(
                do="Find out what was non-finite first: which part of the value, at which step.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("a gradient before the loss", "The update overflowed: clip it, or lower the learning rate."),
                    ("the loss of one batch", ("Its data: an empty batch, a logarithm of zero or a "
                                              "division by zero.")),
                ),
            ),
            Step(
                do="Find the operation, from the last good checkpoint and with the same batch.",
                command="JAX_DEBUG_NANS=True python train.py",
                answers=(
                    ("`FloatingPointError: invalid value`, with a line", ("That operation produces "
                                                                         "the first NaN.")),
                    ("no error", "It is not reproducible: suspect the device, see the next step."),
                ),
            ),
            Step(
                do="See whether the device had errors.",
                query='increase(accelerator_ecc_errors_total{@, error="uncorrected"}[6h]) > 0',
                answers=(
                    ("above 0", "JaxDeviceEccErrors: take the device out."),
                    ("nothing", "The program or its data."),
                ),
            ),
        ),
        mitigation=(
            "Stop the run if the loss stays NaN: it will not recover.",
            "Restart from a checkpoint before the first one, and skip the batch if it is the cause.",
            "Clip gradients, lower the learning rate or compute the loss in float32.",
        ),
        look_alikes=(
            ("The loss grows but is finite", "the counter does not rise", "the training's own curves"),
            ("Processes with different numbers", "the finding `diverging_programs` is active", "JaxProgramDivergence"),
        ),
        evidence=(
            "Step, name and process of the first one, from the event log.",
            "The last checkpoint before it.",
            "The batch, if the loader can reproduce it.",
        ),
        verify="The counter does not rise for half an hour of training after the restart.",
    ),
    cases=(
        Case(
            kind="firing", at="23m",
            series={_SERIES: "_x20 1x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="21m", series={_SERIES: "_x20 1x60", _START: "0x80"}),
        Case(kind="healthy", at="15m", series={_SERIES: "0x60", _START: "0x80"}),
        Case(kind="healthy", at="60m", series={_SERIES: "2x80", _START: "-90000x80"}),
        Case(
            kind="firing", at="29m", series={_SERIES: "_x20 1x1 stale", _START: "0x22 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="healthy", at="59m", series={_SERIES: "1x40 2x40", _START: "-9000x80", _STEPS: "0+60x80"}),
        Case(
            kind="firing", at="59m", series={_SERIES: "1x40 2x40", _START: "-9000x80", _STEPS: "0+50x80"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="recovering", at="70m", series={_SERIES: "_x20 1x80", _START: "0x100"}),
        Case(kind="target_gone", at="45m", series={_SERIES: "_x20 1x5 stale", _START: "0x26 stale"}),
        Case(
            kind="counter_reset", at="44m", series={_SERIES: "3x40 1x40", _START: "0x40 2460x40"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
    needs="watched_values",
)  # fmt: skip
