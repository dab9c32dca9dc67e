"""Cells run by IPython in a process of its own, and what each of them showed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from helpers.paths import ROOT
from helpers.run_programs import environment

_PROGRAM = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
shell.run_line_magic("colors", "nocolor")
shell.history_manager.enabled = False
shown = []
for cell in json.load(sys.stdin):
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    shown.append({
        "result": repr(result.result),
        "error": None if error is None else type(error).__name__,
        "out": captured.stdout,
        "texts": [each.data["text/plain"] for each in captured.outputs],
        "html": [each.data.get("text/html", "") for each in captured.outputs],
    })
sys.stdout.write("\\n" + json.dumps(shown))
"""


@dataclass(frozen=True)
class Shown:
    """Output of a cell."""

    result: str
    error: str | None
    out: str
    """Printed text, with the text of the result and the traceback."""
    texts: tuple[str, ...]
    """Displayed objects as plain text, without the result."""
    html: tuple[str, ...]


def run(cells: Sequence[str], **variables: str) -> list[Shown]:
    """Runs the cells one after the other, whatever becomes of each."""
    pytest.importorskip("IPython")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM], input=json.dumps(list(cells)), cwd=ROOT,
        env=environment(**({"JAXOBS_RAISE_INTERNAL_ERRORS": "1", "IPYTHONDIR": "/nonexistent"} | variables)),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [
        Shown(each["result"], each["error"], each["out"], tuple(each["texts"]), tuple(each["html"]))
        for each in json.loads(done.stdout.splitlines()[-1])
    ]
