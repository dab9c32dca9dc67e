"""The account of time is right on every way into jaxobs: by the program's own stopwatch, within the same run."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from helpers.paths import PROGRAMS
from helpers.run_programs import environment

SLACK = 0.05
"""Part of the program's wall time by which the two may differ, beside the time that other work made it late."""
WAYS = ("run", "start", "install", "decorated", "thread", "cells", "worker")
SERVERS = ("wsgi", "wsgi threads", "wsgi, not wrapped", "asgi")


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Future[dict[str, Any]]]]:
    with ThreadPoolExecutor(4) as pool:
        yield {way: pool.submit(_told, way) for way in (*WAYS, *SERVERS)}


def _told(way: str) -> dict[str, Any]:
    run = ["-m", "jaxobs", "run", "--port", "0", "--sample-interval", "0.5"] if way == "run" else []
    done = subprocess.run(
        [sys.executable, *run, str(PROGRAMS / "ways_in.py"), way],
        env=environment(), capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert told["errors"] == {}
    assert sum(told["seconds"].values()) == pytest.approx(told["wall"])
    return told


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_plain_loop_is_found_and_its_time_is_in_turns(way: str, told: dict[str, Future[dict[str, Any]]]) -> None:
    """Nothing in the program says what a step is. What comes before is `init`, what comes after `idle`."""
    found = told[way].result()
    seconds, slack = found["seconds"], SLACK * found["wall"] + found["late"]
    turns = seconds["step"] + seconds["input_wait"]  # most of a turn is a sleep
    assert turns == pytest.approx(found["measured"]["step"], abs=slack)
    assert seconds["idle"] == pytest.approx(found["measured"]["idle"], abs=slack)
    assert seconds["unattributed"] == 0.0 < seconds["init"]
    ((name, steps),) = found["loops"].items()
    assert name.rpartition(".")[2] in ("square", "train_step") and 118 <= steps <= 122


@pytest.mark.slow
@pytest.mark.parametrize("way", SERVERS)
def test_a_server_has_no_steps_and_its_compilations_are_in_the_account(
    way: str, told: dict[str, Future[dict[str, Any]]]
) -> None:
    """On whichever threads it serves: what they compiled is what the account says, and the rest is not known."""
    found = told[way].result()
    seconds = found["seconds"]
    assert found["loops"] == {} and seconds["step"] == seconds["init"] == seconds["idle"] == 0.0
    compiled = seconds["trace"] + seconds["compile"] + seconds["cache_load"]
    assert compiled == pytest.approx(found["phases"], abs=SLACK * found["wall"]) and compiled > 0.0
    assert seconds["unattributed"] == pytest.approx(found["wall"] - compiled)
