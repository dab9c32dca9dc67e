"""Page of causes in the docs: jaxobs beside JAX's own explainer, on the same programs, under each JAX version."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from typing import Any

from tools.environments import ROOT, Row, environment

PAGE = ROOT / "docs" / "causes.md"
DEVICES = 8
SIGNS = {"right": "✓", "wrong": "✗", "silent": "–"}

_HEAD = """\
<!-- Written by `python -m benchmarks.corpus --write`. Do not edit. -->
# Causes: jaxobs compared with JAX's explainer

Each row is a program of [the corpus](../benchmarks/corpus). The program compiles first. Then it changes one thing that
makes it recompile, or nothing. jaxobs is right if it reports that cause once, with the argument's path and both values,
or reports nothing if nothing compiles. The corpus counts compilations separately, at JAX's own compiler entry.

JAX's explainer (`jax_explain_cache_misses`) is right if its log names the kind of difference in its own words, in those
of any release, or logs no miss if nothing compiles. We read its log on each of the versions below. The log has no line
about options of `jit`, layouts, and arrays that were committed or moved to another device. A type in the log shows its
mesh and memory, as `f32[8]({Auto: ('data',)})` and `f32<host>[4]` do; the explainer is right if the types differ. It
calls a function of a cleared cache `never seen`. From JAX 0.11 on, it has no explanation for a static argument.

`python -m benchmarks.corpus --write` runs the corpus on each version, and writes this page.

<!-- vale off -->

