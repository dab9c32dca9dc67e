"""A service that lost many of its replicas at once, while they were busy."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "serve"}


def _fleet(stay: int, go: int, until: str, rate: str = "0+60x120") -> dict[str, str]:
    """Replicas that answer 60 requests a minute; some of them until a given minute."""
    found = {}
    for number in range(stay + go):
        whose = f'job="serve", instance="{number}:9464"'
        gone = number >= stay
        found[f"jax_requests_in_flight{{{whose}}}"] = until if gone else "1x120"
        requests = f'jax_requests_total{{{whose}, route="/", cold="false", outcome="ok"}}'
        found[requests] = rate.replace("120", until.partition("x")[2]) if gone and "stale" in until else rate
    return found


ALERT = Alert(
    name="JaxReplicasLost",
    severity="warning",
    concern="availability",
    summary="A service lost many replicas at once.",
    description="{{ $value | humanizePercentage }} of the replicas of {{ $labels.job }} vanished within ten minutes.",
    expr=(
        "job:jax_serving_processes:lost10m{@} / on (job) (job:jax_serving_processes:max1h{@} >= <replicas>) > <share>\n"
        "and on (job)\n"
        "job:jax_requests_per_process:ratio2h{@} > <busy>"
    ),
    for_="3m",
    keep_firing_for="30m",
    thresholds={
        "share": Threshold(
            value=0.3, unit="ratio", least=0.05, most=0.99,
            why="A rolling deployment takes a quarter of the replicas away at a time, by Kubernetes' default.",
        ),
        "replicas": Threshold(
            value=4, unit="count", least=2, most=100_000,
            why="Of the most in the last hour: of fewer, one alone is a large share.",
        ),
        "busy": Threshold(
            value=0.7, unit="factor", least=0.05, most=10,
            why=(
                "An autoscaler takes replicas away because they have little to do; these were as busy as in the "
                "two hours before."
            ),
        ),
    },
    panel=("fleet", "replicas_lost"),
    runbook=Runbook(
        meaning=(
            "More than `<share>` of the most replicas of the last hour vanished within ten minutes, although before "
            "that each of them answered more than `<busy>` what it answered in the median of the two hours before. "
            "An autoscaler removes replicas after the traffic has gone, not before."
        ),
        impact="The remaining replicas have to answer all requests: latency rises, queues grow, or callers get errors.",
        diagnosis=(
            Step(
                do="See how many are left, and what each of them has to do.",
                query="count by (job) (jax_requests_in_flight{@})",
                answers=(
                    ("it rises again", "They were replaced: wait for them to warm up."),
                    ("it stays low", "Nothing replaces them: continue."),
                ),
            ),
            Step(
                do="Ask the scheduler.",
                command=(
                    "kubectl get pods -A -l app.kubernetes.io/name=JOB -o wide; "
                    "kubectl get events -A --sort-by=.lastTimestamp | tail -n 30"
                ),
                answers=(
                    ("`Evicted`, nodes that are not ready", "A zone or a node pool is gone: get capacity elsewhere."),
                    ("`Pending`", "There is no room: raise a quota, or the priority."),
                    ("`Killing`, scaled down", "Somebody, or a rule of the autoscaler: see the deployment."),
                ),
            ),
        ),
        mitigation=("Bring capacity back: another zone, another node pool.", "Shed load that can wait."),
        look_alikes=(
            ("An autoscaler that follows the traffic", "requests per replica fell first", "nothing: this alert knows"),
            ("All replicas are gone", "none is left", "JaxJobAbsent"),
            ("A deployment that replaces them", "the new ones appear meanwhile", "JaxDeploymentUnderWay"),
        ),
        evidence=("The scheduler's events.", "Replicas and requests of the last two hours, as a picture."),
        verify="As many replicas as before are visible, or the smaller number answers all requests in time.",
    ),
    cases=(
        Case(
            kind="firing", at="66m", series=_fleet(3, 3, "1x60 stale"),
            fires=(Fired(labels=_LABELS, values=("50%",)),),
        ),
        Case(kind="pending", at="62m", series=_fleet(3, 3, "1x60 stale")),
        Case(kind="healthy", at="66m", series=_fleet(6, 2, "1x60 stale")),
        Case(kind="healthy", at="66m", series=_fleet(1, 2, "1x60 stale")),
        Case(
            kind="firing", at="66m", series=_fleet(2, 2, "1x60 stale"),
            fires=(Fired(labels=_LABELS, values=("50%",)),),
        ),
        Case(
            kind="firing", at="66m", series=_fleet(6, 3, "1x60 stale"),
            fires=(Fired(labels=_LABELS, values=("33.33%",)),),
        ),
        Case(kind="healthy", at="66m", series=_fleet(3, 3, "1x60 stale", "0+60x40 2400+36x80")),
        Case(
            kind="firing", at="66m", series=_fleet(3, 3, "1x60 stale", "0+60x40 2400+48x80"),
            fires=(Fired(labels=_LABELS, values=("50%",)),),
        ),
        Case(kind="recovering", at="110m", series=_fleet(3, 3, "1x60 stale")),
        Case(
            kind="target_gone", at="115m",
            series={name: values.replace("120", "75 stale") for name, values in _fleet(3, 3, "1x60 stale").items()},
        ),
        Case(kind="counter_reset", at="66m", series=_fleet(6, 0, "", "0+60x40 0+60x80")),
    ),
    needs="serving",
)  # fmt: skip
