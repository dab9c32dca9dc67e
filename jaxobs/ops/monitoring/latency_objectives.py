"""Objectives of latency: one for each route that a site promises something for. None by default: 0.5 s is slow for a
classifier and impossible for a language model that answers for a minute."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from jaxobs.metrics.buckets import REQUEST_BOUNDS
from jaxobs.ops.monitoring.objective_types import Guide, Objective
from jaxobs.ops.monitoring.promql import increase, number, quoted
from jaxobs.ops.monitoring.rule_types import Step


def objective(route: str, seconds: float) -> Objective:
    """Returns the objective that a route's requests are answered within so many seconds.

    Raises:
      ValueError: no bucket of the histogram ends there, so that nothing could be counted.
    """
    if seconds not in REQUEST_BOUNDS:
        known = ", ".join(map(number, REQUEST_BOUNDS))
        raise ValueError(f"{seconds:g} is not the bound of a bucket of `jax_request_seconds`. Bounds: {known}.")
    chosen = f'cold="false", route={quoted(route)}'
    count = increase(f"jax_request_seconds_count{{@, {chosen}}}")
    within = increase(f'jax_request_seconds_bucket{{@, {chosen}, le="{seconds!r}"}}')
    failed = increase(f'jax_requests_total{{@, {chosen}, outcome!="ok"}}')
    answered = f"(sum by (job) ({count})\n- (sum by (job) ({failed}) or 0 * sum by (job) ({count})))"
    return Objective(
        name=f"request-latency-{slug(route)}",
        title=f"Latency of {route}",
        description=f"Requests for {route} in which nothing compiled are answered within {number(seconds)} s.",
        denominator=(
            "It is a share of the requests that were answered without an error: a fast error is not a fast answer, "
            "and counts in request-availability."
        ),
        absent="Without such requests nothing is counted.",
        service="serving",
        target=Decimal("0.99"),
        bad=f"clamp_min(sum by (job) ({count})\n- sum by (job) ({within}), 0)",
        total=f"clamp_min({answered}, 0)",
        unit="requests",
        least=Decimal(100),
        guide=_guide(route),
    )


def objectives(latency: Mapping[str, float]) -> list[Objective]:
    """Returns the objectives of a site, from seconds by route.

    Raises:
      ValueError: a time is no bucket's bound, or two routes would have one name.
    """
    found: dict[str, Objective] = {}
    for route, seconds in latency.items():
        try:
            each = objective(route, seconds)
        except ValueError as error:
            raise ValueError(f"latency.{route}: {error}") from error
        if each.name in found:
            raise ValueError(f"latency.{route}: its objective would be called {each.name}, as that of another route.")
        found[each.name] = each
    return list(found.values())


def slug(route: str) -> str:
    """Returns a route as part of a name: `v1-chat` for `/v1/chat`, and `root` for `/`."""
    return "-".join(part for part in re.split(r"[^a-z0-9]+", route.lower()) if part) or "root"


def _guide(route: str) -> Guide:
    chosen = f'cold="false", route={quoted(route)}'
    return Guide(
        impact="Callers wait longer than promised, although the programs are compiled.",
        diagnosis=(
            Step(
                do="See which route and which process are slow.",
                query=(
                    "histogram_quantile(0.99, sum by (job, instance, route, le) "
                    f"(rate(jax_request_seconds_bucket{{@, {chosen}}}[10m])))"
                ),
                answers=(
                    ("One instance", "Its device is throttled, or another process shares it: see the devices."),
                    ("One route", "Its inputs have grown: see the batch fill and the step before it."),
                    ("All of them", "More requests than it can serve: continue with the queue."),
                ),
            ),
            Step(
                do="See how much of it is waiting in the queue.",
                query=(
                    "sum by (job, instance) (rate(jax_request_queue_seconds_sum{@}[10m]))\n"
                    "/ (sum by (job, instance) (rate(jax_request_queue_seconds_count{@}[10m])) > 0)"
                ),
                answers=(
                    ("Near the latency", "Saturated: add a process, or fill the batches better."),
                    ("Near nothing", "The program itself is slow: capture a trace with `jaxobs.capture`."),
                ),
            ),
            Step(
                do="See the slowest requests in the process itself.",
                command="curl -s http://HOST:9464/api/v1/snapshot | python -m json.tool | grep -A40 '\"routes\"'",
                answers=(("`cold` requests", "They count towards the other objective, JaxSloColdRequestsBurn."),),
            ),
        ),
        mitigation=(
            "Add processes.",
            "Let the batcher wait less.",
            ("Reject or queue what cannot be answered in time."),
        ),
        look_alikes=(
            ("Requests that compile", "`cold` is `true`", "JaxSloColdRequestsBurn"),
            ("A slow network", "the process's own latency is fine", "the load balancer in front of it"),
        ),
    )
