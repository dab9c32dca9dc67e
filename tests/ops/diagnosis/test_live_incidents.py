"""Faults injected into real programs: what these leave at this moment is diagnosed, not a recording."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.paths import ROOT

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, NO_FAULT
from tools.ports import free_port

JOB = ROOT / "benchmarks" / "incidents" / "programs" / "job.py"
SIZES = JOB.with_name("sizes.py")
PATIENCE = 240.0
"""Seconds for one program on a machine that is busy."""

pytestmark = pytest.mark.slow


def ran(folder: Path, fault: str, count: int = 1, until: str = "") -> tuple[str, ...]:
    """Runs a job of so many processes with a fault on the last one; the logs of them.

    Args:
      until: what the last process says before somebody ends the job, which would not end by itself.
    """
    port = str(free_port())
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA"))}
    variables = kept | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    paths = [folder / f"worker-{number}.log" for number in range(count)]
    started = []
    for number, path in enumerate(paths):
        words = [sys.executable, str(JOB), fault, str(number), str(count), port, str(folder)]
        with path.open("wb") as file:
            started.append(subprocess.Popen(words, stdout=file, stderr=file, env=variables, cwd=folder))
    try:
        end = time.monotonic() + PATIENCE
        while until and until not in paths[-1].read_text(encoding="utf-8", errors="replace"):
            assert time.monotonic() < end, f"the job never said {until!r}"
            time.sleep(0.2)
        for each in () if until else started:
            each.wait(PATIENCE)
    finally:
        for process in started:
            process.kill()
            process.wait()
    return tuple(map(str, paths))


@pytest.mark.parametrize(
    ("fault", "cause"), [("disk_full", "disk_full"), ("tracer", "tracer_error"), ("donated", "donated_array_used")]
)
def test_the_cause_is_named(tmp_path: Path, fault: str, cause: str) -> None:
    found = diagnose(gather(Inputs(logs=ran(tmp_path, fault))))
    assert (found.verdict, [each.id for each in found.causes]) == (CAUSE, [cause])
    assert all(quote.source == "worker-0.log" for quote in found.causes[0].evidence)


@pytest.mark.parametrize("life", ["none", "caught_and_retried"])
def test_a_healthy_job_is_not_blamed(tmp_path: Path, life: str) -> None:
    found = diagnose(gather(Inputs(logs=ran(tmp_path, life))))
    assert (found.verdict, found.causes) == (NO_FAULT, ())


@pytest.mark.parametrize(("mode", "causes"), [("warmed", []), ("ragged", ["recompilation"])])
def test_buckets_are_no_fault_and_sizes_that_keep_coming_are(tmp_path: Path, mode: str, causes: list[str]) -> None:
    """Thirty buckets compile once each, and are reused from then on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA"))}
    words = [sys.executable, "-m", "jaxobs", "run", "--event-log", str(tmp_path / "e.jsonl"), str(SIZES), mode]
    variables = kept | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    subprocess.run(words, env=variables, cwd=tmp_path, check=True, timeout=PATIENCE)
    found = diagnose(gather(Inputs(event_logs=(str(tmp_path / "e.jsonl"),))))
    assert [each.id for each in found.causes] == causes


def test_the_process_where_it_began_is_named(tmp_path: Path) -> None:
    logs = ran(tmp_path, "disk_full+together", count=2, until="No space left on device")
    found = diagnose(gather(Inputs(logs=logs)))
    assert [(each.id, each.component) for each in found.causes] == [("disk_full", "process 1")]


def test_a_kill_is_not_explained(tmp_path: Path) -> None:
    """Nobody says who sent SIGKILL: the survivor's view alone names nothing, and says what to collect."""
    logs = ran(tmp_path, "sigkill+together", count=2)
    found = diagnose(gather(Inputs(logs=logs[:1])))
    assert (found.verdict, found.causes) == (INCONCLUSIVE, ())
    assert found.missing
