"""A log that stops between two steps: its process vanished or waits, or it is part of the log of a healthy job."""

import os
from pathlib import Path

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.gathering.paces import BUSY, OTHER, PROMPT, STEP, Pace
from jaxobs.ops.diagnosis.result import INCONCLUSIVE, NO_FAULT

LAST = 1_769_850_010.0
"""31 January 2026, 09:00:10."""
STEPS = "".join(f"2026-01-31 09:00:{second:02},000 INFO train: step {second} loss 1.0\n" for second in (0, 5, 10))


def said(folder: Path, text: str, *, written: float, now: float) -> str:
    """The verdict of one log that was written last at a moment, and read at another."""
    path = folder / "run.log"
    path.write_text(text, encoding="utf-8")
    os.utime(path, (written, written))
    found = diagnose(gather(Inputs(logs=(str(path),)), now=now))
    assert found.causes == ()
    return found.verdict


@pytest.mark.parametrize(
    ("written", "age", "verdict"),
    [
        (0.5, 7200.0, INCONCLUSIVE),
        (0.5, 60.0, NO_FAULT),  # it may still run
        (300.5, 7200.0, NO_FAULT),  # somebody copied it
        (3600.5, 7200.0, INCONCLUSIVE),  # its clock is that of another time zone
    ],
)
def test_a_file_that_is_not_written_any_more(tmp_path: Path, written: float, age: float, verdict: str) -> None:
    """The process wrote its last step there itself, long ago, and neither an end nor an error."""
    assert said(tmp_path, STEPS, written=LAST + written, now=LAST + written + age) == verdict


@pytest.mark.parametrize(
    "end",
    [
        "2026-01-31 09:00:10,100 INFO train: training finished\n",
        "2026-01-31 09:00:10,100 INFO train: test accuracy 0.91\n",
        "2026-01-31 09:00:10,100 INFO train: step 15/15 loss 0.9\n",
    ],
)
def test_a_log_that_ends_well_may_be_old(tmp_path: Path, end: str) -> None:
    assert said(tmp_path, STEPS + end, written=LAST + 0.1, now=LAST + 7200.0) == NO_FAULT


@pytest.mark.parametrize(
    ("minute", "text", "verdict"),
    [
        (20, "memory 41.2 GiB", INCONCLUSIVE),
        (2, "memory 41.2 GiB", NO_FAULT),
        (20, "evaluating on 40,000 examples", NO_FAULT),
        (20, "training finished", NO_FAULT),
    ],
)
def test_a_process_that_goes_on_without_steps(tmp_path: Path, minute: int, text: str, verdict: str) -> None:
    """For how long, and whether it says that it does something else."""
    line = f"2026-01-31 09:{minute:02}:00,000 INFO monitor: {text}\n"
    assert said(tmp_path, STEPS + line, written=LAST + 60.0 * minute, now=LAST + 60.0 * minute) == verdict


def test_what_a_pace_tells() -> None:
    pace = Pace()
    for time, text in ((100.0, "step 1"), (105.0, "step 2"), (125.0, "step 3 of 9")):
        pace.step(text, time)
    assert pace.last == STEP
    assert pace.told(130.0, 131.0, 200.0) == {
        "steps": "3.000", "pause": "20.000", "since_first_step": "30.000", "since_last_step": "5.000",
        "written_after": "1.000", "age": "69.000", "said_last": "step",
    }  # fmt: skip
    pace.line("some words")
    assert pace.last == OTHER
    pace.line("saving the model")
    assert pace.last == BUSY
    pace.line("u@host:~$ ")
    assert pace.last == PROMPT
    pace.step("step 9 of 9", 140.0)
    assert pace.told(140.0, None, None)["said_last"] == "done"


@pytest.mark.parametrize(
    ("one", "other", "end", "left"),
    [
        ("epoch 0: local input exhausted after 3 steps", "", "09:02:00", True),
        ("epoch 0 finished in 11 s", "", "09:02:00", True),
        ("wrote a summary", "", "09:02:00", False),
        ("epoch 0 finished in 11 s", "epoch 0 finished in 11 s", "09:02:00", False),
        ("epoch 0 finished in 11 s", "", "09:00:40", False),  # a pause of six steps
        ("epoch 0 finished in 11 s", "step 15 loss 1.0\n2026-01-31 09:00:20,000 INFO train: step 20 loss 1.0",
         "09:02:00", False),
        ("epoch 0 finished in 11 s", "ValueError: a bad record", "09:02:00", False),
    ],
)  # fmt: skip
def test_a_process_that_left_its_loop_while_another_waits_in_it(
    tmp_path: Path, one: str, other: str, end: str, left: bool
) -> None:
    """Both rest since the same step, and one alone says that its loop is over."""
    logs = []
    for number, text in enumerate((one, other)):
        path = tmp_path / f"host{number}.log"
        behind = text and f"2026-01-31 09:00:11,000 INFO train: {text}\n"
        error = "Traceback (most recent call last):\n" if "Error" in text else ""
        behind = f"{error}{text}\n" if error else behind
        path.write_text(f"{STEPS}{behind}2026-01-31 {end},000 WARNING train: SIGTERM caught\n", encoding="utf-8")
        logs.append(str(path))
    found = diagnose(gather(Inputs(logs=tuple(logs))))
    assert ("left_early" in [each.id for each in found.causes]) is left, found
    if left:
        assert found.causes[0].component == "process 0" and one in found.causes[0].first_action


def test_requests_that_fail_at_one_replica_say_nothing_of_another(tmp_path: Path) -> None:
    """A replica that was taken away says no more, and the other ones answer as before."""
    for name, text in (
        ("serve-0", STEPS),
        ("serve-1", STEPS + '2026-01-31 09:05:00,000 INFO: 10.0.0.7 - "POST /score HTTP/1.1" 503\n' * 3),
    ):
        (tmp_path / f"{name}.log").write_text(text, encoding="utf-8")
    logs = (str(tmp_path / "serve-0.log"), str(tmp_path / "serve-1.log"))
    assert diagnose(gather(Inputs(logs=logs))).verdict == NO_FAULT
