"""`python -m benchmarks [NAME ...]`: measures what jaxobs costs, each benchmark in a process of its own."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import pkgutil
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import benchmarks
from benchmarks.harness import Figure

ROOT = Path(__file__).parent.parent
_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "JAXOBS_RAISE_INTERNAL_ERRORS": "1"}


def names() -> list[str]:
    """The benchmarks: the modules of this folder that have a `run`."""
    modules = [info.name for info in pkgutil.iter_modules(benchmarks.__path__) if not info.name.startswith("_")]
    return [name for name in modules if hasattr(importlib.import_module(f"benchmarks.{name}"), "run")]


def measure(name: str, *, quick: bool = False) -> list[Figure]:
    """Runs one benchmark in a fresh process.

    Raises:
      RuntimeError: the benchmark failed; with what it wrote to stderr.
    """
    wanted = getattr(importlib.import_module(f"benchmarks.{name}"), "ENVIRONMENT", {})
    environment = {**os.environ, **_ENVIRONMENT, **wanted}
    command = [sys.executable, "-m", "benchmarks", name, "--here", *(["--quick"] if quick else [])]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"Benchmark `{name}` failed with code {result.returncode}:\n{result.stderr}")
    return [Figure(**each) for each in json.loads(result.stdout)]


def machine() -> dict[str, str]:
    """What the figures are of."""
    import importlib.metadata

    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "jax": importlib.metadata.version("jax"),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def table(figures: list[Figure]) -> str:
    """Figures as the rows of a Markdown table."""
    lines = ["| | measured | bound | |", "|---|---:|---:|---|"]
    for each in figures:
        bound = "" if each.limit is None else f"≤ {_amount(each.limit, each.unit)}"
        lines.append(f"| {each.name} | {_amount(each.value, each.unit)} | {bound} | {each.note} |")
    return "\n".join(lines)


def _amount(value: float, unit: str) -> str:
    digits = 0 if value == int(value) or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    value = round(value, digits) + 0.0  # no minus before a zero
    return f"{value:.{digits}f} {unit}".strip()


def _page(found: Mapping[str, list[Figure]]) -> str:
    """The page of figures, with where they were measured and how to measure them again."""
    about = "".join(f"- {what}: {value}\n" for what, value in machine().items())
    parts = [
        "# What jaxobs costs\n",
        "Written by `python -m benchmarks --markdown docs/performance.md` (`make bench`); do not edit.",
        "What is compared was measured by turns within one run. `make test` holds the bounds.\n",
        about,
    ]
    for name, figures in found.items():
        sentence = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").strip().splitlines()[0]
        title, _, what = sentence.partition(": ")
        parts.append(f"## {title}\n\n{what[:1].upper()}{what[1:]}\n")
        parts.append(table(figures) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Parses the command line, measures, and prints; 1 when `--check` finds a bound that does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(names())} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: less exact")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound does not hold")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures as JSON")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the figures as a page")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"unknown benchmark `{unknown[0]}`; there are {', '.join(names())}")
    if options.here:
        (name,) = options.names
        figures = importlib.import_module(f"benchmarks.{name}").run(options.quick)
        print(json.dumps([dataclasses.asdict(each) for each in figures]))
        return 0
    found = {}
    for name in options.names or names():
        found[name] = measure(name, quick=options.quick)
        for each in found[name]:
            _say(name, each)
    if options.json:
        figures_of = {name: [dataclasses.asdict(each) for each in figures] for name, figures in found.items()}
        options.json.write_text(json.dumps({"machine": machine(), "figures": figures_of}, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(_page(found))
    broken = [each for figures in found.values() for each in figures if not each.holds]
    return 1 if options.check and broken else 0


def _say(benchmark: str, figure: Figure) -> None:
    bound = "" if figure.limit is None else f"  (at most {_amount(figure.limit, figure.unit)})"
    verdict = "" if figure.limit is None else "ok  " if figure.holds else "OVER"
    note = f"  {figure.note}" if figure.note else ""
    print(f"{verdict:4} {benchmark:16} {figure.name}: {_amount(figure.value, figure.unit)}{bound}{note}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