"""


def measure(row: Row, devices: int = DEVICES, *, every: int = 1, first: int = 0) -> dict[str, Any]:
    """The corpus under that row's JAX: the report of `benchmarks.corpus.here`.

    Args:
      every: runs only each so-many-th program of the corpus ...
      first: ... from this one on.

    Raises:
      NoInterpreterError: no Python here will do for the row.
      RuntimeError: the corpus did not come to its end.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA", "PYTHON"))}
    chosen = ["--devices", str(devices), "--every", str(every), "--from", str(first)]
    done = subprocess.run(
        [environment(row), "-m", "benchmarks.corpus.here", *chosen],
        env={**kept, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    if not done.stdout.startswith("{"):
        raise RuntimeError(f"The corpus under {row.id} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    if report["errors"]:
        print(done.stderr, file=sys.stderr)
    return report


def page(reports: dict[str, dict[str, Any]]) -> str:
    """The page for reports by column: a summary by cause, then every program.

    Args:
      reports: by the JAX version that heads the column.
    """
    parts = (_environments, _summary, _words, _examples, _programs)
    return _HEAD + "".join(part(reports) for part in parts)


def _environments(reports: dict[str, dict[str, Any]]) -> str:
    pythons = ", ".join(f"{jax} (Python {report['python']})" for jax, report in reports.items())
    return f"{DEVICES} CPU devices; JAX {pythons}.\n\n"


def _summary(reports: dict[str, dict[str, Any]]) -> str:
    rows = [
        "## By cause\n",
        "Programs that jaxobs gets right, then the explainer. A program counts once, however it is jitted, and is\n"
        "right if it is right in each way.\n",
        _heading("cause", reports),
    ]
    causes: dict[str | None, dict[str, dict[str, tuple[bool, bool]]]] = defaultdict(
        lambda: {jax: {} for jax in reports}
    )
    for jax, report in reports.items():
        for verdict in report["verdicts"]:
            programs = causes[verdict["cause"]][jax]
            ours, theirs = programs.get(verdict["name"], (True, True))
            programs[verdict["name"]] = ours and not verdict["problems"], theirs and verdict["explainer"] == "right"
    for cause, by_version in causes.items():
        cells = [_right(list(programs.values())) for programs in by_version.values()]
        rows.append(f"| {'nothing compiles' if cause is None else cause} | {' | '.join(cells)} |")
    everything = [[each for by in causes.values() for each in by[jax].values()] for jax in reports]
    rows.append(f"| **all** | {' | '.join(map(_right, everything))} |")
    return "\n".join(rows) + "\n\n"


def _right(programs: list[tuple[bool, bool]]) -> str:
    """Returns how many programs jaxobs gets right, and how many the explainer."""
    ours, theirs = (sum(each[side] for each in programs) for side in (0, 1))
    return f"{ours}/{len(programs)}, {theirs}/{len(programs)}" if programs else ""


QUOTED = (
    "jit: another static value", "jit: all caches cleared", "jit: another device", "jit: another layout",
    "jit: donation",
)  # fmt: skip
_NO_WORDS = re.compile(r"TRACING CACHE MISS| defined at |previously seen cache keys")
"""Lines of the explainer that say which function missed, and not why."""


def _words(reports: dict[str, dict[str, Any]]) -> str:
    """For programs of the causes that the explainer misses, the first line of its log that says why."""
    rows = ["## The explainer's words\n", "The first line of its log that explains a program:\n"]
    rows += [f"| JAX | {' | '.join(QUOTED)} |", f"|---|{'---|' * len(QUOTED)}"]
    for jax, report in reports.items():
        logs = {verdict["id"]: verdict["explained"].splitlines() for verdict in report["verdicts"]}
        lines = [next((each.strip() for each in logs[name] if not _NO_WORDS.search(each)), "") for name in QUOTED]
        rows.append(f"| {jax} | {' | '.join(f'`{each}`' if each else 'no line' for each in lines)} |")
    return "\n".join(rows) + "\n\n"


EXAMPLES = (
    "jit: the last batch", "jit: another type", "jit: the step of a state", "jit: none became an array",
    "nnx.jit: nnx evaluation mode", "jit: another static value", "method: a method with self static",
    "jit: one leaf of many", "jit: committed to the same device", "jit: another layout", "jit: donation",
    "jit: matmul precision", "jit: a shape and the context", "jit: a closure made again", "jit: all caches cleared",
)  # fmt: skip


def _examples(reports: dict[str, dict[str, Any]]) -> str:
    """The reasons that some of the programs got, as they were printed."""
    jax, report = list(reports.items())[-1]
    reasons = {verdict["id"]: verdict for verdict in report["verdicts"]}
    rows = [f"## Examples of reasons\n\nOn JAX {jax}, with the corpus' function names shortened.\n"]
    for name in EXAMPLES:
        verdict = reasons[name]
        function = verdict["reasons"][0].partition("`: ")[0].partition("` ")[0].strip("`")
        short = verdict["reasons"][0].replace(function, function.rpartition(".")[2], 1)
        short = short.replace("benchmarks.corpus.programs.", "")
        rows.append(f"- **{verdict['cause']}**: {short}")
    return "\n".join(rows) + "\n\n"


def _programs(reports: dict[str, dict[str, Any]]) -> str:
    rows = [
        "## Every program\n",
        "jaxobs, then the explainer: ✓ right, ✗ wrong, – silent; empty if that JAX lacks the feature.\n",
        _heading("cause | way | program", reports, 3),
    ]
    cells: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for jax, report in reports.items():
        for verdict in report["verdicts"]:
            cells[verdict["cause"] or "none", verdict["way"], verdict["name"]][jax] = cell(verdict)
    for key, by_version in cells.items():
        rows.append(f"| {' | '.join(key)} | {' | '.join(by_version.get(jax, '') for jax in reports)} |")
    return "\n".join(rows) + "\n"


def cell(verdict: dict[str, Any]) -> str:
    """Returns the table's cell for one program under one JAX."""
    return f"{'✗' if verdict['problems'] else '✓'} {SIGNS[verdict['explainer']]}"


def _heading(first: str, reports: dict[str, dict[str, Any]], columns: int = 1) -> str:
    return f"| {first} | {' | '.join(reports)} |\n|{'---|' * (columns + len(reports))}"
