"""`python -m benchmarks [NAME ...]`: measures what jaxobs costs, and compares with the committed baseline.

Each benchmark runs in a process of its own.
"""

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
from benchmarks import baseline
from benchmarks.baseline import Baseline, Comparison, amount
from benchmarks.harness import Figure

ROOT = Path(__file__).parent.parent
ATTEMPTS = 4
"""With `--check`, a figure that is over or slower is measured so often: a busy machine makes everything slower and
nothing faster, so that a bound holds if it holds once."""
COMPARED_TURNS = 2
"""Measurements of each checkout with `--compare`."""
_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "JAXOBS_RAISE_INTERNAL_ERRORS": "1"}


def names() -> list[str]:
    """The benchmarks: the modules of this folder that have a `run`."""
    modules = [info.name for info in pkgutil.iter_modules(benchmarks.__path__) if not info.name.startswith("_")]
    return [name for name in modules if hasattr(importlib.import_module(f"benchmarks.{name}"), "run")]


def measure(name: str, *, quick: bool = False, root: Path = ROOT) -> list[Figure]:
    """Runs one benchmark in a fresh process, with the code of the checkout `root`.

    Raises:
      RuntimeError: the benchmark failed; with what it wrote to stderr.
    """
    wanted = getattr(importlib.import_module(f"benchmarks.{name}"), "ENVIRONMENT", {})
    environment = {**os.environ, **_ENVIRONMENT, **wanted}
    command = [sys.executable, "-m", "benchmarks", name, "--here", *(["--quick"] if quick else [])]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"Benchmark `{name}` failed with code {result.returncode}:\n{result.stderr}")
    return [Figure(**each) for each in json.loads(result.stdout)]


def machine() -> dict[str, str]:
    """Returns facts about the machine that the figures are of."""
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
    for figure in figures:
        bound = "" if figure.limit is None else f"≤ {amount(figure.limit, figure.unit)}"
        lines.append(f"| {figure.name} | {amount(figure.value, figure.unit)} | {bound} | {figure.note} |")
    return "\n".join(lines)


def _page(found: Mapping[str, list[Figure]]) -> str:
    """The page of figures, with where they were measured and how to measure them again."""
    about = "".join(f"- {what}: {value}\n" for what, value in machine().items())
    parts = [
        "# What jaxobs costs\n",
        "Written by `python -m benchmarks --markdown docs/performance.md` (`make bench`); do not edit.",
        "What is compared was measured by turns within one run. `make bench` holds the bounds.\n",
        about,
    ]
    for name, figures in found.items():
        sentence = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").strip().splitlines()[0]
        title, _, what = sentence.partition(": ")
        parts.append(f"## {title}\n\n{what[:1].upper()}{what[1:]}\n")
        parts.append(table(figures) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Parses the command line, measures, compares and prints; 1 when `--check` finds something over or slower."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(names())} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: less exact")
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"exit with 1 when a bound does not hold or a figure is slower than the baseline: by more than "
        f"{baseline.TOLERANCE:.0%}% (seconds: {baseline.TOLERANCE_OF_SECONDS:.0%}%), in {ATTEMPTS} measurements",
    )
    parser.add_argument(
        "--compare", metavar="DIR", type=Path, help="measure another checkout by turns with this one, and print both"
    )
    parser.add_argument("--update-baseline", action="store_true", help="make these figures the baseline")
    parser.add_argument("--baseline", metavar="FILE", type=Path, default=baseline.PATH, help="(default: %(default)s)")
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
    if options.compare:
        for name in options.names or names():
            _print_both(name, options.compare.resolve(), quick=options.quick)
        return 0
    try:
        before = baseline.read(options.baseline)
    except ValueError as error:
        parser.error(str(error))
    here = machine()
    found = {}
    for name in options.names or names():
        found[name] = _measured(name, before, here, attempts=ATTEMPTS if options.check else 1, quick=options.quick)
    compared = baseline.compare(found, before, here)
    print(*baseline.verdict(compared, before, here), sep="\n", flush=True)
    if options.json:
        options.json.write_text(baseline.text(found, here), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(_page(found), encoding="utf-8")
    if options.update_baseline:
        try:
            options.baseline.write_text(baseline.updated(before, found, here), encoding="utf-8")
        except ValueError as error:
            parser.error(str(error))
    return 1 if options.check and any(_bad(each) for each in compared) else 0


def _bad(each: Comparison) -> bool:
    return not each.figure.holds or bool(baseline.slower([each]))


def _print_both(name: str, other: Path, *, quick: bool) -> None:
    """Prints the figures of another checkout and of this one: the best of turns that alternate."""
    found: dict[Path, dict[str, Figure]] = {other: {}, ROOT: {}}
    for _ in range(COMPARED_TURNS):
        for root, best in found.items():
            for figure in measure(name, quick=quick, root=root):
                best[figure.name] = _better(best.get(figure.name, figure), figure)
    for figure in found[ROOT].values():
        before = found[other].get(figure.name)
        was = "new" if before is None else amount(before.value, before.unit)
        print(f"{name:16} {figure.name}: {was} -> {amount(figure.value, figure.unit)}", flush=True)


def _measured(
    name: str, before: Baseline | None, here: Mapping[str, str], *, attempts: int, quick: bool
) -> list[Figure]:
    """The figures of a benchmark, printed; of several measurements the least counts, and of counts the most."""
    figures: list[Figure] = []
    for _ in range(attempts):
        again = {each.name: each for each in measure(name, quick=quick)}
        figures = [_better(each, again.pop(each.name, each)) for each in figures] + [*again.values()]
        compared = baseline.compare({name: figures}, before, here)
        if not any(map(_bad, compared)):
            break
    for each in compared:
        _say(each)
    return figures


def _better(one: Figure, other: Figure) -> Figure:
    choose = max if one.unit in baseline.COUNTS else min
    return choose(one, other, key=lambda each: each.value)


def _say(each: Comparison) -> None:
    figure, before = each.figure, each.before
    values = [amount(figure.value, figure.unit)]
    if before is not None:
        values.append(f"baseline {amount(before.value, before.unit)}{'' if each.comparable else ', another processor'}")
    if figure.limit is not None:
        values.append(f"at most {amount(figure.limit, figure.unit)}")
    told = "" if figure.limit is None else "ok"
    told = "OVER" if not figure.holds else "SLOW" if baseline.slower([each]) else told
    note = f"  {figure.note}" if figure.note else ""
    print(f"{told:4} {each.benchmark:16} {figure.name}: {' | '.join(values)}{note}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
