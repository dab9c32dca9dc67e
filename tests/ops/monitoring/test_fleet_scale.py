"""A Prometheus takes what many processes export: series stay within their bounds, the rules within their interval."""

import pytest
from helpers.requirements import program

from benchmarks.fleet_scale import DEVICES, FUNCTIONS, measure
from benchmarks.made_up_process import MadeUpProcess
from jaxobs.exporters.forms.exposition import MOST_SERIES, OPENMETRICS, Renderer

MOST_BUSY_SERIES = 500
PROCESSES = 20


@pytest.mark.parametrize(
    ("functions", "devices", "most"),
    [(10, 1, MOST_BUSY_SERIES), (FUNCTIONS, DEVICES, 1300), (200, DEVICES, MOST_SERIES)],
)
def test_series_of_a_process(functions: int, devices: int, most: int) -> None:
    """A busy training process stays below 500 series; one with eight devices and every function has all its series."""
    process = MadeUpProcess(functions=functions, devices=devices, age=3600.0)
    text = Renderer(process).render(OPENMETRICS)  # type: ignore[arg-type]
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    assert most / 3 < series <= most
    assert not process.dropped


@pytest.mark.slow
def test_twenty_processes() -> None:
    """Nothing is lost, no rule and no panel fails, and what is recorded is a small part of what is scraped."""
    program("prometheus")
    found = measure(PROCESSES, seconds=12.0, interval=1.0, rules_every="4s")
    scraped = PROCESSES * found.series_each
    assert (found.down, found.missed, found.failed, found.errors) == (0, 0, 0, ())
    assert found.series_each < MOST_SERIES
    assert scraped < found.series < 1.25 * scraped
    assert min(found.samples_per_second, found.rules_seconds, found.slowest_now[1], found.slowest_hour[1]) > 0
