"""Runs the parts of the checks one after another, all of them whatever fails, and sums up at the end.

What only reads the sources runs at one time, and what only computes, beside tests that wait.

Tests that fail are run once more when the part is through, alone. A fault fails both times. What passed only then is
named in the summary: it is a defect of the test, or a rare one of jaxobs, and somebody has to look at it.

python -m tools.checks lint tests                   what `make test` does
python -m tools.checks rest                         what `make test-all` does: the parts that `make test` leaves out
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, STDOUT

from tools import settled

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
Command = tuple[str, ...]

BEYOND = ("versions", "alerts", "lives", "linters", "docs", "browser", "ray", "slow")
"""Markers of what `make test` leaves to `make test-all`, each a part of its own; pyproject.toml has their meaning."""
OWN = ("zoo",)
"""Parts beside them that are commands of their own and no tests."""
OTHERS = "others"
"""The part of all that `make test` leaves out and that can share one run of pytest: each run costs a collection."""
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
PARALLEL = ("--dist", "loadfile", "--no-loadscope-reorder")
WAITING = 1
"""Workers of pytest beyond the number of cores: some tests wait for processes of their own, ..."""
WAITING_BEYOND = 2
"""... and of those that `make test` leaves out most do."""
ALONE = ("alerts",)
"""Parts whose programs have the machine for themselves."""
TOGETHER = ("lint",)
"""Parts whose commands read the sources alone, so that they run at one time."""
MOST_AGAIN = 8
"""Test functions that are run once more: where more of them fail, the reason is not what else the machine does."""


def selection(*parts: str) -> str:
    """Returns the `-m` expression of some parts: each test belongs to the first of its markers."""
    return " or ".join(_selection(part) for part in parts)


def _selection(part: str) -> str:
    if part == "tests":
        return f"not ({' or '.join(BEYOND)})"
    earlier = BEYOND[: BEYOND.index(part)]
    return f"({part} and not ({' or '.join(earlier)}))" if earlier else part


def pytest(*parts: str) -> Command:
    """Returns the one pytest run of some parts."""
    more = WAITING if parts == ("tests",) else WAITING_BEYOND
    parallel = () if set(parts) <= set(ALONE) else (f"-n{min(CORES, 8) + more}", *PARALLEL)
    return (sys.executable, "-m", "pytest", "-m", selection(*parts), *parallel)


def module(*arguments: str) -> Command:
    """A module of this interpreter."""
    return (sys.executable, "-m", *arguments)


def npm(name: str) -> Command:
    """Packages of npm."""
    return (str(ROOT / "tools" / "npm_packages"), name)


PARTS: dict[str, tuple[Command, ...]] = {
    "lint": (  # what takes longest comes first
        module("tools.registries", "--all"),
        module("jaxobs", "generate", "all", "--check"),
        module("tools.docstrings"),
        module("tools.architecture", "--check"),
        (str(BIN / "ruff"), "check", "."),
        (str(BIN / "ruff"), "format", "--check", "."),
        (str(BIN / "lint-imports"),),
        module("tools.alert_suites", "--check"),
        module("tools.commits"),
        module("tools.settings_types", "--check"),
    ),
    "tests": (pytest("tests"),),
    "versions": (
        module("tools.environments", "matrix"),
        module("tools.environments", "xprof"),
        pytest("versions"),
    ),
    "alerts": (pytest("alerts"),),
    "lives": (pytest("lives"),),
    "linters": ((str(ROOT / "tools" / "linters"),), npm("grafana"), pytest("linters")),
    "docs": (pytest("docs"),),
    "browser": (npm("axe-core"), module("tools.pictures", "--check"), pytest("browser")),
    "ray": (module("tools.environments", "ray"), pytest("ray")),
    "slow": (npm("grafana"), module("tools.environments", "trackers"), pytest("slow")),
    "zoo": (module("tools.environments", "zoo"), module("tools.zoo", "--plain-every", "3")),
}


def _together(parts: Iterable[str]) -> tuple[Command, ...]:
    """All that these parts prepare, each once, and one run of pytest for their tests."""
    prepared = [command for part in parts for command in PARTS[part] if "pytest" not in command]
    return (*dict.fromkeys(prepared), pytest(*parts))


PARTS[OTHERS] = _together([part for part in BEYOND if part not in ALONE])
REST = (*ALONE, OTHERS, *OWN)
"""Parts that `make test-all` runs: every one that `make test` leaves out, once."""


@dataclass
class Outcome:
    """Outcome of one part."""

    part: str
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    """Commands that failed and are no pytest run, or ended without a report; and tests."""
    unsteady: list[str] = field(default_factory=list)
    """Tests that failed, and passed when they were run alone."""
    counts: Counter[str] = field(default_factory=Counter)


def run(part: str, folder: Path) -> Outcome:
    """Runs every command of a part."""
    outcome, began = Outcome(part), time.monotonic()
    report = folder / f"{part}.xml"

    def execute(command: Command) -> int:
        more = _reporting(report) if "pytest" in command else ()
        heading = f"\ncheck: {part}: {_shown(command)}\n"
        if part not in TOGETHER:
            print(heading, end="", flush=True)
            return subprocess.run([*command, *more], cwd=ROOT, check=False).returncode
        done = subprocess.run([*command, *more], cwd=ROOT, check=False, stdout=PIPE, stderr=STDOUT)
        print(heading + done.stdout.decode(errors="replace"), end="", flush=True)
        return done.returncode

    with ThreadPoolExecutor(CORES) as pool:
        codes = pool.map(execute, PARTS[part]) if part in TOGETHER else map(execute, PARTS[part])
        for command, code in zip(PARTS[part], codes, strict=True):
            if "pytest" in command and report.exists():
                _read(report, outcome)
                if outcome.failed:
                    _again(command, report, outcome)
                    continue
            if code:
                outcome.failed.append(f"{_shown(command)} (exit code {code})")
                outcome.counts["errors"] += 1
    outcome.seconds = time.monotonic() - began
    return outcome


def _again(command: Command, report: Path, outcome: Outcome) -> None:
    """Runs the tests that failed once more, alone; what passes now counts as passed, and as unsteady."""
    failed = list(dict.fromkeys(outcome.failed))
    functions = {each.partition("[")[0] for each in failed}
    if len(functions) > MOST_AGAIN or any("::" not in each for each in failed):
        return
    again = (
        *(word for word in command if word not in PARALLEL and not word.startswith("-n")),
        "-p",
        "no:xdist",
        *failed,
    )
    print(f"\ncheck: {outcome.part}: once more, alone: {_shown(again)}", flush=True)
    report.unlink()
    subprocess.run([*again, *_reporting(report)], cwd=ROOT, check=False)
    alone = Outcome(outcome.part)
    if report.exists():
        _read(report, alone)
    if alone.counts["passed"] + len(set(alone.failed)) < len(failed):  # not all of them were run
        return
    outcome.unsteady = [each for each in failed if each not in alone.failed]
    outcome.failed = alone.failed
    for word in ("failed", "errors"):
        outcome.counts[word] = alone.counts[word]
    outcome.counts["passed"] += len(outcome.unsteady)


def _reporting(report: Path) -> Command:
    return (f"--junitxml={report}", "-o", "junit_family=xunit1")


def _shown(command: Command) -> str:
    return " ".join([Path(command[0]).name, *(f"'{each}'" if " " in each else each for each in command[1:])])


def _read(report: Path, outcome: Outcome) -> None:
    """Counts a JUnit report as pytest's closing line does."""
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        where = f"{case.get('file')}::{case.get('name')}"
        for tag, word in (("failure", "failed"), ("error", "errors")):
            if tag in kinds:
                outcome.counts[word] += 1
                outcome.failed.append(where)
        if not kinds & {"failure", "error"}:
            outcome.counts["skipped" if "skipped" in kinds else "passed"] += 1


