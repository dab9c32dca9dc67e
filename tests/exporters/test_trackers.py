"""Figures in TensorBoard, Weights & Biases (offline) and MLflow (files), read back with their own readers."""

import glob
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import run_programs
from helpers.made_by_hand import full_store, make_steps
from helpers.paths import ROOT
from helpers.requirements import missing
from helpers.waiting import until

from jaxobs import internals
from jaxobs.base.config import Settings
from jaxobs.base.errors import MissingExtraError
from jaxobs.exporters import mlflow, tensorboard, wandb
from jaxobs.exporters.forms import tracked
from jaxobs.facts.process import Exit, Manifest
from jaxobs.state.store import Store
from tools.environments import TRACKERS, InstallError, NoInterpreterError, environment

pytestmark = pytest.mark.usefixtures("fresh")

TRAINING = """
import jaxobs, jax, jax.numpy as jnp, sys, os, time
{before}
@jaxobs.jit
def f(x): return x @ x + 1
from jaxobs.session import lifecycle
trackers = [each for each in lifecycle._session.exporters if hasattr(each, "is_own")]
def train():
    for number in range(30):
        with jaxobs.step("train", items=8):
            f(jnp.zeros((3 + number // 15, 3 + number // 15))).block_until_ready()
        while number == 15 and any(each._told[0] is None for each in trackers):
            time.sleep(0.05)  # until the run has begun
train()
{during}
"""


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that has all of them."""
    try:
        return os.environ.get("TRACKERS_PYTHON") or str(environment(TRACKERS))
    except (InstallError, NoInterpreterError) as error:
        missing(str(error))


def train(python: str, tmp_path: Path, before: str = "", during: str = "", **variables: str) -> None:
    """A program of thirty steps, to its end."""
    ended = run_programs.run(
        TRAINING.format(before=f"jaxobs.install()\n{before}", during=during), python=python, PYTHONPATH=str(ROOT),
        HOME=str(tmp_path), **variables,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "jaxobs failed" not in ended.stderr, ended.stderr


class Recorded(tracked.Tracker):
    """A tracker that keeps what it gets."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.told: list[Any] = []
        self.slow = 0.0

    def run(self) -> Any:
        return "run"

    def describe(self, run: Any, parameters: dict[str, str]) -> None:
        self.told.append(parameters)

    def write(self, run: Any, step: int, figures: dict[str, float]) -> None:
        time.sleep(self.slow)
        self.told.append((step, figures))

    def end(self, exit_code: int | None) -> None:
        self.told.append(exit_code)


def manifest(**fields: Any) -> Manifest:
    """Manifest of a process that has JAX's devices."""
    values = {"time": 1.0, "versions": {"jax": "0.9"}, "program": "train.py", "platform": "cpu"} | fields
    return Manifest(**values)


def test_what_a_tracker_gets() -> None:
    """Parameters once, figures each time, with the steps; and how the process ended."""
    store = full_store()
    make_steps(store, "longer", count=50)
    store.record(manifest(devices={"cpu": 8}, flags={"XLA_FLAGS": "--a"}))
    tracker = Recorded(store)
    tracker.sample()
    tracker.sample()
    until(lambda: len(tracker.told) == 3)
    parameters, (step, figures), _ = tracker.told
    assert parameters["jaxobs/devices"] == "8 x cpu" and parameters["jaxobs/version/jax"] == "0.9"
    assert parameters["jaxobs/flag/XLA_FLAGS"] == "--a" and "jaxobs/run_id" not in parameters
    assert step == 50 and figures["jaxobs/steps/longer"] == 50
    assert figures["jaxobs/step_seconds/longer"] == pytest.approx(0.01)
    assert figures["jaxobs/compilations"] == 2
    assert figures["jaxobs/memory_in_use_bytes/gpu:0"] == 3
    store.record(Exit(time=9.0, reason="exception", detail="ValueError"))
    tracker.close()
    assert tracker.told[-1] == 1 and len(tracker.told) == 5


def test_only_the_first_process_and_not_before_jax_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later processes of the job, children, and a process that only imports JAX have no run."""
    for events, index in (((), 0), ((manifest(platform=None),), 0), ((manifest(),), 1)):
        store = Store()
        monkeypatch.setattr(internals, "process_index_and_count", lambda index=index: (index, 2))
        for event in events:
            store.record(event)
        tracker = Recorded(store)
        tracker.sample()
        tracker.close()
        assert tracker.told == [None]
    monkeypatch.undo()
    store = Store()
    store.record(manifest())
    tracker = Recorded(store)
    tracker._owner = -1
    tracker.after_fork()
    tracker.sample()
    tracker.close()
    assert tracker.told == []


def test_a_tracker_that_hangs_or_fails_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that it misses are counted; the next are tried as soon as it is back."""
    monkeypatch.setattr(tracked, "HAND_OVER_SECONDS", 0.01)
    store = Store()
    store.record(manifest())
    tracker = Recorded(store)
    tracker.slow = 0.5
    for _ in range(3):
        tracker.sample()
    assert store.snapshot().observer.dropped["test_trackers"] == 2
    until(lambda: len(tracker.told) == 2)
    until(lambda: not tracker._work.hangs)
    monkeypatch.setattr(tracker, "write", lambda *_: 1 / 0)
    tracker.sample()
    until(lambda: store.snapshot().observer.dropped["test_trackers"] == 3)


