"""Names of the processes of several jobs, of which each has a process 0."""

import pytest

from jaxobs.ops.diagnosis.counters import STARTED
from jaxobs.ops.diagnosis.evidence import EVENT, METRIC, Observation, Source
from jaxobs.ops.diagnosis.gathering import targets

STORE = Source(kind="prometheus", name="http://p")


def endpoint(name: str, began: float, index: int = 0) -> tuple[list[Observation], Source]:
    """The start of a process by its endpoint, and an event of it."""
    process = f"process {index}"
    return [
        Observation(kind=METRIC, source=name, name=STARTED, process=process, value=began),
        Observation(kind=EVENT, source=name, name="nonfinite", process=process),
        Observation(kind=EVENT, source=name, name="finding:straggler", process="process 7"),
    ], Source(kind="target", name=name)


def scraped(instance: str, began: float) -> Observation:
    """The start of a process by a Prometheus."""
    return Observation(kind=METRIC, source="http://p", name=STARTED, process=instance, value=began)


def names(*endpoints: tuple[list[Observation], Source], of: tuple[Observation, ...] = ()) -> list[list[str]]:
    everything = [each for found, _ in endpoints for each in found]
    told = targets.told_apart([*everything, *of], [STORE, *(source for _, source in endpoints)])
    return [[each.process for each in told if each.source == source.name] for _, source in endpoints]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (endpoint("a:1", 100.0), endpoint("b:1", 200.0), ["a:1", "b:1"]),
        (endpoint("a:1", 100.0), endpoint("b:1", 200.0, 1), ["process 0", "process 1"]),
        (endpoint("a:1", 100.0), endpoint("localhost:1", 100.0), ["process 0", "process 0"]),
    ],
)
def test_endpoints_alone(
    first: tuple[list[Observation], Source], second: tuple[list[Observation], Source], expected: list[str]
) -> None:
    """Two processes with one number are of two jobs, unless they began together: then it is one process."""
    assert names(first, second) == [[each, each, "process 7"] for each in expected]


def test_endpoints_that_a_prometheus_knows() -> None:
    first, second = endpoint("localhost:1", 100.0), endpoint("localhost:2", 200.0)
    of = (scraped("10.0.0.1:9464", 100.001), scraped("10.0.0.2:9464", 250.0))
    assert names(first, second, of=of) == [["10.0.0.1:9464"] * 2 + ["process 7"], ["localhost:2"] * 2 + ["process 7"]]
    assert names(second, of=of) == [["process 0", "process 0", "process 7"]]
    numbered = (scraped("process 0", 100.0),)
    assert names(first, of=numbered) == [["process 0", "process 0", "process 7"]]
