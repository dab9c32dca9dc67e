"""`jaxobs doctor`: the command on this machine, with real faults in its environment, and against a good machine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DUMPED = """
import sys
import jax, jax.numpy as jnp
n = int(sys.argv[1])
@jax.jit
def step(x):
    return (x * n).sum()
@jax.jit
def same(x):
    return x + 1
step(jnp.ones(8)); same(jnp.ones(4))
if n > 2:
    @jax.jit
    def other(x):
        return x - 1
    other(jnp.ones(4))
"""


def doctor(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA"))}
    command = [sys.executable, "-m", "jaxobs", "doctor", *map(str, arguments)]
    return subprocess.run(command, env={**clean, **variables}, capture_output=True, text=True)


def findings(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Returns what `--json` prints, after a check of its form."""
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert all({"id", "severity", "title", "evidence", "fix", "entity"} <= set(each) for each in found)
    assert {each["severity"] for each in found} <= {"ok", "info", "warning", "critical"}
    return found


def test_real_faults_are_named_with_what_mends_them(tmp_path: Path) -> None:
    done = doctor(
        "--json", XLA_FLAGS="--xla_cpu_enable_fast_math=false --xla_nonexistent_flag=1", JAX_DEBUG_NANS="true",
        JAX_PLATFORMS="cuda,cpu", JAX_COMPILATION_CACHE_DIRS="/x", JAX_COMPILATION_CACHE_DIR=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 1
    found = {(each["id"], each["severity"]): each for each in findings(done)}
    assert found["xla_flags", "critical"]["fix"] == 'export XLA_FLAGS="--xla_cpu_enable_fast_math=false"'
    assert found["debug_options", "warning"]["evidence"] == "JAX_DEBUG_NANS=true"
    assert "JAX_PLATFORMS=cuda,cpu" in found["silent_cpu", "critical"]["evidence"]
    assert "JAX_COMPILATION_CACHE_DIR=/x" in found["launcher_variables", "warning"]["fix"]
    severities = [each["severity"] for each in findings(done)]
    assert severities == sorted(severities, key=["critical", "warning", "info", "ok"].index)


@pytest.mark.slow
def test_a_table_for_people_and_the_difference_from_a_good_machine(tmp_path: Path) -> None:
    """Only what is not well, unless all is wanted; a flag that the good machine had not is a warning.

    Of the environment, only what JAX, XLA and their libraries read is printed, and no token.
    """
    good = tmp_path / "good.json"
    good.write_text(doctor("--json", JAXOBS_ACTION_TOKEN="geheim", AWS_SECRET="geheim", TPU_API_KEY="geheim").stdout)
    assert "geheim" not in good.read_text()
    assert json.loads(good.read_text())["machine"]["variables"]["TPU_API_KEY"] == "<not shown>"
    done = doctor("--baseline", good, "--all", XLA_FLAGS="--xla_cpu_enable_fast_math=true")
    assert done.returncode == 1
    assert "WARNING   XLA_FLAGS is not what it was on the good machine" in done.stdout
    assert "variables: absent -> --xla_cpu_enable_fast_math=true" in done.stdout
    assert "ok        XLA takes its flags" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(" ok.")


def test_dumps_of_two_processes_are_compared(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(DUMPED)
    (tmp_path / "b.py").write_text("# another line\n" + DUMPED)
    for name, number in (("a", 2), ("b", 2), ("c", 3)):
        script = tmp_path / ("a.py" if name == "a" else "b.py")
        environment = {**os.environ, "XLA_FLAGS": f"--xla_dump_to={tmp_path / name}"}
        subprocess.run([sys.executable, script, str(number)], env=environment, check=True, capture_output=True)
    same = doctor("--json", "--xla-dump", tmp_path / "a", tmp_path / "b")
    assert (same.returncode, [each["severity"] for each in findings(same)]) == (0, ["ok"])
    differing = doctor("--json", "--xla-dump", tmp_path / "a", tmp_path / "c")
    assert differing.returncode == 1
    alone, step = findings(differing)
    assert ("jit_other" in alone["evidence"], alone["title"]) == (True, "1 program is in B alone")
    assert step["entity"] == "jit_step"
    assert "constant(2)' -> " in step["evidence"] and "constant(3)" in step["evidence"]


@pytest.mark.slow
def test_deep_runs_one_program_with_an_empty_cache() -> None:
    [deep] = [each for each in findings(doctor("--json", "--deep", JAX_PLATFORMS="cpu")) if each["id"] == "deep"]
    assert deep["severity"] == "ok"
    assert "first call" in deep["evidence"] and "(cpu)" in deep["evidence"]
    assert "A first call takes" in doctor("--deep", JAX_PLATFORMS="cpu").stdout


@pytest.mark.slow
def test_deep_says_that_no_program_runs_here() -> None:
    found = findings(doctor("--json", "--deep", JAX_PLATFORMS="tpu"))
    [deep] = [each for each in found if each["id"] == "deep"]
    assert (deep["severity"], deep["title"]) == ("critical", "A JAX program does not run here")
