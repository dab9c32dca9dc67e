"""What `with jaxobs.step(...)` costs, with the watching of a run installed."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Figure, nanoseconds_per_call

CALLS = 1024
"""In one turn: fewer than wait to be worked out, which is left to the slow tick."""
ROUNDS = 60
QUICK_ROUNDS = 20


def run(quick: bool) -> list[Figure]:
    """A scope around nothing, against a scope of `contextlib` around nothing."""
    import contextlib

    import jaxobs
    from jaxobs.loops import Loops
    from jaxobs.store import current

    jaxobs.install(capture_signal="off")

    def bare(_: Any) -> None:
        pass

    def scope(_: Any) -> None:
        with jaxobs.step("train"):
            pass

    def with_items(_: Any) -> None:
        with jaxobs.step("train", items=64):
            pass

    def empty(_: Any) -> None:
        with contextlib.nullcontext():
            pass

    def turns(_: Any) -> None:
        next(iterator)

    iterator = iter(jaxobs.steps(iter(int, 1), "turns"))

    def prepare(name: str) -> None:
        """Works out what waits, as the slow tick does; steps that are looked at closely are few."""
        for loop in current().part(Loops).all():
            loop.drain()
            loop.looks = 0

    scope(None)
    turns(None)
    functions = {"bare": bare, "scope": scope, "items": with_items, "empty": empty, "turns": turns}
    rounds = QUICK_ROUNDS if quick else ROUNDS
    costs = nanoseconds_per_call(functions, None, rounds=rounds, calls=CALLS, prepare=prepare)
    iterator.close()
    return [
        Figure(name="`jaxobs.step`", value=costs["scope"] - costs["bare"], unit="ns", limit=2000.0),
        Figure(name="`jaxobs.step` with items", value=costs["items"] - costs["bare"], unit="ns", limit=2000.0),
        Figure(
            name="a turn of `jaxobs.steps`, its wait for input told", value=costs["turns"] - costs["bare"], unit="ns"
        ),
        Figure(name="`contextlib.nullcontext`", value=costs["empty"] - costs["bare"], unit="ns"),
    ]
