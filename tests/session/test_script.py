"""`jaxobs.session.script`, alone: it runs a script as `python` does, for whoever launches it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from helpers.paths import ROOT

from jaxobs.session import script

LAUNCHER = """
import sys
from jaxobs.session import script

def compile_aloud(source, path):
    print("compiling", path.rpartition("/")[2], len(source))
    return compile(source, path, "exec", dont_inherit=True)

def launch():
    how, name, *rest = sys.argv[1:]
    getattr(script, how)(name, rest, compile_aloud if {aloud} else None)
    print("launcher went on")

launch()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a script and a package that say what they see and fail."""
    source = textwrap.dedent("""
        import sys
        print(__name__, __package__, sys.argv, sys.path[0], sorted(globals()))
        def f():
            return 1 / len(sys.argv[2:])
        f()
        """)
    (tmp_path / "script.py").write_text(source)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(source)
    (tmp_path / "launchers").mkdir()
    for aloud in (False, True):
        (tmp_path / "launchers" / f"launch{aloud:d}.py").write_text(LAUNCHER.format(aloud=aloud))
    return tmp_path


def outcome(folder: Path, *command: str) -> tuple[str, str, int]:
    """Output, error output and return code."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize("arguments", [["a"], ["a", "b"]], ids=["fails", "ends"])
@pytest.mark.parametrize("aloud", [0, 1], ids=["compiled as ever", "compiled by the caller"])
@pytest.mark.parametrize(
    ("how", "plain"),
    [
        (["run_path", "script.py"], ["script.py"]),
        (["run_path", "package"], ["package"]),
        (["run_module", "package"], ["-m", "package"]),
        (["run_module", "package.__main__"], ["-m", "package.__main__"]),
        (["run_module", "script"], ["-m", "script"]),
    ],
    ids=" ".join,
)
def test_as_python_does(how: list[str], plain: list[str], aloud: int, arguments: list[str], folder: Path) -> None:
    out, err, code = outcome(folder, *plain, *arguments)
    got = outcome(folder, f"launchers/launch{aloud}.py", *how, *arguments)
    compiling = [line for line in got[0].splitlines() if line.startswith("compiling")]
    assert len(compiling) == aloud
    without = "".join(line + "\n" for line in got[0].splitlines() if line not in compiling)
    assert (without, *got[1:]) == (out + "launcher went on\n" * (code == 0), err, code)


def test_errors_of_the_launcher_are_its_own(folder: Path) -> None:
    """After the script has ended, an uncaught error of the launcher has its whole traceback."""
    (folder / "launch.py").write_text(
        "from jaxobs.session import script\n"
        "try:\n    script.run_path('script.py')\nexcept ZeroDivisionError:\n    pass\n"
        "def later():\n    raise ValueError('of the launcher')\nlater()\n"
    )
    _, err, code = outcome(folder, "launch.py")
    assert code == 1
    assert "in later\n" in err and "ValueError: of the launcher" in err and "ZeroDivisionError" not in err


def test_it_knows_nothing_of_jaxobs() -> None:
    """Nothing but the standard library is imported."""
    tree = ast.parse(Path(script.__file__).read_text())
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - {"__future__"} <= sys.stdlib_module_names
