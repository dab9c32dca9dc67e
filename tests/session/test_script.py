"""`jaxobs.session.script`, alone: it runs a script as `python` does, for whoever launches it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import ROOT

from jaxobs.session import script

SOURCE = """
import sys
print(__name__, __package__, sys.argv, sys.path[0], sorted(globals()))
def f():
    return 1 / len(sys.argv[2:])
f()
"""
LAUNCHER = """
import sys
from jaxobs.session import script

def compile_aloud(source, path):
    print("compiling", path.rpartition("/")[2], len(source))
    return compile(source, path, "exec", dont_inherit=True)

def launch():
    how, name, *rest = sys.argv[1:]
    getattr(script, how)(name, rest, compile_aloud)
    print("launcher went on")

launch()
"""
LATE_ERROR = """
from jaxobs.session import script
try:
    script.run_path("script.py")
except ZeroDivisionError:
    pass
def later():
    raise ValueError("of the launcher")
later()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a script and a package that say what they see and fail, and with launchers."""
    for name, source in {
        "script": SOURCE, "package/__init__": "", "package/__main__": SOURCE, "launchers/launch": LAUNCHER,
        "late": LATE_ERROR,
    }.items():  # fmt: skip
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    return tmp_path


def outcome(folder: Path, *command: str) -> tuple[str, str, int]:
    """Output, error output and return code."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize(
    ("how", "plain"),
    [
        ("run_path script.py a", "script.py a"),
        ("run_path script.py a b", "script.py a b"),  # which ends well
        ("run_path package a", "package a"),
        ("run_module package a", "-m package a"),
        ("run_module package.__main__ a", "-m package.__main__ a"),
        ("run_module script a b", "-m script a b"),
    ],
)
def test_what_the_caller_compiles_runs_as_under_python(how: str, plain: str, folder: Path) -> None:
    """The caller is asked once to compile, and goes on where the script ends well."""
    out, err, code = outcome(folder, *plain.split())
    launched = outcome(folder, "launchers/launch.py", *how.split())
    compiling, *said = launched[0].splitlines(keepends=True)
    assert re.fullmatch(r"compiling (script|__main__)\.py \d+\n", compiling)
    assert "".join(said) == out + "launcher went on\n" * (code == 0)
    assert launched[1:] == (err, code)


def test_errors_of_the_launcher_are_its_own(folder: Path) -> None:
    """After the script has ended, an uncaught error of the launcher has its whole traceback."""
    _, err, code = outcome(folder, "late.py")
    assert code == 1
    assert "in later\n" in err and "ValueError: of the launcher" in err and "ZeroDivisionError" not in err


def test_it_knows_nothing_of_jaxobs() -> None:
    """Nothing but the standard library is imported."""
    imported = re.findall(r"^\s*(?:from|import) (\w+)", Path(script.__file__).read_text(), re.MULTILINE)
    assert imported and set(imported) - {"__future__"} <= sys.stdlib_module_names
