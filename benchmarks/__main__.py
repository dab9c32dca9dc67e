"""`python -m benchmarks [NAME ...]`: measures what jaxobs costs, and compares with the committed baseline.

Each benchmark runs in a process of its own, and measures until its bounds are settled. For exact figures, and to write
docs/performance.md and the baseline anew on a machine that has nothing else to do:

    python -m benchmarks --thorough --markdown docs/performance.md --update-baseline
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
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import benchmarks
from benchmarks import baseline
from benchmarks.baseline import Baseline, Comparison, amount, within
from benchmarks.harness import LONGER, QUICK, THOROUGH, USUAL, Effort, Figure

ROOT = Path(__file__).parent.parent
AGAIN = (LONGER, LONGER)
"""With `--check`, how a benchmark is measured again as long as a figure is over, slower or not sure: a busy machine
makes everything slower and nothing faster, so that a bound holds if it holds once."""
UNSURE = 3
"""Exit code if nothing is over or slower, and a bound is not settled."""
COMPARED_TURNS = 2
"""Measurements of each checkout with `--compare`."""
_EFFORTS = {USUAL: (), QUICK: ("--quick",), LONGER: ("--longer",), THOROUGH: ("--thorough",)}
_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "JAXOBS_RAISE_INTERNAL_ERRORS": "1"}


def names() -> list[str]:
    """The benchmarks: the modules of this folder that have a `run`."""
    modules = [info.name for info in pkgutil.iter_modules(benchmarks.__path__) if not info.name.startswith("_")]
    return [name for name in modules if hasattr(importlib.import_module(f"benchmarks.{name}"), "run")]


def measure(name: str, effort: Effort = USUAL, root: Path = ROOT) -> list[Figure]:
    """Runs one benchmark in a fresh process, with the code of the checkout `root`.

    Raises:
      RuntimeError: the benchmark failed; with what it wrote to stderr.
    """
    wanted = getattr(importlib.import_module(f"benchmarks.{name}"), "ENVIRONMENT", {})
    environment = {**os.environ, **_ENVIRONMENT, **wanted}
    command = [sys.executable, "-m", "benchmarks", name, "--here", *_EFFORTS[effort]]
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
        notes = "; ".join(filter(None, (within(figure), figure.note)))
        lines.append(f"| {figure.name} | {amount(figure.value, figure.unit)} | {bound} | {notes} |")
    return "\n".join(lines)


def _page(found: Mapping[str, list[Figure]]) -> str:
    """The page of figures, with where they were measured and how to measure them again."""
    about = "".join(f"- {what}: {value}\n" for what, value in machine().items())
    parts = [
        "# What jaxobs costs\n",
        "Written by `python -m benchmarks --thorough --markdown docs/performance.md`; do not edit.",
        "Each comparison alternates between its sides within one run. `make bench` checks the bounds.\n",
        about,
    ]
    for name, figures in found.items():
        sentence = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").strip().splitlines()[0]
        title, _, what = sentence.partition(": ")
        parts.append(f"## {title}\n\n{what[:1].upper()}{what[1:]}\n")
        parts.append(table(figures) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Parses the command line, measures, compares and prints.

    With `--check`, 1 if something is over or slower, or else 3 if a bound is not settled.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(names())} (default: all)")
    parser.set_defaults(effort=USUAL)
    for effort, about in (
        (QUICK, "a quarter of the rounds: less exact"),
        (LONGER, argparse.SUPPRESS),
        (THOROUGH, "five times the rounds, settled or not: exact figures"),
    ):
        parser.add_argument(*_EFFORTS[effort], action="store_const", const=effort, dest="effort", help=about)
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"exit with 1 when a bound does not hold or a figure is slower than the baseline: by more than "
        f"{baseline.TOLERANCE:.0%}% (seconds: {baseline.TOLERANCE_OF_SECONDS:.0%}%), and when it is measured again "
        f"for longer, too; with {UNSURE} if a bound isn't settled then",
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
        figures = importlib.import_module(f"benchmarks.{name}").run(options.effort)
        print(json.dumps([dataclasses.asdict(each) for each in figures]))
        return 0
    if options.compare:
        for name in options.names or names():
            _print_both(name, options.compare.resolve(), options.effort)
        return 0
    try:
        before = baseline.read(options.baseline)
    except ValueError as error:
        parser.error(str(error))
    here = machine()
    found = {}
    for name in options.names or names():
        found[name] = _measured(name, before, here, [options.effort, *(AGAIN if options.check else ())])
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
    if not options.check or all(map(_well, compared)):
        return 0
    return UNSURE if all(each.figure.verdict == "unsure" or _well(each) for each in compared) else 1


def _well(each: Comparison) -> bool:
    return each.figure.verdict in ("", "holds") and not baseline.slower([each])


def _print_both(name: str, other: Path, effort: Effort) -> None:
    """Prints the figures of another checkout and of this one: the best of turns that alternate."""
    found: dict[Path, dict[str, Figure]] = {other: {}, ROOT: {}}
    for _ in range(COMPARED_TURNS):
        for root, best in found.items():
            for figure in measure(name, effort, root):
                best[figure.name] = _better(best.get(figure.name, figure), figure)
    for figure in found[ROOT].values():
        before = found[other].get(figure.name)
        was = "new" if before is None else amount(before.value, before.unit)
        print(f"{name:16} {figure.name}: {was} -> {amount(figure.value, figure.unit)}", flush=True)


def _measured(name: str, before: Baseline | None, here: Mapping[str, str], efforts: Sequence[Effort]) -> list[Figure]:
    """The figures of a benchmark, printed: measured with one effort after the other until all is well."""
    figures: list[Figure] = []
    for effort in efforts:
        again = {each.name: each for each in measure(name, effort)}
        figures = [_better(each, again.pop(each.name, each)) for each in figures] + [*again.values()]
        compared = baseline.compare({name: figures}, before, here)
        if all(map(_well, compared)):
            break
    for each in compared:
        _say(each)
    return figures


def _better(one: Figure, other: Figure) -> Figure:
    """The better known of two: the one within its bound, with the narrower interval, the lesser, the larger count."""
    if one.high is not None and one.low is not None and other.high is not None and other.low is not None:
        return min(one, other, key=lambda each: (each.verdict != "holds", (each.high or 0.0) - (each.low or 0.0)))
    choose = max if one.unit in baseline.COUNTS else min
    return choose(one, other, key=lambda each: each.value)


def _say(each: Comparison) -> None:
    figure, before = each.figure, each.before
    values = [amount(figure.value, figure.unit)]
    if before is not None:
        values.append(f"baseline {amount(before.value, before.unit)}{'' if each.comparable else ', another processor'}")
    if figure.limit is not None:
        values.append(f"at most {amount(figure.limit, figure.unit)}")
    told = {"": "", "holds": "ok", "over": "OVER", "unsure": "NOT SURE"}[figure.verdict]
    told = "SLOW" if baseline.slower([each]) and figure.verdict != "over" else told
    note = "".join(f"  {text}" for text in (within(figure), figure.note) if text)
    print(f"{told:8} {each.benchmark:16} {figure.name}: {' | '.join(values)}{note}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
