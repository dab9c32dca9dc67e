"""Out of memory that the program catches, under `install()` alone: what each Python lets us see."""

import functools
import json
import pathlib
import subprocess
from typing import Any

import pytest
from helpers.matrix import interpreter, rows
from helpers.paths import ROOT
from helpers.run_programs import environment

from tools.environments import MATRIX, NEWEST, Row

PROGRAM = pathlib.Path(__file__).parent.parent / "helpers" / "programs" / "caught_errors.py"
ROWS = [row for row in MATRIX if row.jax in ("0.10.2", NEWEST)]


@functools.cache
def result(row: Row) -> dict[str, Any]:
    """Returns what the program prints under that row."""
    python = interpreter(row)
    variables = environment(PYTHONPATH=str(ROOT), XLA_FLAGS="")
    done = subprocess.run(
        [python, "-W", "ignore", PROGRAM], env=variables, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("row", rows(*ROWS))
def test_what_the_program_catches(row: Row) -> None:
    """Each error once, however many handlers it meets; nothing that is none of JAX's; nothing when uninstalled."""
    found = result(row)
    watches = found["python"] >= [3, 12]
    call = ["__main__.big"] if watches else []
    assert found["a call"] == found["the same call"] == found["a thread"] == call
    assert found["an operation"] == (["<eager>"] if watches else [])
    assert found["a lowering"] == ["__main__.lowered"]
    assert found["a call of an instrumented function"] == ["big"]
    assert found["the program's own array"] == found["another error of JAX's"] == []
    assert found["capability"] is (True if watches else None)
    assert found["after a sample"] == len(call) and found["after uninstall"] == 0
    assert "jaxobs" not in found["uninstalled"]
    assert found["errors"] == {}
    if watches:
        assert found["dropped"] >= 1 and any("20,000 exceptions" in each for each in found["notes"])
        assert found["bounded"] == [True, False, True]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("row", rows(*[row for row in ROWS if row.pythons[0] != "3.11"]))
def test_other_tools_keep_their_numbers(row: Row) -> None:
    """A note says that both free numbers are taken; a number that becomes free is used at the next sample."""
    others = result(row)["beside others"]
    assert others["capabilities"] == [False, True] and len(others["notes"]) == 1
    assert others["tools"][3:5] == ["other 3", "jaxobs"] and others["after"][3:5] == ["other 3", None]
    assert others["seen"] == 1 and others["told"] == ["'still told'"]
