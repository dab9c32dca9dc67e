"""Processes that were replaced, in a real Prometheus."""

import dataclasses
import tempfile
from pathlib import Path

import pytest
from helpers.backfilled import prometheus

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.gathering.lives import growth
from tools.alert_suites.scenes import Process, trains

LEAKS = {'jax_findings{finding="array_leak", function="step"}': 1.0}
NONFINITE = {'jax_nonfinite_total{name="loss"}': 5.0}


def job(second: str, *, nonfinite_after: bool = False) -> list[Process]:
    """Three processes for an hour, the first of which is replaced after 45 minutes; its loss was NaN before."""
    now = dataclasses.replace(trains(10), gauges=LEAKS)
    after = trains(15, more=NONFINITE if nonfinite_after else None)
    return [
        Process(job="train", instance="a:1", count=2, parts=[trains(30), trains(14, more=NONFINITE)]),
        Process(job="train", instance=second, count=2, start=45, parts=[after]),
        Process(job="train", instance="c:1", count=2, index=1, parts=[trains(50), now]),
    ]


@pytest.mark.parametrize("second", ["a:1", "b:1"])
def test_a_process_of_before_is_no_cause_of_today(second: str, tmp_path: Path) -> None:
    """A former fault is the cause where nothing of today is known, or where it goes on today."""

    def causes(processes: list[Process]) -> list[str]:
        with prometheus(Path(tempfile.mkdtemp(dir=tmp_path)), [(processes, 60)]) as url:
            return [each.id for each in diagnose(gather(Inputs(prometheus=(url,)))).causes]

    assert causes(job(second)) == ["memory_leak"]
    assert causes(job(second)[:2]) == ["nonfinite_values"]
    assert causes(job(second, nonfinite_after=True)) == ["nonfinite_values", "memory_leak"]


@pytest.mark.parametrize(
    ("rises", "minute"),
    [
        ([4] + [0] * 39 + [10] * 20, 41),
        ([4] + [0] * 29 + [8] * 5 + [0] * 25, 31),
        ([0] * 30 + [1] + [0] * 20, 31),
        ([10] * 3 + [0] * 57, 1),
        ([5] * 60, 1),
        ([0] * 60, 60),
    ],
    ids=["a warm-up before it", "it is over", "once", "at the start only", "all the time", "never"],
)
def test_what_a_counter_counts_began_where_its_rate_changed(rises: list[int], minute: int) -> None:
    points = [(60.0 * number, float(sum(rises[:number]))) for number in range(len(rises) + 1)]
    assert growth(points) == (sum(rises), 60.0 * minute)
