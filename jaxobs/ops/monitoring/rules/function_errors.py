"""A function whose calls raise again and again."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_function_errors_total{job="train", instance="a:9464", function="f", error="ValueError"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464", "function": "f"}

ALERT = Alert(
    name="JaxFunctionErrors",
    severity="warning",
    concern="availability",
    summary="Calls of a function keep failing.",
    description=(
        "Calls of {{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) raised {{ $value | humanize }} "
        "times in the last half hour."
    ),
    expr=(
        "sum without (error) (\n"
        '  job_instance_function_error:jax_function_errors:increase30m{@fn, error!~"KeyboardInterrupt|StopIteration"}\n'
        ") >= <errors>"
    ),
    for_="2m",
    keep_firing_for="10m",
    thresholds={
        "errors": Threshold(
            value=3, unit="count", least=1, most=1_000_000,
            why=("An error that ends the program shows in JaxTargetDown; three errors mean that "
                "something catches them and retries."),
        )
    },
    panel=("oncall", "errors"),
    runbook=Runbook(
        meaning=(
            "At least `<errors>` calls of an instrumented function raised within half an hour. "
            "`KeyboardInterrupt` and `StopIteration`, which programs use to end loops, do not count. "
            "The first error of each type counts too."
        ),
        impact=(
            "Each is a step or a request that failed. A service answers with errors; a training loop "
            "that catches them skips data."
        ),
        diagnosis=(
            Step(
                do="See which errors, of which functions, and on how many processes.",
                query=(
                    "sum by (job, function, error) (job_instance_function_error:jax_function_errors:increase30m{@fn}) "
                    "> 0"
                ),
                answers=(
                    (
                        "`TypeError`, `ValueError`, Concretization or Tracer errors",
                        "The program: arguments that it was not written for. Look at what was deployed.",
                    ),
                    ("`JaxRuntimeError`, `XlaRuntimeError`", "The device or the runtime: read the text below."),
                    ("`FloatingPointError`", "`jax_debug_nans` is on and found one: JaxNonFiniteValues."),
                ),
            ),
            Step(
                do="Read the texts of the errors.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("RESOURCE_EXHAUSTED", "JaxOutOfMemory."),
                    ("`CUDA_ERROR_`, `device halted`", "The device: JaxDeviceXidErrors, JaxDeviceLost."),
                    (
                        "DEADLINE_EXCEEDED, UNAVAILABLE, `Task ... is not connected`",
                        "A peer is gone: find the process that died first.",
                    ),
                    (
                        "INVALID_ARGUMENT",
                        "Arguments or layouts do not match the program: a checkpoint from another version.",
                    ),
                ),
            ),
            Step(
                do="Compare the time it started with the start of the processes.",
                query="time() - jax_process_start_timestamp_seconds{@}",
                answers=(
                    ("at the start", "The new version, or its configuration."),
                    ("hours later", "Something outside: input, device, a peer."),
                ),
            ),
        ),
        mitigation=(
            "If a deployment caused it, roll back.",
            "If one host causes all of them, take it out of service.",
            "If certain inputs cause them, reject these before they reach the function.",
        ),
        look_alikes=(
            ("Out of memory", "`jax_out_of_memory_total` rises as well", "JaxOutOfMemory"),
            ("Requests fail outside of JAX", "request errors rise, these do not", "JaxRequestErrorsHigh"),
        ),
        evidence=(
            "The text and stack of one error of each type.",
            "The arguments' shapes, from `jaxobs explain`.",
            "The latest deployed version, and when it was deployed.",
        ),
        verify="The panel stays at 0 for half an hour under normal load.",
    ),
    cases=(
        Case(
            kind="firing", at="23m",
            series={_SERIES: "_x20 3x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("3",)),),
        ),
        Case(kind="pending", at="21m", series={_SERIES: "_x20 3x60", _START: "0x80"}),
        Case(kind="healthy", at="25m", series={_SERIES: "_x20 2x60", _START: "0x80"}),
        Case(
            kind="healthy", at="25m",
            series={_SERIES.replace("ValueError", "StopIteration"): "_x20 9x60", _START: "0x80"},
        ),
        Case(kind="healthy", at="60m", series={_SERIES: "9x80", _START: "-90000x80"}),
        Case(kind="recovering", at="70m", series={_SERIES: "_x20 3x80", _START: "0x100"}),
        Case(kind="target_gone", at="45m", series={_SERIES: "_x20 3x5 stale", _START: "0x26 stale"}),
        Case(
            kind="counter_reset", at="45m", series={_SERIES: "5x40 3x40", _START: "0x40 2460x40"},
            fires=(Fired(labels=_LABELS, values=("3",)),),
        ),
    ),
)  # fmt: skip
