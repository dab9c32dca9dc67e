"""A service whose processes take requests and finish none."""

from __future__ import annotations

from jaxobs.ops.monitoring.promql import PROBES
from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_WHOSE = 'job="serve", instance="a:9464"'
_IN_FLIGHT = f"jax_requests_in_flight{{{_WHOSE}}}"
_DONE = f'jax_requests_total{{{_WHOSE}, route="/predict", cold="false", outcome="ok"}}'
_PROBE = _DONE.replace("/predict", "/healthz")
_LABELS = {"job": "serve"}


def _finished(window: str) -> str:
    chosen = f'jax_requests_total{{@, route!~"{PROBES}"}}'
    return f"sum by (job, instance) (increase({chosen}[{window}))"


def _others(names: str) -> dict[str, str]:
    return {_IN_FLIGHT.replace("a:9464", f"{name}:9464"): "0x120" for name in names}


ALERT = Alert(
    name="JaxRequestsStalled",
    severity="critical",
    concern="availability",
    summary="A service takes requests and finishes none.",
    description=(
        "{{ $value | humanizePercentage }} of the processes of {{ $labels.job }} have had requests in flight for 15 "
        "minutes and finished none; before, they did."
    ),
    expr=(
        "count by (job) (\n"
        "  (min_over_time(jax_requests_in_flight{@}[15m]) > 0)\n"
        "  >= avg_over_time(jax_requests_in_flight{@}[1h] offset 15m)\n"
        f"  and on (job, instance) {_finished('15m]')} == 0\n"
        f"  and on (job, instance) {_finished('1h] offset 15m')} > <requests>\n"
        ")\n"
        "/ on (job) (count by (job) (jax_requests_in_flight{@}) > 0) >= <share>"
    ),
    for_="2m",
    keep_firing_for="5m",
    thresholds={
        "share": Threshold(
            value=0.3, unit="ratio", least=0.001, most=1,
            why="Of the processes of a service: a load balancer routes around fewer.",
        ),
        "requests": Threshold(
            value=20, unit="count", least=1, most=1_000_000_000,
            why="In the hour before: a service with fewer may well have a request that takes a quarter of an hour.",
        ),
    },
    panel=("serving", "in_flight"),
    runbook=Runbook(
        meaning=(
            "At least `<share>` of the service's processes have had requests in flight for a quarter of an hour, at "
            "least as many as in the hour before, and finished none, although each finished more than `<requests>` in "
            "that hour. They answer scrapes, and perhaps probes, which do not count. Failed requests count as finished."
        ),
        impact="Callers wait until they give up. Error rates do not show it: no request ends.",
        diagnosis=(
            Step(
                do="See which processes hang, and how many requests they hold.",
                query="jax_requests_in_flight{@}",
                answers=(
                    ("all of them, and rising", "What they share: a device, a lock, something downstream."),
                    ("a few", "Their host or device: JaxDeviceLost, JaxDeviceXidErrors."),
                ),
            ),
            Step(
                do="See whether they compile.",
                query="jax_compilations_in_progress{@} > 0",
                answers=(
                    ("1 or more", "Requests wait for a compilation: JaxCompilationStuck."),
                    ("nothing", "Not a compilation: continue."),
                ),
            ),
            Step(
                do="See where one of them hangs.",
                command="py-spy dump --native --pid PID",
                answers=(
                    ("in `block_until_ready`, or a transfer", "The device does not finish: see its driver's log."),
                    ("in a collective", "Another process of the group is gone or ran another program."),
                    ("in a lock or a queue", "The server itself: its batching thread may have died."),
                ),
            ),
        ),
        mitigation=(
            "Take the processes out of the load balancer, dump their stacks, then restart them.",
            "Make the readiness probe run a small request through the model: it fails when the model hangs.",
        ),
        look_alikes=(
            ("Requests wait for others", "some finish, and time in the queue is high", "JaxRequestQueueing"),
            ("Long-lived streams at a quiet hour", "fewer in flight than before", "nothing: they do not count"),
            ("The processes are gone", "no metrics either", "JaxJobAbsent"),
        ),
        evidence=("The stacks of a process that hangs.", "The flight recorder's files from it."),
        verify="Requests finish: `jax_requests_total` rises, and requests in flight fall to their usual number.",
    ),
    cases=(
        Case(
            kind="firing", at="78m", series={_IN_FLIGHT: "0x60 5x60", _DONE: "0+60x60 3600x60"},
            fires=(Fired(labels=_LABELS, values=("100%",)),),
        ),
        Case(kind="pending", at="77m", series={_IN_FLIGHT: "0x60 5x60", _DONE: "0+60x60 3600x60"}),
        Case(
            kind="firing", at="140m", series={_IN_FLIGHT: "9x60 1x60 2x60", _DONE: "0+60x120 7200x60"},
            fires=(Fired(labels=_LABELS, values=("100%",)),),
        ),
        Case(
            kind="firing", at="80m", series={_IN_FLIGHT: "1x60 5x60", _DONE: "0+60x60 3600x60", _PROBE: "0+6x120"},
            fires=(Fired(labels=_LABELS, values=("100%",)),),
        ),
        Case(
            kind="firing", at="110m",
            series={_IN_FLIGHT: "1x60 5x60", _DONE: "0x38 1+1x21 22x60", **_others("bc")},
            fires=(Fired(labels=_LABELS, values=("33.33%",)),),
        ),
        Case(kind="healthy", at="110m", series={_IN_FLIGHT: "1x60 5x60", _DONE: "0x42 1+1x17 18x60"}),
        Case(kind="healthy", at="80m", series={_IN_FLIGHT: "2x60 1x60", _DONE: "0+60x60 3600x60"}),
        Case(kind="healthy", at="80m", series={_IN_FLIGHT: "1x60 0x60", _DONE: "0+60x60 3600x60"}),
        Case(kind="healthy", at="80m", series={_IN_FLIGHT: "1x60 5x60", _DONE: "0+60x60 3600+1x60"}),
        Case(
            kind="healthy", at="80m",
            series={
                _IN_FLIGHT: "1x60 5x60", _DONE: "0+60x60 3600x60",
                **_others("bcd"),
            },
        ),
        Case(kind="healthy", at="80m", series={_IN_FLIGHT: "1x65 0x3 5x60", _DONE: "0+60x60 3600x60"}),
        Case(kind="healthy", at="80m", series={_IN_FLIGHT: "9x30 1x30 3x60", _DONE: "0+60x60 3600x60"}),
        Case(kind="healthy", at="150m", series={_IN_FLIGHT: "1x160", _DONE: "0+60x60 3600x100"}),
        Case(kind="recovering", at="100m", series={_IN_FLIGHT: "1x60 5x20 1x60", _DONE: "0+60x60 3600x20 3600+60x60"}),
        Case(kind="target_gone", at="95m", series={_IN_FLIGHT: "1x60 5x20 stale", _DONE: "0+60x60 3600x20 stale"}),
        Case(
            kind="counter_reset", at="80m", series={_IN_FLIGHT: "1x60 5x60", _DONE: "0+60x30 0+60x29 1740x60"},
            fires=(Fired(labels=_LABELS, values=("100%",)),),
        ),
    ),
    needs="serving",
)  # fmt: skip