@pytest.mark.parametrize(("module", "name"), [(tensorboard, "tensorboardX"), (wandb, "wandb"), (mlflow, "mlflow")])
def test_a_missing_package_is_named(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install, at the start; nothing where the setting is off."""
    assert module.exporter(Store(), Settings()) is None
    monkeypatch.setattr(tracked.importlib.util, "find_spec", lambda module: None)
    extra = module.__name__.rpartition(".")[2]
    with pytest.raises(MissingExtraError, match=rf"needs `{name}`, from the extra `{extra}`"):
        module.exporter(Store(), Settings(**{extra: "active"}))


def test_nothing_of_them_is_imported_unasked() -> None:
    """Clients take seconds to import."""
    program = (
        "import sys, jaxobs; jaxobs.install(); import jax; jax.numpy.ones(3);"
        "print([each for each in ('tensorboardX', 'wandb', 'mlflow') if each in sys.modules])"
    )
    assert run_programs.run(program, PYTHONPATH=str(ROOT)).stdout == "[]\n"


# ------------------------------------------------------------------------------------------------- each of them


def read(python: str, program: str, *arguments: str, **variables: str) -> list[Any]:
    """Returns what a reader prints last, as JSON."""
    ran = run_programs.run(program, *arguments, python=python, **variables)
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout.splitlines()[-1]))


TENSORBOARD_READ = """
import json, sys
from tensorboardX.proto.event_pb2 import Event
data, figures, texts = open(sys.argv[1], "rb").read(), {}, []
while data:  # length, its checksum, the event, its checksum
    size = int.from_bytes(data[:8], "little")
    event = Event.FromString(data[12 : 12 + size])
    data = data[16 + size :]
    for value in event.summary.value:
        if value.HasField("simple_value"):
            figures[value.tag] = (event.step, value.simple_value)
        else:
            texts += [each.decode() for each in value.tensor.string_val]
print(json.dumps([figures, texts]))
"""


@pytest.mark.slow
def test_tensorboard(python: str, tmp_path: Path) -> None:
    """Scalars over the steps, parameters as text; read from the file by the protocol that it has."""
    train(python, tmp_path, JAXOBS_TENSORBOARD=str(tmp_path / "runs"))
    [path] = glob.glob(f"{tmp_path}/runs/events.out.tfevents.*.jaxobs")
    found, texts = read(python, TENSORBOARD_READ, path)
    assert found["jaxobs/steps/train"] == [30, 30.0]
    assert found["jaxobs/compilations"][1] >= 2
    assert found["jaxobs/step_seconds/train"][1] > 0 and 0 < found["jaxobs/goodput_ratio"][1] < 1
    assert "jaxobs/version/jax" in texts[0]


WANDB_READ = run_programs.programs(__file__)["wandb_read"]


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["own", "active"])
def test_weights_and_biases(python: str, tmp_path: Path, whose: str) -> None:
    """In a run of its own, with nothing else in it; in the program's, whose steps it leaves alone."""
    before = during = ""
    if whose == "active":
        before = f"import wandb; run = wandb.init(project='mine', dir={str(tmp_path)!r})"
        during = """
for n in range(3): run.log({"loss": n})
trackers[0]._put()
run.log({"loss": 3})
assert run.step == 4, run.step
"""
    train(
        python, tmp_path, before, during, JAXOBS_WANDB="active" if whose == "active" else "figures",
        WANDB_MODE="offline", WANDB_DIR=str(tmp_path),
    )  # fmt: skip
    [path] = glob.glob(f"{tmp_path}/wandb/offline-run-*/run-*.wandb")
    history, config, files = read(python, WANDB_READ, path)
    assert history["jaxobs/steps/train"] == 30 and history["jaxobs/compilations"] >= 2
    assert history["jaxobs/steps"] == 30
    assert "jaxobs/version/jax" in config
    assert ("loss" in history) == (whose == "active")
    if whose == "own":
        assert not [each for each in files if each.endswith((".py", ".patch", "metadata.json", "output.log"))], files


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["own", "active"])
def test_mlflow(python: str, tmp_path: Path, whose: str) -> None:
    """System metrics and parameters, of a run of its own or of the program's, which ends as the program says."""
    before = during = ""
    if whose == "active":
        before = "import mlflow; mlflow.set_experiment('mine'); run = mlflow.start_run()"
        during = "mlflow.log_metric('loss', 1.0); trackers[0]._put()"
    address = (tmp_path / "store").as_uri()
    variables = {"MLFLOW_TRACKING_URI": address, "MLFLOW_ALLOW_FILE_STORE": "true"}
    setting = "active" if whose == "active" else "figures"
    train(python, tmp_path, before, during, JAXOBS_MLFLOW=setting, **variables)
    program = (
        "import mlflow, json; client = mlflow.MlflowClient(); import sys\n"
        "[e] = [e for e in client.search_experiments() if e.name == sys.argv[1]]\n"
        "[run] = client.search_runs([e.experiment_id])\n"
        "print(json.dumps([run.data.metrics, run.data.params, run.info.status]))"
    )
    metrics, params, status = read(python, program, "mine" if whose == "active" else "figures", **variables)
    assert metrics["system/jaxobs/steps/train"] == 30
    assert metrics["system/jaxobs/compilations"] >= 2 and metrics["system/jaxobs/step_seconds/train"] > 0
    assert "jaxobs/version/jax" in params
    assert status == "FINISHED"
    assert ("loss" in metrics) == (whose == "active")
