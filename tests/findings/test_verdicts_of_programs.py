"""The verdict on small real programs, as `jaxobs explain --json` says it: each fault alone, two together, and none."""

import functools
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxobs.cli import main

pytestmark = pytest.mark.slow

PROGRAMS = tomllib.loads(Path(__file__).with_name("verdicts_of_programs.toml").read_text(encoding="utf-8"))
STARTS = {"head": PROGRAMS.pop("head")}
STARTS["big"] = STARTS["head"] + PROGRAMS.pop("big")
STARTS["loop"] = STARTS["big"] + PROGRAMS.pop("loop")
USUAL_SECONDS = 0.075
"""Seconds of a processor for which a usual machine compiles what `speed` compiles, by an estimate: a machine of half
its speed takes 0.12 to 0.2."""
SLOWEST = 0.5


@functools.cache
def speed() -> float:
    """Returns the speed at which this machine compiles, as a share of a usual one's, between a half and 1."""

    def seconds() -> float:
        def network(w: jax.Array, x: jax.Array) -> jax.Array:
            for _ in range(12):
                x = jnp.tanh(x @ w) + jnp.sin(x)
            return x.sum()

        square = jax.ShapeDtypeStruct((16, 16), "float32")
        began = time.process_time()
        jax.jit(jax.grad(network)).lower(square, square).compile()
        return time.process_time() - began

    return min(1.0, max(SLOWEST, USUAL_SECONDS / min(seconds() for _ in range(3))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_on_a_program(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict is its word, its findings but for those that others cause, in their order, and its first sentence."""
    program, log = PROGRAMS[name], tmp_path / "events.jsonl"
    # What compiles for seconds on a usual machine is not to be a fault of its own on a slow one.
    start = STARTS[program["after"]].replace("LAYERS", str(round(program.get("layers", 20) * speed())))
    (tmp_path / "train.py").write_text(start + program.get("source", ""))
    environment = {each: value for each, value in os.environ.items() if not each.startswith("JAXOBS_")}
    # With a cache, for on a slow machine that there is none is a finding, too.
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"), "JAXOBS_SAMPLE_INTERVAL": "0.1"}
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), "train.py"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == program.get("code", 0), ran.stderr
    capsys.readouterr()
    code = main(["explain", "--json", str(log)])
    body = json.loads(capsys.readouterr().out)
    kinds = [each["finding"] for each in body["findings"] if each.get("caused_by") is None]
    assert body["verdict"] == program["verdict"], (kinds, body["headline"])
    assert kinds == program.get("findings", []), body["headline"]
    assert re.search(program.get("headline", ""), body["headline"]), body["headline"]
    assert re.search(program.get("advice", ""), body["findings"][0]["do"] if kinds else ""), body["findings"]
    assert code == (1 if kinds else 0)
