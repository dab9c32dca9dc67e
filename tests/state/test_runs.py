"""Account of the time of a real program, against its own stopwatch; and a run over several processes."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.matrix import interpreter, rows
from helpers.paths import PROGRAMS, ROOT

from jaxobs.base.process import process_age
from jaxobs.facts.wall import TIME_CATEGORIES
from jaxobs.recorder import predecessors
from jaxobs.recorder.predecessors import Attempt
from jaxobs.state import runs
from jaxobs.state.checkpoints import Checkpoints, mark
from jaxobs.state.runs import Earlier, Runs
from jaxobs.state.wall import Wall
from tools.environments import MATRIX

PROGRAM = PROGRAMS / "where_time_went.py"
OF_CATEGORY = 0.1
"""How far a category may be from the stopwatch."""


def train(folder: object, steps: int, every: int, python: str | Path = sys.executable, **variables: str) -> Any:
    """Runs the training program and returns what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA", "PYTHON"))}
    done = subprocess.run(
        [python, PROGRAM, str(folder), str(steps), str(every)],
        env={**kept, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "ASKED": repr(time.time()), **variables},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    assert done.returncode == (-9 if "KILLED" in variables else 0), done.stderr[-3000:]
    return json.loads(done.stdout)


def agrees(found: Any) -> None:
    """Each category is within a tenth of the program's own stopwatch, and all together are its wall time."""
    told = {category: found["seconds"][category] - found["before"][category] for category in found["watch"]}
    # What passes between the two clocks belongs to the scope, not to the work; of a trace or a compile, to the step.
    around = dict(found["around"])
    around["step"] += sum(max(0.0, found["watch"][each] - told[each]) for each in ("trace", "compile"))
    for category, seconds in found["watch"].items():
        least, most = seconds * (1 - OF_CATEGORY) - 0.02, around[category] * (1 + OF_CATEGORY) + 0.02
        assert least <= told[category] <= most, category
    assert sum(found["seconds"].values()) == pytest.approx(found["wall"], rel=1e-6)
    # The process began after it was asked for, and before its program's first line; /proc tells to 10 ms.
    assert found["since_main"] - 0.02 <= found["wall"] <= found["since_asked"] + 0.02
    assert found["seconds"]["init"] > 0.1
    assert found["goodput"] == pytest.approx(found["seconds"]["step"] / found["wall"], rel=1e-6)
    assert found["scrapes"] > 3 and found["fell"] == [] and found["off"] < 1e-6
    assert found["errors"] == {}


@pytest.mark.slow
def test_each_category_is_what_a_stopwatch_says(tmp_path: Path) -> None:
    """A slow loader, steps, checkpoints, an evaluation, a dear trace and a dear compile; no counter falls meanwhile.

    A second process loads what the first compiled: its seconds are `cache_load`, not `compile`.
    """
    variables = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.3"}
    found = train("-", 20, 5, **variables)
    agrees(found)
    assert found["run"] is None
    (loader,) = found["inputs"]
    assert (loader["batches"], loader["verdict"]) == (20, "mixed")
    assert loader["wait_seconds"] == pytest.approx(found["around"]["input_wait"], rel=OF_CATEGORY)
    assert set(found["lost"]) == {name for name in TIME_CATEGORIES if found["seconds"][name] > 0} - {"step"}
    for _ in range(3):  # a busy machine comes between the two clocks
        second = train("-", 1, 5, **variables)
        loaded = second["seconds"]["cache_load"] - second["before"]["cache_load"]
        assert loaded > 0.0
        if right := loaded == pytest.approx(second["watch"]["compile"], rel=OF_CATEGORY, abs=0.02):
            break
    assert right, (loaded, second["watch"])
    assert second["seconds"]["compile"] - second["before"]["compile"] < 0.2 * loaded


@pytest.mark.parametrize("row", rows(MATRIX[0], MATRIX[-1]))
def test_compilations_are_told_apart_under_other_versions(row: Any) -> None:
    found = train("-", 10, 5, interpreter(row))
    agrees(found)
    # While it compiles, that is what goes on, where JAX tells that it has begun.
    assert (found["seen_compiling"] > 0) == (row.jax != "0.6.0")


@pytest.mark.slow
def test_a_run_goes_on_in_the_next_process(tmp_path: Path) -> None:
    """Killed two steps after a checkpoint: these two, and the time until the next process, are lost for good."""
    began = time.time()
    first = train(tmp_path, 7, 5, KILLED="1")
    ended = time.time()
    assert first["run"]["attempt"] == 1
    assert first["run"]["unsaved_steps"] == 2
    least, most = (sum(each) for each in zip(*first["each_step"][-2:], strict=True))
    assert 0.9 * least <= first["run"]["unsaved_seconds"] <= 1.1 * most
    assert first["run"]["redone_seconds"] == 0.0
    (path,) = tmp_path.glob("jaxobs-run-*.json")
    assert path.name == "jaxobs-run-a run.json"
    time.sleep(0.7)
    second = train(tmp_path, 5, 5)
    now = time.time()
    gone = now - ended - second["wall"]
    run = second["run"]
    assert run["attempt"] == 2
    assert run["redone_steps"] == 2 and run["unsaved_steps"] == 0
    assert run["redone_seconds"] == pytest.approx(first["run"]["unsaved_seconds"], rel=0.02)
    assert 0.7 <= run["down_seconds"] <= gone + 0.5
    total = first["wall"] + second["wall"] + run["down_seconds"]
    assert total - 0.02 <= run["wall_seconds"] <= now - began + 0.02  # the first lived on for a while
    assert sum(run["seconds"].values()) + run["down_seconds"] == pytest.approx(run["wall_seconds"], rel=1e-6)
    assert second["lost"]["down"] == run["down_seconds"] and second["lost"]["redone"] == run["redone_seconds"]
    useful = first["seconds"]["step"] + second["seconds"]["step"] - run["redone_seconds"]
    assert run["goodput"] == pytest.approx(useful / run["wall_seconds"], rel=0.02)
    third = train(tmp_path, 3, 1)["run"]
    assert third["attempt"] == 3 and third["redone_steps"] == 2
    assert third["down_seconds"] > run["down_seconds"]


def test_lost_work_is_unknown_where_no_checkpoint_was_seen(tmp_path: Path) -> None:
    """A program that saves in a way of its own has not lost everything; once a checkpoint is seen, it is known."""
    wall, checkpoints, found = Wall(age=10.0), Checkpoints(), Runs()
    found.id = "r"
    path = str(tmp_path / predecessors.run_file_name("r", 0))
    step = wall.enter("step")
    time.sleep(0.05)
    wall.leave(step)
    predecessors.write_attempt(path, "r", predecessors.this_attempt(wall, checkpoints, found))
    last = predecessors.read_attempt(path)
    assert last is not None and last.unsaved_steps == 1 and last.seconds["init"] > 9.9
    assert 0.05 <= last.seconds["step"] < 9.9
    found.earlier = last.then(last.updated + 100.0)
    wall, checkpoints = Wall(age=1.0), Checkpoints()
    state = runs.time_state(wall, checkpoints, found).run
    assert state is not None and state.redone_seconds is None and state.redone_steps is None
    assert state.down_seconds == pytest.approx(100.0)
    assert state.goodput == pytest.approx(last.seconds["step"] / state.wall_seconds, rel=0.01)
    checkpoints.saved(mark(wall))
    state = runs.time_state(wall, checkpoints, found).run
    assert state is not None and state.redone_steps == 1
    assert state.goodput == pytest.approx(0.0, abs=1e-6)


def test_an_asynchronous_save_holds_what_was_done_when_it_began() -> None:
    wall, checkpoints = Wall(age=0.0), Checkpoints()

    def steps(number: int) -> None:
        for _ in range(number):
            wall.leave(wall.enter("step"))

    steps(3)
    checkpoints.begin(mark(wall))
    checkpoints.only_latest()
    steps(2)
    assert runs.unsaved_work(wall, checkpoints).steps == 5
    checkpoints.end()
    assert runs.unsaved_work(wall, checkpoints).steps == 2
    checkpoints.begin(mark(wall))  # fails
    steps(4)
    checkpoints.begin(mark(wall))
    checkpoints.only_latest()
    checkpoints.end()
    assert (runs.unsaved_work(wall, checkpoints).steps, checkpoints.complete) == (0, 2)
    checkpoints.end()
    assert checkpoints.complete == 2


@pytest.mark.usefixtures("fresh")
def test_a_file_that_is_none_of_ours_and_one_in_use_are_left_alone(tmp_path: Path) -> None:
    """Damaged, of a process that is alive, or nowhere to be: a sentence says so, and the program goes on."""
    import jax.numpy as jnp

    from jaxobs.session import lifecycle
    from jaxobs.sources.run import NOWHERE, Run
    from jaxobs.state import store

    jnp.ones(2).block_until_ready()
    path = tmp_path / predecessors.run_file_name("r", 0)

    def notes(**settings: Any) -> str:
        lifecycle.uninstall()
        store.current().reset()
        lifecycle.install(**settings)
        source = Run(store.current())
        source.sample()
        source.sample()
        return " ".join(store.current().snapshot().observer.notes)

    assert NOWHERE in notes(run_id="r")
    path.write_text("[1, 2")
    assert "does not belong to a run" in notes(run_id="r", flight_recorder=str(tmp_path))
    assert path.read_text() == "[1, 2"
    parent = os.getppid()
    if (age := process_age(parent)) is not None:
        theirs = Attempt(
            earlier=Earlier(), pid=parent, hostname=socket.gethostname(), started=time.time() - age,
            updated=time.time(), seconds={}, unsaved_seconds=0.0, unsaved_steps=0, checkpoints=0,
        )  # fmt: skip
        predecessors.write_attempt(str(path), "r", theirs)
        before = path.read_text()
        assert f"Process {parent} is an attempt" in notes(run_id="r", flight_recorder=str(tmp_path))
        assert path.read_text() == before
        # The same number, but started at another time: it has died, and its number has come again.
        predecessors.write_attempt(str(path), "r", dataclasses.replace(theirs, started=theirs.started - 100.0))
        assert "attempt" not in notes(run_id="r", flight_recorder=str(tmp_path))
        state = store.current().snapshot().wall
        assert state is not None and state.run is not None and state.run.attempt == 2
    file_in_the_way = tmp_path / "file"
    file_in_the_way.write_text("")
    assert "cannot be read or written" in notes(run_id="r", flight_recorder=str(file_in_the_way))


def test_names_of_files_are_safe() -> None:
    assert predecessors.run_file_name("job/7", 0) == "jaxobs-run-job%2F7.json"
    assert predecessors.run_file_name("job", 3) == "jaxobs-run-job-3.json"
