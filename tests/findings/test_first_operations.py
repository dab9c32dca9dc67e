"""`executable_leak` and programs that compile many single operations one by one, each for the first time."""

import pytest

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.growth import Point, Run
from jaxobs.findings.leaks import Sample
from jaxobs.findings.memory.executable_leak import ExecutableLeaks


def compilation(cause: str, eager: bool) -> Compilation:
    """A compilation behind the beginning of the growth."""
    return Compilation(
        time=20.0, function="add" if eager else "f", cause=cause, reason="", changes=(), phases={"compile": 0.1},
        cache="disabled", uncached_because="disabled", call_site=None, fingerprint=None, eager=eager,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "eager", "expected"),
    [("first_call", True, False), ("shape", True, True), ("new_function", False, True), ("first_call", False, True)],
)
def test_operations_that_are_met_for_the_first_time(cause: str, eager: bool, expected: bool) -> None:
    """A slow machine takes minutes for those of a sampler. What does pile up: ever new shapes, and functions."""
    run = Run(since=Point(1, 10.0, 5.0, {}), last=Point(90, 150.0, 158.0, {}), rises=80, function=None, calls=0)
    sample = Sample(
        time=150.0, calls={}, executables=158, compilations=lambda: [compilation(cause, eager) for _ in range(153)]
    )
    assert ExecutableLeaks().matters("executables", run, sample, ()) is expected
