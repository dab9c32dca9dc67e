"""`import jaxobs`: what it adds to `import jax`, and that it starts nothing."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile

from benchmarks.harness import Figure, quantile

ROUNDS = 9
QUICK_ROUNDS = 5

_PROGRAM = """
import json, sys, threading, time

started = time.perf_counter()
import jax
between = time.perf_counter()
modules = set(sys.modules)
import jaxobs
ended = time.perf_counter()

import jax._src.xla_bridge as bridge
print(json.dumps({
    "jax": between - started,
    "jaxobs": ended - between,
    "modules": len(set(sys.modules) - modules),
    "threads": threading.active_count() - 1,
    "backends": len(bridge._backends),
}))
"""


def run(quick: bool) -> list[Figure]:
    """Milliseconds, in fresh interpreters whose files are in the page cache; threads started and backends woken."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(_PROGRAM)
        script.flush()
        # The first one may compile our modules, and read all from the disk.
        found = [_import(script.name) for _ in range(1 + (QUICK_ROUNDS if quick else ROUNDS))][1:]
    milliseconds = [each["jaxobs"] * 1e3 for each in found]
    return [
        Figure(name="`import jax`", value=statistics.median(each["jax"] for each in found) * 1e3, unit="ms"),
        Figure(
            name="`import jaxobs` adds",
            value=quantile(milliseconds, 0.3),
            unit="ms",
            limit=50.0,
            note=f"median {statistics.median(milliseconds):.1f} ms; {found[0]['modules']:.0f} modules",
        ),
        Figure(name="threads that it starts", value=max(each["threads"] for each in found), unit="", limit=0),
        Figure(name="backends that it wakes", value=max(each["backends"] for each in found), unit="", limit=0),
    ]


def _import(script: str) -> dict[str, float]:
    command = [sys.executable, script]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    found: dict[str, float] = json.loads(result.stdout)
    return found


def _environment() -> dict[str, str]:
    import os
    import pathlib

    root = str(pathlib.Path(__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
