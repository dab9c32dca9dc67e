"""`jaxobs.phase`, and checkpoints by Orbax's own events: what held the program up, and when one was complete."""

import asyncio
import json
import time
from typing import Any

import pytest
from helpers.clock import Clock
from helpers.requirements import missing
from helpers.run_programs import programs, run
from helpers.threads import elsewhere

import jaxobs
from jaxobs.facts.wall import TimeState
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.store import current
from jaxobs.state.wall import Wall

PROGRAMS = programs(__file__)


def spent() -> TimeState:
    found = jaxobs.snapshot().wall
    assert found is not None
    return found


@pytest.mark.usefixtures("fresh")
def test_a_phase_counts_blocks_and_calls(clock: Clock) -> None:
    """As a context, around a function and around a coroutine; the innermost counts; again and inside itself."""
    evaluation = jaxobs.phase("eval")

    @evaluation
    def evaluate(depth: int) -> int:
        clock.sleep(0.02)
        return 0 if depth == 0 else 1 + evaluate(depth - 1)

    @jaxobs.phase("eval")
    async def evaluate_later() -> str:
        await asyncio.sleep(0)
        clock.sleep(0.04)
        return "done"

    with evaluation, evaluation:
        clock.sleep(0.02)
        with jaxobs.phase("init"):
            clock.sleep(0.03)
    assert evaluate(2) == 2 and evaluate.__name__ == "evaluate"
    assert asyncio.run(evaluate_later()) == "done"
    with jaxobs.phase("checkpoint"):
        clock.sleep(0.05)
    found = spent()
    assert found.seconds["eval"] == pytest.approx(0.12)
    assert found.seconds["checkpoint"] == pytest.approx(0.05)
    assert found.category == "idle"
    assert sum(found.checkpoints["phase"].counts) == 1
    assert sum(found.seconds.values()) == found.wall_seconds


@pytest.mark.usefixtures("fresh")
def test_a_phase_passes_on_what_is_raised_and_knows_its_names() -> None:
    wall, checkpoints = current().part(Wall), current().part(Checkpoints)
    error = ValueError("theirs")
    with pytest.raises(ValueError) as caught, jaxobs.phase("checkpoint"):
        raise error
    assert caught.value is error
    assert checkpoints.complete == 0
    with jaxobs.phase("checkpoint"):
        pass
    assert checkpoints.complete == 1
    assert wall.category == "unattributed"
    with pytest.raises(jaxobs.ParameterError, match=r"no phase 'evaluation'.*Known phases: checkpoint, eval, init"):
        jaxobs.phase("evaluation")


@pytest.mark.usefixtures("fresh")
def test_a_background_thread_holds_nobody_up() -> None:
    """A checkpoint that another thread writes is one, and no time of the program's."""

    def save() -> None:
        with jaxobs.phase("checkpoint"):
            time.sleep(0.05)

    elsewhere(save)
    assert spent().seconds["checkpoint"] == 0.0
    assert current().part(Checkpoints).complete == 1


ORBAX = PROGRAMS["orbax"]

WAITS = PROGRAMS["waits"]


@pytest.fixture(scope="module")
def of_orbax() -> list[Any]:
    """Lines that both programs print, one after the other in one process."""
    done = run(ORBAX + WAITS)
    if "No module named 'orbax'" in done.stderr:
        missing("orbax-checkpoint is not installed. It comes with flax, which is in the group `dev`.")
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-2:]]


def test_what_a_program_waits_for_a_checkpoint_is_charged(of_orbax: list[Any]) -> None:
    """By the program's own stopwatch, for each way to wait that Orbax and Flax have; the methods stay what they are."""
    _, told = of_orbax
    for name, (took, charged) in told["found"].items():
        if name.startswith("plain"):
            assert charged > 0.5 * took, (name, took, charged)
        else:
            assert took > 0.4, (name, took)
            assert took - 0.2 <= charged <= took + 0.05, (name, took, charged)
    assert told["waits"] == 9
    assert told["category"] == ["idle", "idle"] and told["errors"] == {}
    assert told["names"][:2] == ["<module>", "wait_previous_save"]
    assert told["signature"] == "(self)"
    assert told["put back"] and told["theirs"]


def test_an_operation_that_raises_counts_once(of_orbax: list[Any]) -> None:
    """An exception may pass a second operation or a phase, and an operation may run on another thread."""
    assert of_orbax[1]["failures"] == {"wait": 0, "save": 2, "save_async": 2, "restore": 1, "phase": 1}


def test_orbax_tells_of_its_checkpoints_itself(of_orbax: list[Any]) -> None:
    found, _ = of_orbax
    assert found["errors"] == {} and found["notes"] == []
    counts = {name: count for name, (count, _) in found["operations"].items()}
    assert {name: counts[name] for name in ("save", "save_async", "restore", "phase")} == {
        "save": 4, "save_async": 3, "restore": 1, "phase": 1
    }  # fmt: skip
    size = 4 * (2000 * 2000 + 3)
    assert found["bytes"] == {"save": 4 * size, "restore": size}, "of four saves and one restore"
    seconds = found["seconds"]
    compiled = seconds["trace"] + seconds["compile"]
    assert seconds["checkpoint"] <= found["taken"] + 0.01
    assert seconds["checkpoint"] + compiled >= 0.5 * found["taken"]
    assert found["slept"] <= seconds["step"] <= found["around"]
    assert sum(seconds.values()) == pytest.approx(found["wall"], rel=1e-6)
    assert found["complete"] == 3
    assert found["unsaved"] == 1  # the step after the last save; the one it was made in is not over, but begun
    assert found["complete with one"] == 4  # Orbax's own, and not once more for the phase around it
