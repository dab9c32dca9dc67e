"""Runs out of memory in many ways under `install()` alone, and catches it; prints what was seen, as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs
from jaxobs.internals import caught_errors
from jaxobs.session import lifecycle
from jaxobs.sources.flight_recorder import CAPABILITY
from jaxobs.state import store

TOO_MUCH = 2**48
WINDOW = np.lib.stride_tricks.sliding_window_view(np.zeros(1 << 24, np.float32), 1 << 23)
MONITORING: Any = getattr(sys, "monitoring", None)

jaxobs.install(flight_recorder="off", sample_interval=3600)


def seen() -> list[Any]:
    return store.current().events(kind="out_of_memory")[0]


@jax.jit
def big(x: Any) -> Any:
    return jnp.zeros((TOO_MUCH,)) + x


def lowered(x: Any) -> Any:
    return x + WINDOW


@jax.jit
def fails(x: Any) -> Any:
    def raises(x: Any) -> Any:
        raise ValueError("a callback failed")

    return jax.pure_callback(raises, x, x)


def caught(call: Callable[[], Any]) -> None:
    """Through `with`, `finally`, a handler for something else, another raise, and a raise from it."""
    try:
        try:
            with contextlib.ExitStack(), threading.Lock():
                try:
                    call()
                except KeyError:
                    raise
        except Exception as error:
            try:
                raise error
            except Exception as again:
                raise LookupError("wrapped") from again
    except LookupError:
        pass


def in_a_thread() -> None:
    thread = threading.Thread(target=lambda: big(2.0))
    thread.start()
    thread.join()


def storm(exceptions: int) -> None:
    """As control flow has them."""
    for _ in range(exceptions):
        with contextlib.suppress(KeyError):
            raise KeyError


def sample() -> None:
    assert lifecycle._session is not None
    lifecycle._session.sample()


def tools() -> list[Any]:
    return [] if MONITORING is None else [MONITORING.get_tool(number) for number in range(6)]


SCENARIOS: dict[str, Callable[[], Any]] = {
    "a call": lambda: caught(lambda: big(1.0)),
    "the same call": lambda: caught(lambda: big(1.0)),
    "an operation": lambda: caught(lambda: jnp.ones((TOO_MUCH,))),
    "a lowering": lambda: caught(lambda: jax.jit(lowered)(1.0)),
    "a call of an instrumented function": lambda: caught(lambda: jaxobs.instrument(big, name="big")(1.0)),
    "the program's own array": lambda: caught(lambda: np.zeros((TOO_MUCH,))),
    "another error of JAX's": lambda: caught(lambda: jax.block_until_ready(fails(1.0))),
    "a thread": in_a_thread,
}


def main() -> None:
    threading.excepthook = lambda details: None
    found: dict[str, Any] = {"python": sys.version_info[:2]}
    for name, scenario in SCENARIOS.items():
        before = len(seen())
        scenario()
        found[name] = [each.function for each in seen()[before:]]
    storm(3 * caught_errors.MOST)  # however often the sampler comes meanwhile
    sample()
    before = len(seen())
    caught(lambda: big(1.0))
    found["after a sample"] = len(seen()) - before
    observer = store.current().snapshot().observer
    found["capability"] = observer.capabilities.get(CAPABILITY)
    found["dropped"], found["notes"] = observer.dropped.get(CAPABILITY, 0), list(observer.notes)
    jaxobs.uninstall()
    found["uninstalled"], before = tools(), len(seen())
    caught(lambda: big(1.0))
    found["after uninstall"] = len(seen()) - before
    if MONITORING is not None:
        found["beside others"], found["bounded"] = beside_others(), bounded()
    found["errors"] = dict(jaxobs.snapshot().observer.internal_errors)
    print(json.dumps(found))


def beside_others() -> dict[str, Any]:
    """Both free numbers are taken, then one is given back."""
    told: list[str] = []
    for number in (3, 4):
        MONITORING.use_tool_id(number, f"other {number}")
    MONITORING.register_callback(3, MONITORING.events.RAISE, lambda code, offset, error: told.append(str(error)))
    MONITORING.set_events(3, MONITORING.events.RAISE)
    jaxobs.install(flight_recorder="off", sample_interval=3600)
    capabilities = [store.current().snapshot().observer.capabilities[CAPABILITY]]
    notes = [each for each in store.current().snapshot().observer.notes if "sys.monitoring" in each]
    MONITORING.free_tool_id(4)
    sample()
    capabilities.append(store.current().snapshot().observer.capabilities[CAPABILITY])
    before = len(seen())
    caught(lambda: big(1.0))
    both, after = tools(), len(seen()) - before
    jaxobs.uninstall()
    told.clear()
    with contextlib.suppress(KeyError):
        raise KeyError("still told")
    return {
        "capabilities": capabilities,
        "notes": notes,
        "tools": both,
        "seen": after,
        "after": tools(),
        "told": list(told),
    }


def bounded() -> list[bool]:
    """Whether an error is told: after a few exceptions, after too many, and when as many more may come."""
    told: list[BaseException] = []
    watch, found = caught_errors.CaughtErrors(told.append, most=50), []
    assert watch.start()
    for exceptions in (10, 60, 10):
        storm(exceptions)
        told.clear()
        caught(lambda: big(1.0))
        found.append(bool(told))
        watch.refill()
    watch.stop()
    return found


if __name__ == "__main__":
    main()
