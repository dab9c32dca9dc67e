"""Per call: what `jaxobs.jit` adds to a call of a compiled function that does next to nothing."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from benchmarks.harness import Figure, caller, nanoseconds_per_call

CALLS = 4096
"""In one turn: as many as the wrapper keeps durations before it digests them, so that each turn pays for that once."""
ROUNDS = 60
QUICK_ROUNDS = 15


def run(quick: bool) -> list[Figure]:
    """Overheads over bare `jax.jit`, as multiples of what an empty Python wrapper adds."""
    import jax
    import jax.numpy as jnp
    from prometheus_client import CollectorRegistry, Counter, Histogram

    import jaxobs
    from jaxobs.base.config import Settings
    from jaxobs.state.store import current

    def increment(x: Any) -> Any:
        return x + 1

    bare = jax.jit(increment)
    sampled = jaxobs.jit(increment, name="sampled")
    every = jaxobs.jit(increment, name="every")
    registry = CollectorRegistry()
    counter = Counter("calls", "Calls.", ["function"], registry=registry).labels("increment")
    histogram = Histogram("seconds", "Seconds.", ["function"], registry=registry).labels("increment")

    def empty(*args: Any, **kwargs: Any) -> Any:
        return bare(*args, **kwargs)

    def by_client(*args: Any, **kwargs: Any) -> Any:
        started = perf_counter()
        result = bare(*args, **kwargs)
        counter.inc()
        histogram.observe(perf_counter() - started)
        return result

    x = jnp.float32(1)
    functions = {"bare": bare, "empty": empty, "sampled": sampled, "every": every, "client": by_client}
    for function in functions.values():
        function(x)

    def prepare(name: str) -> None:
        """Puts the timing in force that the turn is about; by default the first 1,024 calls are timed."""
        if name == "every":
            current().configure(Settings(dispatch_timing="all"))
        elif name == "sampled":
            current().configure(Settings())
            caller(sampled, x, 1100)()

    def empty_around(*args: Any, **kwargs: Any) -> Any:
        return abs(*args, **kwargs)

    ours_around = jaxobs.instrument(abs, name="around")
    caller(ours_around, 1, 1100)()
    rounds = QUICK_ROUNDS if quick else ROUNDS
    costs = nanoseconds_per_call(functions, x, rounds=rounds, calls=CALLS, prepare=prepare)
    around = nanoseconds_per_call({"empty": empty_around, "ours": ours_around}, 1, rounds=rounds, calls=CALLS)
    empty_adds, client_adds = costs["empty"] - costs["bare"], costs["client"] - costs["bare"]
    sampled_adds, every_adds = costs["sampled"] - costs["bare"], costs["every"] - costs["bare"]
    return [
        Figure(name="a call of bare `jax.jit`", value=costs["bare"], unit="ns", compared=False),
        Figure(name="an empty Python wrapper adds", value=empty_adds, unit="ns", compared=False),
        Figure(name="`jaxobs.jit` adds", value=sampled_adds, unit="ns"),
        Figure(name="`jaxobs.jit` adds, every call timed", value=every_adds, unit="ns"),
        Figure(name="prometheus_client's `inc` and `observe` add", value=client_adds, unit="ns", compared=False),
        Figure(name="`jaxobs.jit` against the empty wrapper", value=sampled_adds / empty_adds, unit="times", limit=2.5),
        Figure(
            name="`jaxobs.jit`, every call timed, against the empty wrapper",
            value=every_adds / empty_adds,
            unit="times",
            limit=4.0,
        ),
        Figure(
            name="`jaxobs.jit` adds to a call beyond the empty wrapper",
            value=(around["ours"] - around["empty"]) / costs["bare"] * 100,
            unit="%",
            limit=5.0,
            note=f"{around['ours'] - around['empty']:.0f} ns, measured around `abs`, whose time does not vary",
        ),
        Figure(
            name="`jaxobs.jit` against prometheus_client", value=sampled_adds / client_adds, unit="times", limit=0.25
        ),
    ]
