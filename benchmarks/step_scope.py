"""Scopes: the time of an empty `jaxobs.step`, `steps`, `data`, `phase` and `request`, with jaxobs installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Effort, Figure, in_batches, nanoseconds_per_call, of_batches

CALLS = 512
"""In one turn: fewer than wait to be worked out, which is left to the slow tick."""
ROUNDS = 60
MOST = 10.0
"""Empty scopes that a step may cost: a ratio, so that a slower or a faster machine finds the same."""


class Empty:
    """A scope that does nothing, written in Python as ours are."""

    __slots__ = ()

    def __enter__(self) -> Empty:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def run(effort: Effort) -> list[Figure]:
    """Each scope against an empty one, and each iterator against the iterator itself."""
    import jaxobs
    from jaxobs.state.input_waits import Inputs
    from jaxobs.state.loops import Loops
    from jaxobs.state.store import current

    jaxobs.install(capture_signal="off")

    def empty(_: Any) -> None:
        with Empty():
            pass

    def step(_: Any) -> None:
        with jaxobs.step("train"):
            pass

    def step_with_items(_: Any) -> None:
        with jaxobs.step("train", items=64):
            pass

    def phase(_: Any) -> None:
        with jaxobs.phase("eval"):
            pass

    def request(_: Any) -> None:
        with jaxobs.request("predict"):
            pass

    def told_request(_: Any) -> None:
        with jaxobs.request("predict", queue_seconds=0.01, batch=(24, 32)):
            pass

    def bare(_: Any) -> None:
        pass

    turns, batches = iter(jaxobs.steps(iter(int, 1), "turns")), iter(jaxobs.data(iter(int, 1), "batches"))

    def turn(_: Any) -> None:
        next(turns)

    def batch(_: Any) -> None:
        next(batches)

    scopes: dict[str, Callable[[Any], None]] = {
        "`jaxobs.step`": step,
        "`jaxobs.step` with items": step_with_items,
        "a turn of `jaxobs.steps` that measures the wait for input": turn,
        "a batch of `jaxobs.data`": batch,
        "`jaxobs.phase`": phase,
        "`jaxobs.request`": request,
        "`jaxobs.request` with queue and batch": told_request,
    }

    def prepare(name: str) -> None:
        """Works out what waits, as the slow tick does; steps that are looked at closely are few."""
        for loop in current().part(Loops).all():
            loop.drain()
            loop.looks = 0
        current().part(Inputs).frozen()

    for scope in scopes.values():
        for _ in range(16):  # the first batches are sampled
            scope(None)
    functions = {"bare": bare, "empty": empty, **scopes}
    measured = in_batches(
        effort.rounds(ROUNDS),
        lambda rounds: nanoseconds_per_call(functions, None, rounds=rounds, calls=CALLS, prepare=prepare),
    )
    turns.close()

    def costs(name: str) -> list[float]:
        return [each[name] - each["bare"] for each in measured]

    figures = [of_batches("an empty scope", costs("empty"), unit="ns", compared=False)]
    figures += [of_batches(name, costs(name), unit="ns") for name in scopes]
    limits = dict.fromkeys(scopes, MOST)
    limits["`jaxobs.phase`"] = limits["`jaxobs.request` with queue and batch"] = 1.5 * MOST
    for name, limit in limits.items():
        times = [cost / nothing for cost, nothing in zip(costs(name), costs("empty"), strict=True)]
        figures.append(of_batches(f"{name} against an empty scope", times, unit="times", limit=limit))
    return figures
