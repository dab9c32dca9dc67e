"""Account of the time of an unchanged program, beside a stopwatch in it, where calls alone do not tell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.run_programs import environment, programs

import jaxobs

GIVEN = programs(__file__)
PROGRAMS = GIVEN["programs"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_time_goes_where_a_stopwatch_says(name: str, tmp_path: Path) -> None:
    """Within 5 % of all that it measured, and the time by which other work of the machine made it late."""
    script, log = tmp_path / "train.py", tmp_path / "events.jsonl"
    script.write_text(GIVEN["start"] + PROGRAMS[name] + GIVEN["end"])
    done = subprocess.run(
        [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), str(script)],
        env=environment(PYTHONPATH=str(Path(jaxobs.__file__).parents[1])),
        capture_output=True, text=True, timeout=300, check=True, cwd=tmp_path,
    )  # fmt: skip
    measured, late = json.loads(done.stdout.rpartition("SPENT")[2])
    told = json.loads(log.read_text().splitlines()[-1])["standing"]["wall"]["seconds"]
    most = 0.05 * sum(measured.values()) + late
    if name == "reads":
        # While a device computes the element that is read, the second is a step: the longer the busier the machine is.
        computed = measured["transfer"] - told["transfer"]
        assert computed <= 0.7 * measured["transfer"]
        measured["step"] += computed
        measured["transfer"] -= computed
    for category in ("step", "eval", "input_wait", "transfer", "checkpoint"):
        assert told[category] == pytest.approx(measured.get(category, 0.0), abs=most), (measured, late, told)
