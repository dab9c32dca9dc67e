"""The verdict on small real programs, as `jaxobs explain --json` says it: each fault alone, two together, and none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from jaxobs.cli import main

pytestmark = pytest.mark.slow

HEAD = """
import time
import jax, jax.numpy as jnp, numpy as np
import jaxobs
"""
BIG = """
def network(w, x):
    for _ in range(60):
        x = jnp.tanh(x @ w) + jnp.sin(x)
    return x.sum()
"""
LOOP = (
    HEAD
    + BIG
    + """
@jax.jit
def train_step(w, x):
    loss, g = jax.value_and_grad(network)(w, x)
    return w - 1e-6 * g, loss
w = np.ones((16, 16), np.float32) / 16
"""
)


@dataclass(frozen=True)
class Program:
    """A program and what its verdict has to be."""

    source: str
    verdict: str
    kinds: tuple[str, ...] = ()
    """The findings in their order."""
    headline: str = ""
    """A regular expression."""
    code: int = 0
    """The program's own exit code."""


PROGRAMS = {
    "healthy": Program(LOOP + """
for n in range(300):
    w, loss = train_step(w, np.ones((32, 16), np.float32))
    time.sleep(0.01)
""", "fine", (), r"Nothing to mend: \d+ % of the time since the first step went into steps\."),
    "healthy, with marked steps": Program(LOOP + """
rows = (np.arange(200 * 32 * 16) % 97 % 13).reshape(200, 32, 16).astype(np.float32)
for x in jaxobs.steps(jaxobs.data(rows), "train"):
    w, loss = train_step(w, x)
    jaxobs.watch(loss=loss)
    time.sleep(0.01)
""", "fine", (), r"Nothing to mend: \d+ % of the time since the first step went into steps\."),
    "healthy, two modes and an evaluation": Program(LOOP + """
evaluate = jax.jit(lambda w, x: network(w, x))
for n in range(100):
    w, loss = train_step(w, np.ones((32, 16), np.float32))
    time.sleep(0.01)
    if n % 25 == 24:
        evaluate(w, np.ones((64, 16), np.float32))
""", "fine"),
    "healthy server": Program(HEAD + BIG + """
predict = jax.jit(network)
w = np.ones((16, 16), np.float32)
jaxobs.warmup(predict, (w, np.ones((4, 16), np.float32)))
for n in range(60):
    with jaxobs.request("/predict"):
        predict(w, np.ones((4, 16), np.float32)).block_until_ready()
""", "fine", (), r"Nothing to mend: 60 requests answered\."),
    "nothing at all": Program(HEAD, "fine", (), r"Nothing to mend: nothing has compiled yet\."),
    "shapes": Program(LOOP + """
for n in range(24):
    w, loss = train_step(w, np.ones((10 + n, 16), np.float32))
""", "mend", ("unbounded_shapes",), r"Dimension 0 of `x` has taken 24 sizes from 10 to 33; .* Cost so far: "),
    "a NaN": Program(LOOP + """
for n in range(200):
    w, loss = train_step(w, np.ones((32, 16), np.float32))
    if n == 120:
        w = w * np.nan
    jaxobs.watch(loss=loss)
    time.sleep(0.005)
""", "mend", ("nonfinite_values",), r"`loss` was NaN in 79 of 200 checked values, .*; first at call 121\."),
    "a NaN that nobody watches": Program(LOOP + """
for n in range(200):
    w, loss = train_step(w, np.ones((32, 16), np.float32))
    if n == 60:
        w = w * np.nan
    time.sleep(0.005)
""", "mend", ("nonfinite_values",), r"The result of `__main__.train_step` was NaN in "),
    "a metric that is NaN in some steps": Program(LOOP + """
@jax.jit
def scored_step(w, x, seen):
    w, loss = train_step(w, x)
    return w, loss, jnp.where(seen > 0, loss / seen, jnp.nan)
for n in range(200):
    w, loss, score = scored_step(w, np.ones((32, 16), np.float32), np.float32(n % 3))
    time.sleep(0.005)
""", "fine"),
    "a NaN and shapes": Program(LOOP + """
for n in range(24):
    w, loss = train_step(w, np.ones((10 + n, 16), np.float32))
    jaxobs.watch(loss=loss * np.float32("nan"))
""", "mend", ("nonfinite_values", "unbounded_shapes"), r"NaN .* 1 other finding below\."),
    "lambdas": Program(HEAD + BIG + """
x = np.ones((8, 16), np.float32)
w = np.ones((16, 16), np.float32)
for n in range(8):
    jax.jit(lambda w: network(w, x))(w)
""", "mend", ("recreated_functions",), r"was created again"),
    "a dtype that changes": Program(LOOP + """
for n in range(40):
    # Two changes: what they take together has to be more than a second on a fast machine, too.
    w, loss = train_step(w, np.ones((32, 16), (np.float32, np.float16, jnp.bfloat16)[n * 3 // 40]))
""", "mend", ("costly_recompilations",), r"recompiled 2 times at .* \(dtype\)"),
    "static numbers": Program(HEAD + BIG + """
from functools import partial
@partial(jax.jit, static_argnums=2)
def step(w, x, epoch):
    return network(w, x) * epoch
for n in range(24):
    step(np.ones((16, 16), np.float32), np.ones((8, 16), np.float32), n)
""", "mend", ("static_values",)),
    "cold requests": Program(HEAD + BIG + """
predict = jax.jit(lambda x: network(jnp.ones((16, 16)), x))
for n in range(24):
    with jaxobs.request("/predict"):
        predict(np.ones((3 + n, 16), np.float32)).block_until_ready()
""", "mend", ("unbounded_shapes", "cold_requests")),
    "one cold request": Program(HEAD + BIG + """
def deep(w, x):
    for _ in range(6):
        x = jax.nn.softmax(network(w, x) + x)
    return x
predict = jax.jit(deep)
for n in range(50):
    with jaxobs.request("/predict"):
        predict(np.ones((16, 16), np.float32), np.ones((4, 16), np.float32)).block_until_ready()
""", "mend", ("cold_requests",), r"1 of 50 requests to `/predict` compiled before they were answered"),
    "requests that fail": Program(HEAD + """
for n in range(40):
    try:
        with jaxobs.request("/predict"):
            if n % 2:
                raise RuntimeError("no model")
    except RuntimeError:
        pass
""", "mend", ("failed_requests",), r"20 of 40 requests to `/predict` failed \(50%\)\."),
    "an exception": Program(LOOP + """
for n in range(10):
    w, loss = train_step(w, np.ones((32, 16), np.float32))
raise ValueError("the end")
""", "mend", ("uncaught_error",), r"ValueError ended the program: the end", code=1),
    "slow steps": Program(LOOP + """
for n in range(400):
    with jaxobs.step("train"):
        w, loss = train_step(w, np.ones((32, 16), np.float32))
        jax.block_until_ready(loss)
        time.sleep(1.5 if n % 80 == 79 else 0.002)
""", "mend", ("slow_steps",), r"\d+ of 400 steps of `train` took more than 3 times the typical .*, every 80 steps\."),
    "a leak": Program(LOOP + """
kept = []
for n in range(800):
    w, loss = train_step(w, np.ones((32, 16), np.float32))
    kept.append(jax.device_put(np.ones((128, 128), np.float32)))
    time.sleep(0.02)
""", "mend", ("array_leak",), r"more arrays float32\[128,128\] on cpu:0 are alive"),
    "a leak and lambdas": Program(LOOP + """
kept = []
for n in range(800):
    w, loss = train_step(w, np.ones((32, 16), np.float32))
    kept.append(jax.device_put(np.ones((128, 128), np.float32)))
    time.sleep(0.02)
    if n % 80 == 0:
        jax.jit(lambda w: network(w, w))(w)
""", "mend", ("recreated_functions", "array_leak")),
    "a list that grows in the arguments": Program(HEAD + """
@jax.jit
def step(xs):
    return sum(jnp.tanh(x).sum() for x in xs)
xs = []
for n in range(30):
    xs.append(np.ones((8,), np.float32))
    step(xs)
""", "mend", ("unbounded_structures",)),
    "eager initialisation": Program(HEAD + """
from flax import nnx
class Net(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(8 + n, 9 + n, rngs=rngs) for n in range(12)])
    def __call__(self, x):
        for layer in self.layers:
            x = nnx.relu(layer(x))
        return x
net = Net(nnx.Rngs(0))
call = nnx.jit(lambda net, x: net(x))
for n in range(50):
    call(net, np.ones((4, 8), np.float32))
""", "mend", ("eager_initialization",), r"single operations"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_on_a_program(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict is its word, its findings in their order, and its first sentence."""
    program, log = PROGRAMS[name], tmp_path / "events.jsonl"
    (tmp_path / "train.py").write_text(program.source)
    environment = {each: value for each, value in os.environ.items() if not each.startswith("JAXOBS_")}
    # With a cache, for on a slow machine that there is none is a finding, too.
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"), "JAXOBS_SAMPLE_INTERVAL": "0.1"}
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), "train.py"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == program.code, ran.stderr
    capsys.readouterr()
    code = main(["explain", "--json", str(log)])
    body = json.loads(capsys.readouterr().out)
    kinds = tuple(each["finding"] for each in body["findings"])
    assert body["verdict"] == program.verdict, (kinds, body["headline"])
    assert kinds == program.kinds, body["headline"]
    assert re.search(program.headline, body["headline"]), body["headline"]
    assert code == (1 if kinds else 0)
