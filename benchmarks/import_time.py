"""`import jaxobs`: the time, the threads and the backends that the import adds to `import jax`."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import jaxobs
from benchmarks.harness import Effort, Figure, quantile

ROUNDS = 4

_PROGRAM = """
import json, sys, threading, time

started = time.process_time()
import jax
between = time.process_time()
modules = set(sys.modules)
import jaxobs
ended = time.process_time()

import jax._src.xla_bridge as bridge
print(json.dumps({
    "jax": between - started,
    "jaxobs": ended - between,
    "modules": len(set(sys.modules) - modules),
    "threads": threading.active_count() - 1,
    "backends": len(bridge._backends),
}))
"""


def run(effort: Effort) -> list[Figure]:
    """Milliseconds of CPU, in fresh interpreters whose files are in memory; threads started and backends woken."""
    with tempfile.TemporaryDirectory() as folder:
        script = _installed(folder)
        # The first one reads all from the disk.
        found = [_import(script) for _ in range(1 + effort.rounds(ROUNDS))][1:]
    milliseconds = [each["jaxobs"] * 1e3 for each in found]
    return [
        Figure(
            name="`import jax`",
            value=statistics.median(each["jax"] for each in found) * 1e3,
            unit="ms",
            compared=False,
        ),
        Figure(
            name="`import jaxobs` adds",
            value=quantile(milliseconds, 0.3),
            unit="ms",
            limit=50.0,
            note=f"median {statistics.median(milliseconds):.1f} ms; {found[0]['modules']:.0f} modules",
        ),
        Figure(name="threads that the import starts", value=max(each["threads"] for each in found), unit="", limit=0),
        Figure(name="backends that the import starts", value=max(each["backends"] for each in found), unit="", limit=0),
    ]


def _installed(folder: str) -> str:
    """A copy of the package with its bytecode, as an installer leaves it, and beside it the program to run."""
    shutil.copytree(os.path.dirname(jaxobs.__file__), os.path.join(folder, "jaxobs"))
    compileall.compile_dir(folder, quiet=2)
    script = os.path.join(folder, "program.py")
    with open(script, "w") as file:
        file.write(_PROGRAM)
    return script


def _import(script: str) -> dict[str, float]:
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(result.stdout)
    return found
