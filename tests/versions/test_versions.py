"""Counts are true under every supported version of JAX, each in an environment of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from helpers.matrix import interpreter, rows
from helpers.paths import ROOT

from tools.environments import NEWEST, Row

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
