"""Loops that are found in real programs, as the event log has them at the end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HEAD = """
import time
import jax, jax.numpy as jnp, numpy as np

def network(w, x):
    for _ in range(60):
        x = jnp.tanh(x @ w) + jnp.sin(x)
    return x.sum()
w, x = np.ones((16, 16), np.float32) / 16, np.ones((32, 16), np.float32)
"""


def _standing(source: str, folder: Path) -> dict[str, Any]:
    (folder / "train.py").write_text(HEAD + source)
    log = folder / "events.jsonl"
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (ended,) = [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == "exit"]
    standing: dict[str, Any] = ended["standing"]
    return standing


@pytest.mark.parametrize(("calls", "steps"), [(8, [8]), (4, [])])
def test_calls_of_which_each_compiles_are_a_loop(calls: int, steps: list[int], tmp_path: Path) -> None:
    fits = f"for n in range({calls}):\n    jax.jit(lambda w: network(w, x))(w)\n    time.sleep(0.1)\n"
    assert [each["steps"] for each in _standing(fits, tmp_path)["loops"]] == steps


def test_programs_for_several_shapes_are_no_loop(tmp_path: Path) -> None:
    """A server that warms up compiles its buckets at one line."""
    warm_up = "predict = jax.jit(network)\nfor n in range(8):\n    predict(w, x[: 32 - n])\n"
    assert _standing(warm_up, tmp_path)["loops"] == []


def test_tasks_of_a_pool_are_served(tmp_path: Path) -> None:
    pool = "from concurrent.futures import ThreadPoolExecutor\nstep, pool = jax.jit(network), ThreadPoolExecutor(2)\n"
    answers = "for n in range(60):\n    pool.submit(step, w, x).result()\n    time.sleep(0.1)\n"
    assert _standing(pool + answers, tmp_path)["wall"]["serves"]


TRAINS = """
@jax.jit
def train_step(w, x):
    loss, gradients = jax.value_and_grad(network)(w, x)
    return w - 1e-6 * gradients, loss
for n in range(150):
    w, loss = train_step(w, x)
    time.sleep(0.01)
"""


@pytest.mark.parametrize(("before", "category"), [(TRAINS, "eval"), ("", "step")])
def test_predictions_evaluate_what_was_trained(before: str, category: str, tmp_path: Path) -> None:
    """In a program that trains nothing they are its work."""
    predicts = """
@jax.jit
def predict(w, x):
    return network(w, x)
wide = np.ones((256, 256), np.float32) / 256
for n in range(100):
    predict(wide, wide).block_until_ready()
"""
    wall = _standing(before + predicts, tmp_path)["wall"]
    assert max(("step", "eval"), key=lambda name: wall["seconds"][name]) == category and not wall["serves"], wall


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("jax.lax.scan", "jax.lax.scan(step, w, many)[0]"),
        ("jax.lax.scan", "jax.lax.fori_loop(0, 30, body, w)"),
        ("jax.lax.scan", "jax.lax.scan(lambda w, x: (jnp.tanh(w @ x), 0.0), w, many)[0]"),
        ("jax.lax.while_loop", "jax.lax.while_loop(goes_on, both, (0, w))[1]"),
    ],
)
def test_loops_over_operations_outside_of_jitted_functions(name: str, call: str, tmp_path: Path) -> None:
    """Programs that jit nothing call `jax.lax.scan` and its kind step by step, also if each call compiles."""
    loops = f"""
w, many = jnp.ones((128, 128)) / 128, jnp.ones((30, 128, 128)) / 128
step = lambda w, x: (jnp.tanh(w @ x), w.sum())
body = lambda number, w: jnp.tanh(w @ w)
goes_on = lambda state: state[0] < 30
both = lambda state: (state[0] + 1, body(0, state[1]))
for n in range(60):
    w = {call}.block_until_ready()
"""
    (loop,) = _standing(loops, tmp_path)["loops"]
    assert loop["name"] == name and 58 <= loop["steps"] <= 60


@pytest.mark.parametrize(("size", "dispatches"), [(4, True), (700, False)])
def test_a_loop_over_single_operations_is_one(size: int, dispatches: bool, tmp_path: Path) -> None:
    """The devices compute large arrays meanwhile; of small ones, dispatching is all."""
    loops = f"""
began, w = time.time(), jnp.ones(({size}, {size}))
while time.time() - began < 15.0:
    w = jnp.tanh(w @ w)
    w = w @ w + 1.0
    w.block_until_ready()
"""
    (loop,) = _standing(loops, tmp_path)["loops"]
    assert loop["name"] == "<eager>" and (loop["dispatching"]["share"] > 0.2) == dispatches, loop


@pytest.mark.parametrize("count", [1, 3])
def test_short_trainings_on_threads_are_charged(count: int, tmp_path: Path) -> None:
    """As the program ends, at the latest; one of several at a time stands for all."""
    one = f"threading.Thread(target=exec, args=({TRAINS!r}, {{**globals()}})).start()"
    standing = _standing(f"import threading\nfor _ in range({count}):\n    {one}\n", tmp_path)
    assert standing["wall"]["seconds"]["step"] > 0.0
    assert sum(each["steps"] for each in standing["loops"]) >= 140 * count


@pytest.mark.parametrize(("call", "loops"), [("step(w)", 0), ("w = step(w)", 1)])
def test_a_thread_behind_a_server_answers_in_batches_or_trains(call: str, loops: int, tmp_path: Path) -> None:
    behind = f"""
import http.server, threading
server, step = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler), jax.jit(lambda w: w @ w)
def work(w=w):
    for n in range(60):
        {call}
        time.sleep(0.1)
    server.shutdown()
threading.Thread(target=work).start()
server.serve_forever()
"""
    standing = _standing(behind, tmp_path)
    assert (len(standing["loops"]), standing["wall"]["serves"]) == (loops, not loops)


@pytest.mark.parametrize("evaluations", [1, 20])
def test_the_host_waits_in_an_evaluation_for_the_steps_before_it(evaluations: int, tmp_path: Path) -> None:
    """The host runs ahead of the devices; the rate is of what these compute."""
    runs_ahead = """
@jax.jit
def evaluate(w, x):
    return (x @ w).sum()
w, x = jnp.eye(256), np.ones((256, 256), np.float32)
@jax.jit
def train_step(w, x):
    for _ in range(12):
        w = jnp.tanh(x @ w) / 256
    return w, w.sum()
for n in range(40):
    for _ in range(12):
        w, loss = train_step(w, x)
    for _ in range(EVALUATIONS):
        float(evaluate(w, x[:1]))
"""
    standing = _standing(runs_ahead.replace("EVALUATIONS", str(evaluations)), tmp_path)
    (loop,) = (each for each in standing["loops"] if "train_step" in each["name"])
    spent = standing["wall"]["seconds"]
    assert spent["step"] > 4 * spent["eval"], spent
    assert 0.5 < loop["steps_per_second"] * spent["step"] / loop["steps"] < 2.0, (loop, spent)
