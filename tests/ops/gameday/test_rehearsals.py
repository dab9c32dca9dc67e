"""Every fault of a game day, for real: the demo's training runs with it, and the diagnosis names what is wrong."""

import random
from pathlib import Path

import numpy as np
import pytest

from jaxobs.ops.diagnosis.knowledge import CAUSE
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.result import Diagnosis
from jaxobs.ops.gameday import Fault, telling
from jaxobs.ops.gameday.fault_types import Scene
from jaxobs.ops.gameday.faults import FAULTS
from jaxobs.ops.gameday.running import Ended, RehearsalError, rehearsal
from jaxobs.ops.monitoring import rules
from tools.ports import free_port


def rehearsed(name: str, folder: Path, fault: Fault | None = None, seed: int = 7) -> Ended:
    with rehearsal(name, fault or FAULTS[name], seed, folder, port=free_port(), quick=True) as running:
        running.wait(1)
        return running.end()


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_diagnosis_names_the_fault(name: str, tmp_path: Path) -> None:
    ended = rehearsed(name, tmp_path)
    assert ended.is_named, (ended.diagnosis.as_json()["causes"], ended.diagnosis.missing)
    follows = {each for cause in ended.diagnosis.causes for each in cause.consequences}
    assert {each.id for each in ended.diagnosis.causes} - follows <= set(FAULTS[name].causes)


@pytest.mark.slow
def test_a_run_without_a_fault_is_healthy(tmp_path: Path) -> None:
    fault = Fault(title="", causes=(), alert="JaxInputBound", lead=0, undo="")
    with rehearsal("crash", fault, 7, tmp_path, port=free_port()) as running:
        assert running.end().diagnosis.verdict == "no_fault"


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="KeyError: 'nonsense'"):
        rehearsed("nonsense", tmp_path, FAULTS["crash"])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_what_a_team_needs(name: str) -> None:
    fault = FAULTS[name]
    assert fault.alert in {each.name for each in rules.alerts()}
    assert {known()[each].role for each in fault.causes} == {CAUSE}
    assert telling.minutes_until(fault) > fault.lead > 0
    if "2700" in telling.alert_of(fault).expr:
        assert fault.from_start == 45
    text = "\n".join(telling.plan(name, fault))
    assert f"runbooks/{fault.alert}.md" in text
    assert fault.undo in text


def scene(folder: Path) -> Scene:
    images = np.ones((128, 8, 8, 1), np.float32)
    return Scene(random.Random(3), folder, images=images, labels=np.zeros(128, np.int32))


def test_what_faults_do_to_a_step(tmp_path: Path) -> None:
    shapes = scene(tmp_path)
    for hook in (FAULTS["changing_shapes"].on_input, FAULTS["bad_record"].on_input, FAULTS["nan_loss"].on_step):
        assert hook is not None
        hook(shapes)
    assert len(shapes.images) == len(shapes.labels) < 128
    assert np.isnan(shapes.images).sum() == 1
    assert shapes.rate == 1e30
    again = scene(tmp_path)
    assert FAULTS["changing_shapes"].on_input is not None
    FAULTS["changing_shapes"].on_input(again)
    assert len(again.images) == len(shapes.images)
    with pytest.raises(OSError, match="No space left"):
        FAULTS["disk_full"].on_step(again)  # type: ignore[misc]


def test_the_ending_compares() -> None:
    ended = Ended(
        fault="crash", seed=1, folder="gameday", minutes=1.0, exit_code=1, is_named=False,
        diagnosis=Diagnosis(verdict="no_fault"),
    )  # fmt: skip
    text = "\n".join(telling.ending(ended, FAULTS["crash"]))
    for part in ("The truth", "JaxTrainingGone", "verdict:   no_fault", "wrong", "gameday crash --seed 1"):
        assert part in text
