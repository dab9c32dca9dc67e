"""Programs run in processes of their own, and the event logs that they leave."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import tomllib
from typing import Any

from tools.quick_xla import quick
from tools.sentences import refuted


def programs(test: str) -> Any:
    """The table of a test file in `programs.toml` beside it."""
    path = pathlib.Path(test)
    return tomllib.loads(path.with_name("programs.toml").read_text(encoding="utf-8"))[path.stem]


def environment(**variables: str) -> dict[str, str]:
    """As a user has it: none of our test variables, the CPU, quickly compiled for, and what is given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAXOBS_", "XLA_FLAGS"))}
    return kept | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": quick()} | variables


def run(
    program: str, *arguments: object, python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end."""
    return _run(python, "-c", textwrap.dedent(program), *map(str, arguments), **variables)


def run_file(path: pathlib.Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end: `multiprocessing` wants one, to import it in its children."""
    return _run(sys.executable, str(path), **variables)


def _run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment(**variables), capture_output=True, text=True, timeout=120, check=False
    )


def events(path: pathlib.Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The lines of an event log, each of which must be whole."""
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        assert refuted(line) == [], line
    return [line for line in lines if kind in (None, line["event"])]
