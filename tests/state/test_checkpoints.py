"""`jaxobs.phase`, and checkpoints by Orbax's own events: what held the program up, and when one was complete."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from helpers.clock import Clock
from helpers.requirements import missing
from helpers.run_programs import run
from helpers.threads import elsewhere

import jaxobs
from jaxobs.facts.wall import TimeState
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.store import current
from jaxobs.state.wall import Wall


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


ORBAX = """
    import json, logging, tempfile, time
    logging.disable(logging.WARNING)
    import jax, jax.numpy as jnp, jaxobs
    jaxobs.install()
    import orbax.checkpoint as ocp
    from jaxobs.state.checkpoints import Checkpoints
    from jaxobs.state.store import current
    from jaxobs.state.wall import Wall
    state = {"a": jnp.ones((2000, 2000)), "b": jnp.ones(3)}
    folder = tempfile.mkdtemp()
    wall, checkpoints = current().part(Wall), current().part(Checkpoints)
    taken = slept = around = 0.0

    def timed(fun, *arguments, **keywords):
        global taken
        began = time.perf_counter()
        fun(*arguments, **keywords)
        taken += time.perf_counter() - began

    def step():
        global slept, around
        outside = time.perf_counter()
        scope = wall.enter("step")
        inside = time.perf_counter()
        time.sleep(0.1)
        slept += time.perf_counter() - inside
        wall.leave(scope)
        around += time.perf_counter() - outside

    found = {}
    with ocp.CheckpointManager(folder + "/several") as manager:
        for number in range(3):
            step()
            outside = time.perf_counter()
            scope = wall.enter("step")
            timed(manager.save, number, args=ocp.args.StandardSave(state))
            wall.leave(scope)
            around += time.perf_counter() - outside
            step()
        timed(manager.wait_until_finished)
        found["unsaved"] = wall.steps - checkpoints.latest.steps
        found["complete"] = checkpoints.complete
        timed(manager.restore, 2, args=ocp.args.StandardRestore(state))
    def save():
        with jaxobs.phase("checkpoint"):
            ocp.Checkpointer(ocp.PyTreeCheckpointHandler()).save(folder + "/one", state)

    timed(save)
    found["complete with one"] = checkpoints.complete
    spent = jaxobs.snapshot().wall
    found.update(
        taken=taken, slept=slept, around=around, seconds=spent.seconds, wall=spent.wall_seconds,
        operations={name: [sum(each.counts), each.sum] for name, each in spent.checkpoints.items()},
        errors=jaxobs.snapshot().observer.internal_errors,
        notes=jaxobs.snapshot().observer.notes,
    )
    print(json.dumps(found))
"""

WAITS = """
    import inspect
    jaxobs.uninstall()
    jaxobs.install()  # this time Orbax is there already
    from jaxobs.metrics.buckets import CHECKPOINT_BOUNDS
    import orbax.checkpoint.experimental.v1 as ocp1
    from flax.training import checkpoints as flax_checkpoints

    def slow_disk(event, duration, **kwargs):
        if event == "/jax/checkpoint/write/async/total_duration_secs":  # told of before the save is over
            time.sleep(0.5)

    jax.monitoring.register_event_duration_secs_listener(slow_disk)
    state, folder, found = {"a": jnp.ones(8)}, tempfile.mkdtemp(), {}
    with jaxobs.step("train"):
        pass

    def waits():
        counts = jaxobs.snapshot().wall.checkpoints["wait"].counts
        return sum(count for bound, count in zip([*CHECKPOINT_BOUNDS, 1e9], counts) if bound > 0.4)

    def checkpoint():
        return jaxobs.snapshot().wall.seconds["checkpoint"]

    def timed(name, fun, *arguments, **keywords):
        before = checkpoint()
        with jaxobs.step("train"):
            began = time.perf_counter()
            fun(*arguments, **keywords)
            took = time.perf_counter() - began
        found[name] = [took, checkpoint() - before]

    earlier = waits()
    save = ocp.args.StandardSave(state)
    manager = ocp.CheckpointManager(folder + "/several")
    manager.save(0, args=save)
    timed("manager, next save", manager.save, 1, args=save)
    timed("manager, wait", manager.wait_until_finished)
    manager.save(2, args=save)
    timed("manager, close", manager.close)
    one = ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler())
    one.save(folder + "/1", args=save)
    timed("one, next save", one.save, folder + "/2", args=save)
    timed("one, wait", one.wait_until_finished)
    one.save(folder + "/3", args=save)
    timed("one, restore", one.restore, folder + "/3", args=ocp.args.StandardRestore(state))
    one.save(folder + "/4", args=save)
    timed("one, close", one.close)
    plain = ocp.Checkpointer(ocp.StandardCheckpointHandler())
    timed("plain, save", plain.save, folder + "/5", args=save)
    timed("plain, restore", plain.restore, folder + "/5", args=ocp.args.StandardRestore(state))
    response = ocp1.save_pytree_async(folder + "/6", state)
    timed("version 1, result", response.result)
    flax = flax_checkpoints.AsyncManager()
    flax.save_async(lambda: time.sleep(0.5))
    timed("flax, wait", flax.wait_previous_save)

    made = waits() - earlier
    rest = jaxobs.snapshot().wall.category
    ours = ocp.AsyncCheckpointer.wait_until_finished
    signature = str(inspect.signature(ours))
    flax.save_async(lambda: time.sleep(0.2) or 1 / 0)
    try:
        flax.wait_previous_save()
    except ZeroDivisionError as error:
        names = []
        trace = error.__traceback__
        while trace is not None:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
    flax_checkpoints.AsyncManager.wait_previous_save = theirs = lambda self: None
    jaxobs.uninstall()
    print(json.dumps({
        "found": found, "waits": made,
        "category": [rest, jaxobs.snapshot().wall.category], "names": names,
        "signature": signature,
        "put back": ocp.AsyncCheckpointer.wait_until_finished is getattr(ours, "__wrapped__", None),
        "theirs": flax_checkpoints.AsyncManager.wait_previous_save is theirs,
        "errors": jaxobs.snapshot().observer.internal_errors,
    }))
"""


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


def test_orbax_tells_of_its_checkpoints_itself(of_orbax: list[Any]) -> None:
    found, _ = of_orbax
    assert found["errors"] == {} and found["notes"] == []
    counts = {name: count for name, (count, _) in found["operations"].items()}
    assert {name: counts[name] for name in ("save", "save_async", "restore", "phase")} == {
        "save": 4, "save_async": 3, "restore": 1, "phase": 1
    }  # fmt: skip
    seconds = found["seconds"]
    compiled = seconds["trace"] + seconds["compile"]
    assert seconds["checkpoint"] <= found["taken"] + 0.01
    assert seconds["checkpoint"] + compiled >= 0.5 * found["taken"]
    assert found["slept"] <= seconds["step"] <= found["around"]
    assert sum(seconds.values()) == pytest.approx(found["wall"], rel=1e-6)
    assert found["complete"] == 3
    assert found["unsaved"] == 1  # the step after the last save; the one it was made in is not over, but begun
    assert found["complete with one"] == 4  # Orbax's own, and not once more for the phase around it
