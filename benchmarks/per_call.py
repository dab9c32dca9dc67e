"""Per call: the time that `jaxobs.jit` adds to a call of a very short compiled function."""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

from benchmarks.harness import Effort, Figure, caller, in_batches, nanoseconds_per_call, of_batches

CALLS = 4096
"""In one turn: as many as the wrapper keeps durations before it digests them, so that each turn pays for that once."""
ROUNDS = 30


def run(effort: Effort) -> list[Figure]:
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

    def empty_around(*args: Any, **kwargs: Any) -> Any:
        return abs(*args, **kwargs)

    def client_around(*args: Any, **kwargs: Any) -> Any:
        started = perf_counter()
        result = abs(*args, **kwargs)
        counter.inc()
        histogram.observe(perf_counter() - started)
        return result

    ours_around = jaxobs.instrument(abs, name="around")
    around = {"abs": abs, "empty around": empty_around, "ours around": ours_around, "client around": client_around}
    first_calls = {"sampled": caller(sampled, x, 1100), "ours around": caller(ours_around, 1, 1100)}

    def prepare(name: str) -> None:
        """Puts the timing in force that the turn is about; by default the first 1,024 calls are timed."""
        if name == "every":
            current().configure(Settings(dispatch_timing="all"))
        elif name in first_calls:
            current().configure(Settings())
            first_calls[name]()

    def measured(rounds: int) -> dict[str, float]:
        costs = nanoseconds_per_call(functions, x, rounds=rounds, calls=CALLS, prepare=prepare)
        return costs | nanoseconds_per_call(around, 1, rounds=rounds, calls=CALLS, prepare=prepare)

    batches = in_batches(effort.rounds(ROUNDS), measured)

    def added(name: str) -> list[float]:
        return [each[name] - each["bare"] for each in batches]

    def against(name: str, other: str) -> list[float]:
        return [one / another for one, another in zip(added(name), added(other), strict=True)]

    beyond = [each["ours around"] - each["empty around"] for each in batches]
    of_client = [(each["ours around"] - each["abs"]) / (each["client around"] - each["abs"]) for each in batches]
    bare = statistics.median(each["bare"] for each in batches)
    return [
        Figure(name="a call of bare `jax.jit`", value=bare, unit="ns", compared=False),
        of_batches("an empty Python wrapper adds", added("empty"), unit="ns", compared=False),
        of_batches("`jaxobs.jit` adds", added("sampled"), unit="ns"),
        of_batches("`jaxobs.jit` adds, every call timed", added("every"), unit="ns"),
        of_batches("prometheus_client's `inc` and `observe` add", added("client"), unit="ns", compared=False),
        of_batches("`jaxobs.jit` against the empty wrapper", against("sampled", "empty"), unit="times", limit=2.5),
        of_batches(
            "`jaxobs.jit`, every call timed, against the empty wrapper", against("every", "empty"), unit="times",
            limit=4.0,
        ),
        of_batches(
            "`jaxobs.jit` adds to a call beyond the empty wrapper", [each / bare * 100 for each in beyond], unit="%",
            limit=5.0, note=f"{statistics.median(beyond):.0f} ns, measured around `abs`, whose time does not vary",
        ),
        of_batches(
            "`jaxobs.jit` against prometheus_client", against("sampled", "client"), unit="times", compared=False
        ),
        of_batches(
            "`jaxobs.instrument` against prometheus_client", of_client, unit="times", limit=0.15,
            note="measured around `abs`",
        ),
    ]  # fmt: skip
