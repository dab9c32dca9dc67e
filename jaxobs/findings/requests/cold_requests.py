"""`cold_requests`: requests waited for a compilation inside them."""

import re
from collections import Counter
from collections.abc import Iterator

from jaxobs.facts.requests import RequestCompilation, RouteState
from jaxobs.findings.cases import UNKNOWN, Case, Scene
from jaxobs.findings.compilations.support.case import duration, plural

NAME = "cold_requests"
NEEDS = Scene

LEAST_SECONDS = 0.5
"""Time that they took longer than a warm one, together. Below, nobody noticed."""

LETS_GO = 1
LASTS = 600.0
"""Seconds after the latest cold request at which it is over."""

FOLLOWS = (
    "recreated_functions", "unbounded_shapes", "static_values", "identity_hashed_static", "unbounded_structures",
    "flip_flop", "recompile_storm", "long_compilation",
)  # fmt: skip

_MOST_SHOWN = 3
_WARM_UP = re.compile(r"(?:\b|[_/])(?:pre[-_]?)?warm(?:[-_ ]?up|ing)?(?:\b|[_/])", re.IGNORECASE)
"""Names that a program gives its own warm-up: nobody waits for it."""


def find(scene: Scene) -> Iterator[Case]:
    """A case for each route."""
    for route in scene.snapshot.routes:
        cold = route.count(cold="true")
        histogram = route.seconds.get("true")
        over = bool(route.latest_cold) and scene.time - route.latest_cold[0].time > LASTS
        if over or not cold or histogram is None or _WARM_UP.search(route.route):
            continue
        usual = route.warm.p50 if route.warm is not None else None
        lost = histogram.sum - cold * (usual or 0.0)
        if lost >= LEAST_SECONDS:
            yield _case(route, cold, usual, lost)


def _case(route: RouteState, cold: int, usual: float | None, lost: float) -> Case:
    compiled = [each for record in route.latest_cold for each in record.compiled]
    slowest: dict[str, float] = {}
    for each in compiled:
        slowest[each.function] = slowest.get(each.function, 0.0) + each.seconds
    function = max(slowest, key=lambda name: slowest[name], default=UNKNOWN)
    than = f", compared with {duration(usual)} for a typical warm one" if usual is not None else ""
    took = duration((lost + cold * (usual or 0.0)) / cold)
    each_took = f"{took} on average" if cold > 1 else took
    return Case(
        function=function,
        subject=route.route,
        summary=(
            f"{cold:,} of {plural(route.total, 'request')} to `{route.route}` compiled before they were answered: "
            f"{each_took}{than}."
        ),
        advice=_advice(compiled, function),
        count=cold,
        seconds=lost,
        evidence=[f"`{each.function}`, {duration(each.seconds)}: {each.reason}" for each in compiled[:_MOST_SHOWN]],
        data={
            "route": route.route,
            "functions": sorted(slowest),
            "warm_seconds": usual,
            "cold_seconds": lost / cold + (usual or 0.0),
            "causes": dict(Counter(each.cause for each in compiled)),
        },
    )


def _advice(compiled: list[RequestCompilation], function: str) -> str:
    causes = Counter(each.cause for each in compiled)
    name = function.rpartition(".")[2] if function != UNKNOWN else "f"
    told = [
        f"Compile before the first request: call `jaxobs.warmup({name}, ...)` with the signatures of your requests. A "
        "persistent cache (`jax_compilation_cache_dir`) makes that fast from the second start on."
    ]
    if causes["shape"]:
        told.append("Pad requests to a few fixed sizes, so that only these compile.")
    if causes["new_function"] or causes["static_argument"]:
        told.append("Use one jitted function for all requests, and pass what varies as an array.")
    return " ".join(told)
