"""Per call: what `jaxobs.jit` adds to a call of a compiled function that does next to nothing."""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

from benchmarks.harness import Effort, Figure, caller, in_batches, nanoseconds_per_call, of_batches

CALLS = 4096
"""In one turn: as many as the wrapper keeps durations before it digests them, so that each turn pays for that once."""
ROUNDS = 30


def run(effort: Effort) -> list[Figure]:
    """Returns overheads as multiples of what an empty Python wrapper adds.

    `jaxobs.jit` and `jaxobs.instrument` make the same wrapper. It is measured around `abs`: the time of a call of
    `jax.jit` varies by more than a wrapper costs.
    """
    import jax
    import jax.numpy as jnp
    from prometheus_client import CollectorRegistry, Counter, Histogram

    import jaxobs
    from jaxobs.base.config import Settings
    from jaxobs.state.store import current

    jitted, x = jax.jit(lambda x: x + 1), jnp.float32(1)
    sampled, every = (jaxobs.instrument(abs, name=name) for name in ("sampled", "every"))
    registry = CollectorRegistry()
    counter = Counter("calls", "Calls.", ["function"], registry=registry).labels("abs")
    histogram = Histogram("seconds", "Seconds.", ["function"], registry=registry).labels("abs")

    def empty(*args: Any, **kwargs: Any) -> Any:
        return abs(*args, **kwargs)

    def by_client(*args: Any, **kwargs: Any) -> Any:
        started = perf_counter()
        result = abs(*args, **kwargs)
        counter.inc()
        histogram.observe(perf_counter() - started)
        return result

    functions = {"bare": abs, "empty": empty, "sampled": sampled, "every": every, "client": by_client}
    jitted(x)

    def prepare(name: str) -> None:
        """Puts the timing in force that the turn is about; by default the first 1,024 calls are timed."""
        if name == "every":
            current().configure(Settings(dispatch_timing="all"))
        elif name == "sampled":
            current().configure(Settings())
            caller(sampled, 1, 1100)()

    def measured(rounds: int) -> dict[str, float]:
        costs = nanoseconds_per_call(functions, 1, rounds=rounds, calls=CALLS, prepare=prepare)
        return costs | nanoseconds_per_call({"jitted": jitted}, x, rounds=rounds, calls=CALLS)

    batches = in_batches(effort.rounds(ROUNDS), measured)

    def added(name: str) -> list[float]:
        return [each[name] - each["bare"] for each in batches]

    def against(name: str, other: str) -> list[float]:
        return [one / another for one, another in zip(added(name), added(other), strict=True)]

    call = statistics.median(each["jitted"] for each in batches)

    def share(figure: str, name: str, limit: float) -> Figure:
        beyond = [each[name] - each["empty"] for each in batches]
        note = f"{statistics.median(beyond):.0f} ns"
        return of_batches(figure, [each / call * 100 for each in beyond], unit="%", limit=limit, note=note)

    return [
        Figure(name="a call of bare `jax.jit`", value=call, unit="ns", compared=False),
        of_batches("an empty Python wrapper adds", added("empty"), unit="ns", compared=False),
        of_batches("`jaxobs.jit` adds", added("sampled"), unit="ns"),
        of_batches("`jaxobs.jit` adds, every call timed", added("every"), unit="ns"),
        of_batches("prometheus_client's `inc` and `observe` add", added("client"), unit="ns", compared=False),
        of_batches("`jaxobs.jit` against the empty wrapper", against("sampled", "empty"), unit="times", limit=2.5),
        share("`jaxobs.jit` adds to a call beyond the empty wrapper", "sampled", 5.0),
        share("`jaxobs.jit` adds to a call beyond the empty wrapper, every call timed", "every", 10.0),
        of_batches("`jaxobs.jit` against prometheus_client", against("sampled", "client"), unit="times", limit=0.25),
    ]
