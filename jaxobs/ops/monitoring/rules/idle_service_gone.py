"""A service that was kept although nobody used it, and is gone."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_WHOSE = 'job="serve", instance="a:9464"'
_START = f"jax_process_start_timestamp_seconds{{{_WHOSE}}}"
_SERVED = f"jax_requests_in_flight{{{_WHOSE}}}"
_REQUESTS = f'jax_requests_total{{{_WHOSE}, route="/predict", cold="false", outcome="ok"}}'
_PROBES = _REQUESTS.replace("/predict", "/healthz")
_LABELS = {"job": "serve"}


def _idle(minutes: int) -> dict[str, str]:
    """Requests for half an hour, then for so long none, and then nothing at all."""
    return {
        _START: f"0x{30 + minutes} stale", _SERVED: f"0x{30 + minutes} stale",
        _REQUESTS: f"0+60x30 1800x{minutes - 1} stale", _PROBES: f"0+6x{30 + minutes} stale",
    }  # fmt: skip


ALERT = Alert(
    name="JaxIdleServiceGone",
    severity="warning",
    concern="availability",
    summary="A service without traffic is gone.",
    description=(
        "No replica of {{ $labels.job }} is visible any more ({{ $value | humanize }} service). It had no requests for "
        "an hour before, and was kept all the same."
    ),
    expr=(
        "last_over_time(job:jax_idle_service:bool{@}[6h]) == 1\n"
        "unless on (job) last_over_time(job:jax_processes_seen:count{@}[10m])"
    ),
    for_="10m",
    panel=("fleet", "processes"),
    runbook=Runbook(
        meaning=(
            "A service that has answered requests, and then had none for an hour, is not visible any more. Autoscalers "
            "that scale to zero do so within minutes; this one had stayed. A service with traffic pages at once: "
            "JaxJobAbsent. The alert ends after six hours."
        ),
        impact="Nobody yet: the next caller gets no answer.",
        diagnosis=(
            Step(
                do="Ask the scheduler what became of it.",
                command=(
                    "kubectl get pods -A -l app.kubernetes.io/name=JOB -o wide; "
                    "kubectl get events -A --sort-by=.lastTimestamp | tail -n 30"
                ),
                answers=(
                    ("`Evicted`, `Preempted`, a node that is not ready", "The cluster: there is no room for it."),
                    ("`OOMKilled`, `Error`", "The program: read its log, and the flight recorder's file."),
                    ("no pods, no deployment", "Somebody removed it: silence the alert if that was intended."),
                ),
            ),
            Step(
                do="See when requests last came.",
                query='sum by (job) (increase(jax_requests_total{@, outcome="ok"}[1d]))',
                answers=(("0", "Nobody has used it for a day: is it needed?"), ("more", "It will be missed.")),
            ),
        ),
        mitigation=(
            "Start it again before the traffic of the day comes.",
            "If it is not needed, delete its deployment.",
        ),
        look_alikes=(
            ("Scaled to zero", "the replicas went within an hour of the last request", "nothing: this alert knows"),
            ("All replicas are there and do not answer", "`up` is 0", "JaxTargetDown"),
            ("A service with traffic is gone", "requests until the end", "JaxJobAbsent"),
        ),
        evidence=("The scheduler's events.", "Replicas and requests of the last day, as a picture."),
        verify="The replicas are visible again, or the service is meant to be gone.",
    ),
    cases=(
        Case(kind="firing", at="125m", series=_idle(70), fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="firing", at="400m", series=_idle(70), fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="pending", at="118m", series=_idle(70)),
        Case(kind="healthy", at="125m", series=_idle(50)),
        Case(kind="healthy", at="125m", series={**_idle(70), _REQUESTS: "0+60x100 stale"}),
        Case(kind="healthy", at="125m", series={name: each for name, each in _idle(70).items() if name != _REQUESTS}),
        Case(kind="healthy", at="125m", series={name: each for name, each in _idle(70).items() if name != _SERVED}),
        Case(kind="healthy", at="125m", series={**_idle(70), _START: "0x200"}),
        Case(kind="recovering", at="140m", series={**_idle(70), _START: "0x100 stale _x28 7800x40"}),
        Case(kind="target_gone", at="480m", series=_idle(70)),
    ),
    needs="serving",
)  # fmt: skip
