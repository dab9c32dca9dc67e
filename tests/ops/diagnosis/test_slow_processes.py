"""Slow processes and devices, by figures alone: without the finding and without an alert."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.evidence import Evidence, Observation, Source
from jaxobs.ops.diagnosis.gathering import metrics
from jaxobs.ops.diagnosis.result import Diagnosis

END = 1_769_850_000.0
MINUTES = 60
_PLACES = itertools.count()


def series(name: str, at: Callable[[int], float], index: int, **labels: str) -> Observation:
    """A series of an hour, a sample a minute, of one process of a job."""
    points = [(END - 60 * (MINUTES - minute), at(minute)) for minute in range(MINUTES + 1)]
    value = points[-1][1] - (points[0][1] if name.endswith(("_sum", "_count")) else 0.0)
    known = {"job": "train", "instance": f"host-{index}:9464", **labels}
    sample = metrics.of_sample(name, known, value, "http://p", next(_PLACES), END)
    return dataclasses.replace(sample, history=tuple(points))


def process(index: int, seconds: Callable[[int], float], count: int = 4, run: str = "r") -> list[Observation]:
    return [
        series("jax_step_seconds_sum", seconds, index, loop="train"),
        series("jax_step_seconds_count", lambda minute: 60.0 * minute, index, loop="train"),
        series("jax_process_info", lambda _: 1.0, index, process_index=str(index), process_count=str(count)),
        series("jax_run_info", lambda _: 1.0, index, run_id=run, last_exit=""),
    ]


def judged(*processes: list[Observation]) -> Diagnosis:
    found = [each for one in processes for each in one]
    return diagnose(Evidence.of(found, [Source(kind="prometheus", name="http://p")]))


def at(pace: float) -> Callable[[int], float]:
    """Steps that take so many seconds, from the beginning."""
    return lambda minute: 60.0 * pace * minute


def slower_since(begin: int, end: int = MINUTES) -> Callable[[int], float]:
    """Steps that take 0.1 s, and 0.2 s between two minutes."""
    return lambda minute: 6.0 * minute + 6.0 * (min(max(minute, begin), end) - begin)


USUAL = [process(0, at(0.1)), process(1, at(0.102)), process(2, at(0.098))]


def test_one_of_four_is_slow() -> None:
    [cause] = judged(*USUAL, process(3, slower_since(20))).causes
    assert (cause.id, cause.component) == ("straggler", "host-3:9464")
    assert cause.onset == "2026-01-31T08:20:00.000000Z"


@pytest.mark.parametrize(
    "processes",
    [
        [*USUAL, process(3, at(0.11))],
        [*USUAL, process(3, slower_since(20, 50))],
        [*USUAL, process(3, slower_since(45))],
        [*USUAL, process(3, at(0.2), run="another")],
        [process(0, at(0.1), count=2), process(1, at(0.2), count=2)],
        [process(0, at(0.3)), *USUAL[1:], process(3, at(0.1))],
        [process(0, at(0.001)), process(1, at(0.001)), process(2, at(0.001)), process(3, at(0.003))],
        [process(index, at(0.2 if index % 2 else 0.1), count=1) for index in range(4)],
    ],
)
def test_what_is_no_straggler(processes: list[list[Observation]]) -> None:
    """Slower by little, or for a while; of another run, of two; process 0's pauses; microseconds; single processes."""
    assert judged(*processes).verdict == "no_fault"


def _file(folder: Path, index: int, pace: float, count: int = 3) -> str:
    path = folder / f"{index}-{pace}.prom"
    path.write_text(
        f'jax_process_info{{process_index="{index}",process_count="{count}"}} 1\n'
        f'jax_step_seconds_sum{{loop="train"}} {1000 * pace}\njax_step_seconds_count{{loop="train"}} 1000\n'
    )
    return str(path)


def test_metrics_files_of_all_processes(tmp_path: Path) -> None:
    files = [_file(tmp_path, index, pace) for index, pace in enumerate((0.1, 0.1, 0.2))]
    [cause] = diagnose(gather(Inputs(metrics_files=tuple(files)))).causes
    assert (cause.id, cause.component, cause.onset) == ("straggler", "process 2", None)
    files.append(_file(tmp_path, 2, 0.1))
    assert diagnose(gather(Inputs(metrics_files=tuple(files)))).verdict == "no_fault"


def test_a_loop_whose_steps_are_only_counted(tmp_path: Path) -> None:
    """The time that a process spends in steps, by their number; of several loops the mixture says nothing."""

    def files(more: str) -> Inputs:
        found = []
        for index, seconds in enumerate((100, 100, 200)):
            path = tmp_path / f"{index}.prom"
            path.write_text(
                f'jax_process_info{{process_index="{index}",process_count="3"}} 1\njax_steps_total{{loop="f"}} 1000\n'
                f'jax_time_seconds_total{{category="step"}} {seconds}\n{more}'
            )
            found.append(str(path))
        return Inputs(metrics_files=tuple(found))

    [cause] = diagnose(gather(files(""))).causes
    assert (cause.id, cause.component) == ("straggler", "process 2")
    assert diagnose(gather(files('jax_steps_total{loop="g"} 10\n'))).verdict == "no_fault"


def throttled(at: Callable[[int], float], busy: float = 0.9, reason: str = "hw_thermal_slowdown") -> Diagnosis:
    return judged([
        series("accelerator_throttled", at, 0, device="GPU-3", reason=reason),
        series("accelerator_utilization_ratio", lambda _: busy, 0, device="GPU-3"),
    ])  # fmt: skip


def test_a_throttled_device() -> None:
    for at in (lambda minute: float(minute >= 30), lambda minute: float(minute >= 30 and minute % 2 == 1)):
        [cause] = throttled(at).causes
        assert (cause.id, cause.component) == ("device_throttled", "host-0:9464")
        assert cause.onset is not None
        assert cause.onset.startswith("2026-01-31T08:3")
    assert throttled(lambda minute: float(minute == MINUTES)).verdict == "no_fault"
    assert throttled(lambda minute: float(minute < 30)).verdict == "no_fault"
    assert throttled(lambda _: 1.0, busy=0.0).verdict == "no_fault"
    assert throttled(lambda _: 1.0, reason="sw_power_cap").verdict == "no_fault"