def summary(outcomes: list[Outcome], left_out: list[str], seconds: float) -> str:
    """A line for each part with what failed in it, and one for all in the form of pytest's."""
    lines = ["", "check: summary"]
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total += outcome.counts
        counts = f" ({_counted(outcome.counts)})" if outcome.counts else ""
        lines.append(
            f"  {outcome.part:10} {'FAILED' if outcome.failed else 'passed'} in {outcome.seconds:.0f} s{counts}"
        )
        lines += [f"      {failure}" for failure in outcome.failed]
        lines += [f"      failed, and passed alone: {test}" for test in outcome.unsteady]
    lines += [f"  {part:10} not run" for part in left_out]
    changed = [test for test in settled.RESTS_ON if not settled.holds(test)]
    if changed and not os.environ.get("REPLAY") and OTHERS in {each.part for each in outcomes}:
        lines += [
            "  These ran for minutes since a file that they rest on has changed: `python -m tools.settled` notes it.",
            *(f"      {test}" for test in changed),
        ]
    closing = f" {_counted(total) or 'no tests ran'} in {seconds:.2f}s ({int(seconds // 60)} min) "
    return "\n".join([*lines, closing.center(100, "=")])


def _counted(counts: Counter[str]) -> str:
    words = {"failed": "failed", "passed": "passed", "skipped": "skipped", "errors": "error"}
    return ", ".join(
        f"{counts[word]} {one if counts[word] == 1 else word}" for word, one in words.items() if counts[word]
    )


def main(arguments: list[str] | None = None) -> int:
    """Runs the parts that are named. Exit code 0: all passed; 1: something failed; 130: interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.checks", description="Runs parts of the checks.")
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "rest"], metavar="PART", help=f"rest, {', '.join(PARTS)}")
    named = parser.parse_args(arguments).parts
    parts = list(dict.fromkeys(part for name in named for part in (REST if name == "rest" else (name,))))
    outcomes: list[Outcome] = []
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for part in parts:
                outcomes.append(run(part, Path(folder)))
    except KeyboardInterrupt:
        done = {each.part for each in outcomes}
        print(summary(outcomes, [part for part in parts if part not in done], time.monotonic() - began))
        return 130
    print(summary(outcomes, [], time.monotonic() - began), flush=True)
    return 1 if any(each.failed for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
