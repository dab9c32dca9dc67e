"""Measures what works where: JAX on each Python, and the lowest and newest versions of what jaxobs builds on.

python -m tools.versions                                all, as two tables
python -m tools.versions --markdown docs/versions.md    and into the page
python -m tools.versions --packages                     the second table alone
python -m tools.versions --next                         with pre-releases instead: what fails is a warning

The first table has the counts of `tests/versions`, the second the tests of all that imports a package. Exit code 1 if
something fails; with `--next` it is 0, for what fails there is news and no defect yet.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.environments import MATRIX, NEWEST, InstallError, NoInterpreterError, Row, environment
from tools.trust import page

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TESTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("jax", "prometheus-client"): ("exporters/test_exposition.py", "reasons/test_history.py"),
    ("rich", "shtab"): ("views/test_top.py", "views/test_top_views.py", "cli/test_cli.py"),
    ("flax", "optax", "scikit-learn"): ("ops/demo/test_demo.py",),
    ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "opentelemetry-exporter-otlp-proto-grpc",
     "opentelemetry-instrumentation"): ("exporters/test_otlp.py", "exporters/test_otlp_instrument.py"),
    ("nvidia-ml-py",): ("drivers/test_nvml.py",),
    ("grafana-foundation-sdk", "promql-parser", "pydantic", "pyyaml"): (
        "ops/monitoring/test_boards.py", "ops/monitoring/test_site.py", "ops/monitoring/test_openslo.py"),
    ("starlette", "uvicorn", "pydantic", "mcp"): ("ops/test_entrance.py", "ops/agent/test_agent_service.py"),
    ("mcp",): ("ops/assistants/test_serving.py", "ops/assistants/test_tools.py"),
    ("tensorboardX", "wandb", "mlflow-skinny"): ("exporters/test_trackers.py",),
    ("pytest",): ("testing/test_pytest_plugin.py", "testing/test_max_compiles.py"),
}  # fmt: skip
"""Tests under `tests` for packages of pyproject.toml, all of which are named; those of a group are lowest together."""
NEEDED = ("httpx>=0.27", "markdown-it-py>=3", "pytest>=8.3", "pytest-timeout>=2.3", "pytest-xdist>=3.6")
"""Packages that the tests themselves need."""
HERE = "no such Python here"
UNRELEASED = "-"
MOST_SECONDS = 900


def requirements() -> list[str]:
    """Returns what jaxobs and its extras require, as pyproject.toml has it.

    Raises:
      SystemExit: `TESTS` does not name one of them.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    found = sorted({text for text in texts if not text.startswith("jaxobs[")})
    named = {name for names in TESTS for name in names}
    if lacking := {_name(text) for text in found} ^ named:
        raise SystemExit(f"tools/versions.py and pyproject.toml differ in {', '.join(sorted(lacking))}.")
    return found


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]


# ------------------------------------------------------------------------------------------- JAX on each Python


def counted(row: Row) -> tuple[str, bool]:
    """Returns the cell of the first table: whether jaxobs counts right on that JAX and Python, and if that is bad."""
    try:
        python = environment(row)
    except NoInterpreterError:
        return HERE, False
    except InstallError as error:
        said = " ".join(str(error).split())
        return (UNRELEASED, False) if re.search(r"no wheels? with|not satisfy Python", said) else (said[-80:], True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA", "PYTHON"))}
    done = subprocess.run(
        [python, ROOT / "tests" / "versions" / "check_counts.py"], env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=MOST_SECONDS, check=False,
    )  # fmt: skip
    if not done.stdout.startswith("{"):
        return f"**ended with {done.returncode}**", True
    report = json.loads(done.stdout)
    wrong = sum(not each["ok"] for each in report["checks"])
    lacking = [name for name, there in report["capabilities"].items() if not there]
    state = f"**{wrong} of {len(report['checks'])} wrong**" if wrong else f"{len(report['checks'])} hold"
    return state + "".join(f", no `{name}`" for name in lacking), bool(wrong)


def matrix(into: Path | None = None) -> tuple[list[str], bool]:
    """Returns the first table, and whether something in it is bad; each row goes into the page when it is known."""
    lines = ["| JAX | " + " | ".join(f"Python {each}" for each in PYTHONS) + " |", "|---|" + "---|" * len(PYTHONS)]
    bad = False
    for jax in reversed(dict.fromkeys(row.jax for row in MATRIX)):
        cells = []
        for python in PYTHONS:
            if jax == NEWEST and python == "3.11":
                cells.append(UNRELEASED)  # the newest for it is a row of its own
                continue
            cell, is_bad = counted(Row(jax, (python,)))
            print(f"JAX {jax}, Python {python}: {cell}", file=sys.stderr, flush=True)
            cells.append(cell)
            bad |= is_bad
        lines.append(f"| {jax} | " + " | ".join(cells) + " |")
        if into is not None:
            page.put_row(into, "matrix", jax, lines[-1])
    return lines, bad


# ------------------------------------------------------------------------------------------------- dependencies


LOWEST, HIGHEST, NEXT = "lowest", "newest", "next"


def row_of(which: str, packages: Sequence[str]) -> Row:
    """Returns an environment: with the lowest versions of some packages, or with the newest of all."""
    every = ("-e", str(ROOT), *NEEDED)
    if which == LOWEST:
        mine = [each for each in requirements() if _name(each) in packages]
        needed = [each for each in NEEDED if _name(each) not in packages]
        some = ("-e", str(ROOT), *mine, *needed)
        name = f"lowest-{packages[0]}"
        return Row(MATRIX[0].jax, MATRIX[0].pythons, some, name, ("--resolution", "lowest-direct"))
    options = ("--prerelease", "allow") if which == NEXT else ()
    return Row(NEWEST, ("3.14", "3.13", "3.12"), (*every, *requirements()), which, options)


@functools.cache
def versions(python: Path) -> dict[str, str]:
    """Returns the versions that an environment has."""
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    found = json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found.items()}


