"""Exchanges that hold devices up, in traces made by hand."""

import pytest
from helpers import xplanes
from helpers.xplanes import event

from jaxobs.internals.xplane import space
from jaxobs.internals.xplane.space import Event, Plane, Space
from jaxobs.profiles import exposure
from jaxobs.profiles.tracks import trace_of, wanted

US = 1000.0


def exposed(*planes: Plane) -> dict[str, float]:
    """Microseconds by function of a trace that was written and read."""
    found = exposure.by_function(trace_of(space.read(xplanes.space(Space(planes)), wanted)))
    return {function: round(seconds * 1e6, 3) for function, seconds in found.items()}


def kernel(operation: str, start: float, end: float, module: str) -> Event:
    return event(operation, start * US, end * US, hlo_op=operation, hlo_module=module)


def test_each_function_has_its_own() -> None:
    """Any computation hides exchanges, whosever it is; other exchanges don't."""
    streams = {
        "Stream #1(compute)": [kernel("dot.1", 0, 6, "jit_train"), kernel("dot.2", 10, 12, "jit_eval")],
        "Stream #2(nccl)": [
            kernel("all-reduce.1", 4, 10, "jit_train"), kernel("all-gather.1", 10, 14, "jit_eval"),
            kernel("all-reduce.1", 20, 23, "jit_train"),
        ],
    }  # fmt: skip
    assert exposed(xplanes.device("GPU:0", streams)) == {"train": 7.0, "eval": 2.0}
    assert exposed(xplanes.device("GPU:0", streams), xplanes.device("GPU:1", streams)) == {"train": 14.0, "eval": 4.0}


def test_a_hidden_exchange_takes_nothing_and_what_exchanges_nothing_is_absent() -> None:
    streams = {"Stream #1": [kernel("dot.1", 0, 6, "jit_train")]}
    assert exposed(xplanes.device("GPU:0", streams)) == {}
    streams["Stream #2"] = [kernel("all-reduce.1", 1, 5, "jit_train")]
    assert exposed(xplanes.device("GPU:0", streams)) == pytest.approx({"train": 0.0})
