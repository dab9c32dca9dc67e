"""Objectives of latency: one for each route that a site promises something for. None by default: 0.5 s is slow for a
classifier and impossible for a language model that answers for a minute."""

import re
from collections.abc import Mapping
from decimal import Decimal

from jaxobs.metrics.buckets import REQUEST_BOUNDS
from jaxobs.ops.monitoring.objective_types import Objective
from jaxobs.ops.monitoring.promql import increase, number, quoted
from jaxobs.ops.monitoring.rule_texts import guide


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
        guide=guide(__name__, route=quoted(route)),
    )


def objectives(latency: Mapping[str, float]) -> list[Objective]:
    """Returns the objectives of a site, from seconds by route.

    Raises:
      ValueError: a time is not a bucket's bound, or two routes would have one name.
    """
    found: dict[str, Objective] = {}
    for route, seconds in latency.items():
        try:
            promised = objective(route, seconds)
        except ValueError as error:
            raise ValueError(f"latency.{route}: {error}") from error
        if (name := promised.name) in found:
            raise ValueError(f"latency.{route}: its objective would be called {name}, as that of another route.")
        found[name] = promised
    return list(found.values())


def slug(route: str) -> str:
    """Returns a route as part of a name: `v1-chat` for `/v1/chat`, and `root` for `/`."""
    return "-".join(part for part in re.split(r"[^a-z0-9]+", route.lower()) if part) or "root"