def tested(python: Path, files: Sequence[str]) -> tuple[str, bool]:
    """Runs tests in that environment; returns how they ended, and whether something failed."""
    command = [str(python), "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
    command += ["-m", "not (versions or linters or alerts or lives or browser)", *(f"tests/{each}" for each in files)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TRACKERS_PYTHON": str(python)}
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
    )
    said = re.findall(r"(\d+) (passed|failed|errors?)\b", done.stdout.rpartition("\n=")[2] + done.stdout[-300:])
    for line in re.findall(r"^(?:FAILED|ERROR) .*$", done.stdout, re.MULTILINE):
        print(f"  {line}", file=sys.stderr, flush=True)
    ended = ", ".join(f"{number} {what}" for number, what in {each[1]: each for each in said}.values())
    return (ended, False) if done.returncode == 0 else (f"**{ended or done.stdout[-200:].strip()}**", True)


def dependencies(of: Sequence[str]) -> Iterator[tuple[str, list[str], bool]]:
    """Yields the rows of the second table: packages, a cell for each set, and whether one is bad."""
    for packages, files in TESTS.items():
        cells, bad = [], False
        for name in of:
            python = environment(row_of(name, packages))
            there = versions(python)
            numbers = ", ".join(there.get(each.lower(), "none") for each in packages)
            cell, is_bad = tested(python, files)
            print(f"{name}: {', '.join(packages)} {numbers}: {cell}", file=sys.stderr, flush=True)
            cells.append(f"{numbers}: {cell}")
            bad |= is_bad
        yield ", ".join(packages), cells, bad


def main() -> int:
    """Measures, prints and, if asked, writes."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.versions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--next", action="store_true", help="with pre-releases of all packages: warns, exit code 0")
    parser.add_argument("--packages", action="store_true", help="the second table alone")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables into this page")
    given = parser.parse_args()
    if given.next:
        return _next()
    lines, bad = ([], False) if given.packages else matrix(given.markdown)
    rows = list(dependencies((LOWEST, HIGHEST)))
    table = ["| packages | lowest | newest |", "|---|---|---|"]
    table += [f"| {packages} | {' | '.join(cells)} |" for packages, cells, _ in rows]
    print(*lines, "", *table, sep="\n")
    if given.markdown is not None:
        page.put(given.markdown, "dependencies", "\n".join(table))
    return 1 if bad or any(is_bad for *_, is_bad in rows) else 0


def _next() -> int:
    """Says what fails with pre-releases, each as a warning."""
    try:
        python = environment(row_of(NEXT, ()))
    except (InstallError, NoInterpreterError) as error:
        print(f"warning: no environment with pre-releases: {error}")
        return 0
    early = [f"{name} {at}" for name, at in sorted(versions(python).items()) if re.search(r"\d(a|b|rc|\.?dev)\d", at)]
    print(f"Pre-releases that the index has: {', '.join(early) or 'none'}.")
    cell, bad = counted(row_of(NEXT, ()))
    for name, cells, is_bad in [("counts", [cell], bad), *dependencies((NEXT,))]:
        print(f"{'warning: ' if is_bad else ''}{name}: {'; '.join(cells)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
