"""Counts are true under every supported version of JAX, each in an environment of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from helpers.matrix import interpreter, rows
from helpers.paths import ROOT

from jaxobs.cli import main
from tools.environments import MATRIX, NEWEST, Row

CHECK = Path(__file__).with_name("check_counts.py")
LEAST_CHECKS = 120


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("row", rows())
def test_counts_are_true(row: Row) -> None:
    """Every scenario counts what JAX compiled, no more and no less."""
    python = interpreter(row)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA", "PYTHON"))}
    done = subprocess.run(
        [python, CHECK], env={**kept, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.stdout.startswith("{"), f"{python} ended with {done.returncode}:\n{done.stderr[-3000:]}"
    report = json.loads(done.stdout)
    wrong = [
        f"{c['scenario']}: {c['what']}: expected {c['expected']}, jaxobs {c['seen']}"
        for c in report["checks"]
        if not c["ok"]
    ]
    assert not wrong, f"JAX {report['jax']} on Python {report['python']}:\n" + "\n".join(wrong)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(report["checks"]) >= LEAST_CHECKS
    if row.jax != NEWEST:
        assert report["jax"] == row.jax
    lacking = {name for name, there in report["capabilities"].items() if not there}
    assert lacking == ({"phase_starts"} if row.jax == "0.6.0" else set())


STEP = """
import jax, jax.numpy as jnp
def loss(w, x):
    return (jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=4)[0] ** 2).mean()
step = jax.pmap(lambda w, x: jax.lax.psum(jax.grad(loss)(w, x), "d"), axis_name="d", in_axes=(None, 0))
step(jnp.ones((8, 8)), jnp.ones((4, 2, 8))).block_until_ready()
"""


@pytest.mark.versions
@pytest.mark.timeout(600)
def test_dumps_of_two_versions_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The oldest and the newest XLA make other programs of one step; a dump differs in nothing from itself."""
    oldest, newest = MATRIX[0], next(row for row in MATRIX if row.jax == NEWEST)
    folders = []
    for row in (oldest, newest):
        folders.append(str(tmp_path / row.id))
        flags = f"--xla_force_host_platform_device_count=4 --xla_dump_to={folders[-1]} --xla_dump_hlo_as_text"
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        subprocess.run([interpreter(row), "-c", STEP], env=environment, check=True, timeout=120, capture_output=True)
    assert main(["compare", *folders, "--same", "programs", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    differing = {group["group"] for program in found["programs"] for group in program["changes"]}
    assert differing & {"fusion", "collective", "custom call", "operation"} and found["notes"] == []
    assert "JAX lowered" in found["cause"]
    assert main(["compare", folders[0], folders[0], "--same", "programs,flags"]) == 0
    assert "No program differs." in capsys.readouterr().out
