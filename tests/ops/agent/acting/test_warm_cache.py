"""`warm_cache` with a real program: what it says afterwards."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.run_programs import environment

from jaxobs.ops.agent.acting.actions import ACTIONS, Around, Request
from jaxobs.ops.agent.acting.policy import Policy, WarmCache
from jaxobs.ops.captures import Outcome

PROGRAM = """\
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return jnp.tanh(x @ x)

if __name__ == "__main__":
    step(jnp.ones((4, 4))).block_until_ready()
"""
REQUEST = Request(action="warm_cache", actor="rule:cold_requests", job="train", why="The next start is fast.")


def test_it_says_what_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, script, cache = tmp_path / "events.jsonl", tmp_path / "train.py", tmp_path / "cache"
    script.write_text(PROGRAM)
    ran = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), str(script)]
    subprocess.run(ran, check=True, env=environment(), timeout=120)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    policy = Policy(warm_cache=WarmCache(event_log=str(log), cache_dir=str(cache), script=str(script)))
    plan = ACTIONS["warm_cache"].plan(REQUEST, Around(directory=tmp_path, policy=policy, targets=lambda job: []))
    outcome = plan.run(lambda: False)
    assert outcome == Outcome("done", f"1 of 1 signatures are in {cache}: 1 compiled, 0 were there.", str(cache))
    assert any(cache.iterdir())
    assert plan.run(lambda: True) == Outcome("failed", "It was stopped.")
    log.unlink()
    failed = plan.run(lambda: False)
    assert failed.result == "failed" and re.match(r"Exit code 2: jaxobs: .*events\.jsonl", failed.detail)
