"""`jaxobs.phase`, and checkpoints by Orbax's own events: what held the program up, and when one was complete."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from requirements import missing
from run_programs import run

import jaxobs
from jaxobs.checkpoints import Checkpoints
from jaxobs.facts import TimeState
from jaxobs.store import current
from jaxobs.wall import Wall


def spent() -> TimeState:
    found = jaxobs.snapshot().wall
    assert found is not None
    return found


@pytest.mark.usefixtures("fresh")
def test_a_phase_counts_blocks_and_calls() -> None:
    """As a context, around a function and around a coroutine; the innermost counts; again and inside itself."""
    evaluation = jaxobs.phase("eval")

    @evaluation
    def evaluate(depth: int) -> int:
        time.sleep(0.02)
        return 0 if depth == 0 else 1 + evaluate(depth - 1)

    @jaxobs.phase("eval")
    async def evaluate_later() -> str:
        await asyncio.sleep(0.04)
        return "done"

    with evaluation, evaluation:
        time.sleep(0.02)
        with jaxobs.phase("init"):
            time.sleep(0.03)
    assert evaluate(2) == 2 and evaluate.__name__ == "evaluate"
    assert asyncio.run(evaluate_later()) == "done"
    with jaxobs.phase("checkpoint"):
        time.sleep(0.05)
    found = spent()
    assert found.seconds["eval"] == pytest.approx(0.12, abs=0.03)
    assert found.seconds["checkpoint"] == pytest.approx(0.05, abs=0.02)
    assert found.category == "idle"
    assert sum(found.checkpoints["phase"].counts) == 1
    assert sum(found.seconds.values()) == found.wall_seconds


@pytest.mark.usefixtures("fresh")
def test_a_phase_passes_on_what_is_raised_and_knows_its_names() -> None:
    """The block's exception comes out as it went in, and such a checkpoint is none; a wrong name lists the right."""
    wall, checkpoints = current().part(Wall), current().part(Checkpoints)
    error = ValueError("theirs")
    with pytest.raises(ValueError) as caught, jaxobs.phase("checkpoint"):
        raise error
    assert caught.value is error
    assert checkpoints.complete == 0
    with jaxobs.phase("checkpoint"):
        pass
    assert checkpoints.complete == 1
    assert wall.category == "init"
    with pytest.raises(jaxobs.ParameterError, match=r"no phase 'evaluation'.*Known phases: checkpoint, eval, init"):
        jaxobs.phase("evaluation")


@pytest.mark.usefixtures("fresh")
def test_a_background_thread_holds_nobody_up() -> None:
    """A checkpoint that another thread writes is one, and no time of the program's."""

    def save() -> None:
        with jaxobs.phase("checkpoint"):
            time.sleep(0.05)

    thread = threading.Thread(target=save)
    thread.start()
    thread.join()
    assert spent().seconds["checkpoint"] == 0.0
    assert current().part(Checkpoints).complete == 1


def test_a_disabled_phase_does_nothing() -> None:
    """With JAXOBS_DISABLED the block runs, and nothing is counted."""
    program = """
        import os
        os.environ["JAXOBS_DISABLED"] = "1"
        import jaxobs, time
        from jaxobs.store import current
        from jaxobs.wall import Wall
        with jaxobs.phase("eval"):
            time.sleep(0.01)
        print(current().part(Wall).seconds()["eval"])
    """
    done = run(program)
    assert (done.stdout, done.stderr, done.returncode) == ("0.0\n", "", 0)


ORBAX = """
    import json, logging, sys, tempfile, time
    logging.disable(logging.WARNING)
    import jax, jax.numpy as jnp, jaxobs
    jaxobs.install()
    import orbax.checkpoint as ocp
    from jaxobs.checkpoints import Checkpoints
    from jaxobs.store import current
    from jaxobs.wall import Wall
    state = {"a": jnp.ones((2000, 2000)), "b": jnp.ones(3)}
    folder = tempfile.mkdtemp()
    wall, checkpoints = current().part(Wall), current().part(Checkpoints)
    taken = 0.0

    def timed(fun, *arguments, **keywords):
        global taken
        began = time.perf_counter()
        fun(*arguments, **keywords)
        taken += time.perf_counter() - began

    def step():
        scope = wall.enter("step")
        time.sleep(0.1)
        wall.leave(scope)

    found = {}
    with ocp.CheckpointManager(folder + "/several") as manager:
        for number in range(3):
            step()
            scope = wall.enter("step")
            timed(manager.save, number, args=ocp.args.StandardSave(state))
            wall.leave(scope)
            step()
        timed(manager.wait_until_finished)
        found["unsaved"] = wall.steps - checkpoints.latest.steps
        found["complete"] = checkpoints.complete
        timed(manager.restore, 2, args=ocp.args.StandardRestore(state))
    with jaxobs.phase("checkpoint"):
        timed(ocp.Checkpointer(ocp.PyTreeCheckpointHandler()).save, folder + "/one", state)
    found["complete with one"] = checkpoints.complete
    spent = jaxobs.snapshot().wall
    found.update(
        taken=taken, seconds=spent.seconds, wall=spent.wall_seconds,
        operations={name: [sum(each.counts), each.sum] for name, each in spent.checkpoints.items()},
        errors=jaxobs.snapshot().observer.internal_errors,
        notes=jaxobs.snapshot().observer.notes,
    )
    print(json.dumps(found))
"""


def test_orbax_tells_of_its_checkpoints_itself() -> None:
    """What blocked is charged, also out of the middle of a step; an asynchronous save holds the steps before it."""
    done = run(ORBAX)
    if "No module named 'orbax'" in done.stderr:
        missing("orbax-checkpoint is not installed. It comes with flax, which is in the group `dev`.")
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["errors"] == {} and found["notes"] == []
    counts = {name: count for name, (count, _) in found["operations"].items()}
    assert {name: counts[name] for name in ("save", "save_async", "restore", "phase")} == {
        "save": 4, "save_async": 3, "restore": 1, "phase": 1
    }  # fmt: skip
    seconds = found["seconds"]
    compiled = seconds["trace"] + seconds["compile"]
    assert seconds["checkpoint"] <= found["taken"] + 0.01
    assert seconds["checkpoint"] + compiled >= 0.75 * found["taken"]
    assert seconds["step"] == pytest.approx(0.6, abs=0.1)
    assert sum(seconds.values()) == pytest.approx(found["wall"], rel=1e-6)
    assert found["complete"] == 3
    assert found["unsaved"] == 1  # the step after the last save; the one it was made in is not over, but begun
    assert found["complete with one"] == 4  # Orbax's own, and not once more for the phase around it
