"""Requests wait for compilations."""

from __future__ import annotations

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import SLOW, Alert, Event, Knowledge, Metric

_REQUESTS = "jax_requests_total"
_LEAST = 100
_SHARE = 0.01
"""Of the requests of a process that is no longer young. As in JaxColdRequestsHigh."""
_SHARE_OF_ALL = 0.2
"""The same where it is not known when the process started: each warms up."""


def _are_few(evidence: Evidence, sign: Observation) -> bool:
    """Whether so few requests waited for a compilation that a process which warms up has as many."""
    if sign.name != _REQUESTS:
        return False
    route = sign.data.get("route", "")
    own = [each for each in counters.samples(evidence, sign, _REQUESTS) if each.data.get("route", "") == route]
    requests = sum(each.value or 0.0 for each in own)
    cold = sum(each.value or 0.0 for each in own if each.data.get("cold") == "true")
    dated = any(True for _ in counters.samples(evidence, sign, counters.STARTED)) and sign.time is not None
    return (
        requests < _LEAST
        or counters.is_young(evidence, sign)
        or cold < (_SHARE if dated else _SHARE_OF_ALL) * requests
    )  # fmt: skip


KNOWN = Knowledge(
    title="Requests wait for compilations",
    impact=SLOW,
    signs=(
        Event("finding:cold_requests"),
        Alert("JaxColdRequestsHigh", weak=False),
        Metric(_REQUESTS, labels=(("cold", "true"),)),
    ),
    follows=("recompilation", "cache_lost", "cache_unusable"),
    needs=("event-log", "metrics-file", "target", "prometheus"),
    fix=(
        "Warm up every shape before traffic arrives (`jaxobs.warmup`, `jaxobs cache warm`), and "
        "pad requests to a few shapes."
    ),
    runbook="JaxColdRequestsHigh",
    beside=(counters.STARTED,),
    ordinary=_are_few,
)
