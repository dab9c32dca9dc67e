"""Failures as pytest prints them, of a real run of pytest, read as the tracebacks that they are."""

import subprocess
import sys
from pathlib import Path

import pytest

from jaxobs.ops.diagnosis.evidence import RAISED, Observation
from jaxobs.ops.diagnosis.gathering import logs
from jaxobs.ops.diagnosis.gathering.pytest_output import as_python

LIBRARY = '''
def level(main):
    """Returns the level."""
    return main.level

def deep(main):
    return level(main)
'''
TEST = """
from lattice import deep

def test_one():
    {before}
    deep(3)
"""
CHAINED = "try: deep(2)\n    except AttributeError as error: raise ValueError('no level:\\n  none') from error"


def _raised(folder: Path, before: str = "pass", prefix: str = "") -> list[Observation]:
    package = folder / "site-packages" / "lattice"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(LIBRARY)
    (folder / "test_it.py").write_text(TEST.format(before=before))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir", str(folder), "test_it.py"]
    environment = {"PYTHONPATH": str(package.parent), "PATH": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (folder / "run.log").write_text("".join(f"{prefix}{line}\n" for line in done.stdout.splitlines()))
    found, _ = logs.read(str(folder / "run.log"), "run.log", [], 2026)
    return [each for each in found if each.name == RAISED and each.kind == "line"]


@pytest.mark.parametrize("prefix", ["", "2026-11-29T10:00:00.1234567Z "], ids=["bare", "with times"])
def test_a_failure_has_message_files_and_line(tmp_path: Path, prefix: str) -> None:
    """The innermost file, which pytest names behind the message, and the innermost of the user's own."""
    (raised,) = _raised(tmp_path, prefix=prefix)
    assert raised.text == "AttributeError: 'int' object has no attribute 'level'"
    assert raised.data["frames"].endswith("site-packages/lattice/__init__.py")
    assert raised.data["where"].startswith("test_it.py:6")
    assert "return main.level" in raised.data["code"]


def test_a_chain_is_two_exceptions(tmp_path: Path) -> None:
    """The second one has a message of two lines, and was raised by the test itself."""
    first, second = _raised(tmp_path, before=CHAINED)
    assert first.text.startswith("AttributeError: ") and second.text == "ValueError: no level:"
    assert second.data["message"].strip() == "none"
    assert second.data["frames"].endswith("test_it.py")


def test_other_logs_stay_as_they_are() -> None:
    lines = [(1, "E0101 10:00:00.000000 1 a.cc:1] E  no"), (2, "train.py:10: loss 1.0"), (3, ""), (4, "E: x")]
    assert as_python(lines) is lines
