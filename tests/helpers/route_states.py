"""Served requests as the snapshot has them, and a compilation that makes one cold."""

from __future__ import annotations

import time
from typing import Any

import prometheus_client

import jaxobs
from helpers.made_by_hand import compilation
from jaxobs.facts.requests import RouteState
from jaxobs.state import store


def routes() -> dict[str, RouteState]:
    return {each.route: each for each in jaxobs.snapshot().routes}


def outcomes(route: str = "/predict", cold: str = "false") -> dict[str, int]:
    """How often requests of a route ended in which way."""
    return dict(routes()[route].requests[cold])


def first_tokens(route: str = "/predict") -> int:
    """Requests whose time to the first token is known."""
    found = routes()[route].first_token_seconds
    return 0 if found is None else sum(found.counts)


def exposed(name: str, **labels: str) -> float | None:
    """The value of a sample of the metrics."""
    registry = prometheus_client.CollectorRegistry()
    registry.register(jaxobs.collector())
    return registry.get_sample_value(name, labels)


def compiled(function: str = "f", **fields: Any) -> None:
    """Something compiles on this thread, made by hand."""
    store.current().record(compilation(function, time=time.time(), **fields))
