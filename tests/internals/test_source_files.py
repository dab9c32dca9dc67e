"""Owners of lines: the user, a library, and never JAX, the standard library or generated code."""

import json
import os
import subprocess
import sys
import zipapp
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT
from helpers.run_programs import environment

from jaxobs.internals import source_files

LIBRARY = """\
import functools
import jax.numpy as jnp
from library.deep import inner

def train():
    return inner(jnp.cos)  # train
"""
DEEP = """\
import numpy as np

def inner(operation):
    x = operation(np.ones(7, np.float32))  # inner
    return np.all(x)  # through NumPy
"""
SCRIPT = """\
import contextlib, dataclasses, functools
import jax, jax.numpy as jnp, numpy as np
import library

@dataclasses.dataclass
class State:
    x: jax.Array = dataclasses.field(default_factory=functools.partial(jnp.zeros, 11))

@functools.singledispatch
def through_functools(x):
    return jax.lax.sin(x)  # in a function of the user's

library.train()  # the library
State()  # generated
through_functools(np.ones(13, np.float32))
functools.singledispatch(jax.numpy.tanh)(np.ones(17, np.float32))  # functools
with contextlib.ExitStack() as stack:
    stack.callback(jnp.exp, np.ones(19, np.float32))
    pass  # contextlib
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of packages that is not this interpreter's own, as `pip install --user` has it."""
    folder = tmp_path / "home" / "site-packages"
    for name, text in (("__init__", LIBRARY), ("deep", DEEP), ("__main__", "from library import train\n\ntrain()\n")):
        (folder / "library").mkdir(parents=True, exist_ok=True)
        (folder / "library" / f"{name}.py").write_text(text)
    return folder


def places(folder: Path, *command: str, log: Path) -> list[tuple[str | None, str | None]]:
    """Call site and line of a library, of each compilation of a program; each once."""
    path = os.pathsep.join((str(ROOT), str(folder)))
    run = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), *command]
    done = subprocess.run(run, env=environment(PYTHONPATH=path), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    events: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    found = [(each["call_site"], each["library_site"]) for each in events if each["event"] == "compilation"]
    return list(dict.fromkeys(found))


def line(text: str, what: str) -> int:
    return next(number for number, each in enumerate(text.splitlines(), 1) if what in each)


def test_the_users_line_and_the_innermost_of_a_library(installed: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def user(what: str) -> str:
        return f"{script}:{line(SCRIPT, what)}"

    found = places(installed, str(script), log=tmp_path / "log.jsonl")
    deep = [f"library/deep.py:{line(DEEP, what)}" for what in ("# inner", "# through NumPy")]
    assert found[:2] == [(user("# the library"), each) for each in deep]
    assert set(found[2:]) == {
        (user("# generated"), None), (user("# in a function"), None), (user("# functools"), None),
        (user("with contextlib"), None),
    }  # fmt: skip


def test_an_installed_program_is_the_users(installed: Path, tmp_path: Path) -> None:
    found = places(installed, "-m", "library", log=tmp_path / "log.jsonl")
    assert found == [(f"library/deep.py:{line(DEEP, what)}", None) for what in ("# inner", "# through NumPy")]


def test_a_program_in_an_archive(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("import library\n\nlibrary.train()\n")
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz")
    found = places(installed, str(tmp_path / "app.pyz"), log=tmp_path / "log.jsonl")
    assert found[0] == (f"{tmp_path}/app.pyz/__main__.py:3", f"library/deep.py:{line(DEEP, '# inner')}")


@pytest.mark.parametrize(
    ("filename", "library"),
    [
        ("/home/me/.local/lib/python3.11/site-packages/flax/core/scope.py", "flax/core/scope.py"),
        ("/usr/lib/python3/dist-packages/flax/core/scope.py", "flax/core/scope.py"),
        ("/home/me/.shiv/app_0/site-packages/optax/_src/transform.py", "optax/_src/transform.py"),
        ("/home/me/src/flax/flax/core/scope.py", None),  # editable: the user can change it
        ("/tmp/ipykernel_1234/567.py", None),
        ("<ipython-input-3-0123456789ab>", None),
        ("<stdin>", None),
        ("/home/me/app.pyz/train.py", None),
    ],
)
def test_whose_file(filename: str, library: str | None) -> None:
    assert source_files.in_library(filename) == library
    assert source_files.is_plumbing(filename) == (library is not None)


@pytest.mark.parametrize(
    "filename", ["<string>", "<frozen importlib._bootstrap>", "<@beartype(f) at 0x7f>", os.__file__]
)
def test_nobodys_line(filename: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "train.py", raising=False)
    assert source_files.is_plumbing(filename) and source_files.in_library(filename) is None
