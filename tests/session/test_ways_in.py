"""The account of time is right on every way into jaxobs: by the program's own stopwatch, within the same run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from helpers.paths import PROGRAMS
from helpers.run_programs import environment

SLACK = 0.05
"""Of the program's wall time."""


def _told(way: str) -> dict[str, Any]:
    """What the program printed."""
    run = ["-m", "jaxobs", "run", "--port", "0", "--sample-interval", "0.5"] if way == "run" else []
    done = subprocess.run(
        [sys.executable, *run, str(PROGRAMS / "ways_in.py"), way],
        env=environment(), capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert told["errors"] == {}
    assert sum(told["seconds"].values()) == pytest.approx(told["wall"])
    return told


@pytest.mark.parametrize("way", ("run", "start", "install", "decorated", "thread", "cells", "worker"))
def test_a_plain_loop_is_found_and_its_time_is_in_steps(way: str) -> None:
    """Nothing in the program says what a step is. What comes before is `init`, what comes after `idle`."""
    told = _told(way)
    seconds, slack = told["seconds"], SLACK * told["wall"]
    assert seconds["step"] == pytest.approx(told["measured"]["step"], abs=slack)
    assert seconds["idle"] == pytest.approx(told["measured"]["idle"], abs=slack)
    assert seconds["unattributed"] == 0.0 < seconds["init"]
    ((name, steps),) = told["loops"].items()
    assert name.rpartition(".")[2] in ("square", "train_step") and 118 <= steps <= 122


@pytest.mark.parametrize("way", ("wsgi", "wsgi threads", "wsgi, not wrapped", "asgi"))
def test_a_server_has_no_steps_and_its_compilations_are_in_the_account(way: str) -> None:
    """On whichever threads it serves: what they compiled is what the account says, and the rest is not known."""
    told = _told(way)
    seconds = told["seconds"]
    assert told["loops"] == {} and seconds["step"] == seconds["init"] == seconds["idle"] == 0.0
    compiled = seconds["trace"] + seconds["compile"] + seconds["cache_load"]
    assert compiled == pytest.approx(told["phases"], abs=SLACK * told["wall"]) and compiled > 0.0
    assert seconds["unattributed"] == pytest.approx(told["wall"] - compiled)
