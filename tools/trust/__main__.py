"""Runs about a hundred programs that are hard on whatever lives in their process, without jaxobs and with it.

python -m tools.trust                              all, with readers and attacks on servers, and a table of what held
python -m tools.trust gevent signal                those with one of these words in their names
python -m tools.trust --full 100,000               100,000 functions and signatures instead of 250, under `start()` and
                                                   `jaxobs run`: by processor time, for hours
python -m tools.trust --markdown docs/trust.md     all, and the figures into the page; what does not run keeps its row;
                                                   README.md quotes three rows
python -m tools.trust --memory 60                  resident memory of busy servers instead, for so many minutes

Each runs plain, under `jaxobs.install()`, `jaxobs.start()` and `jaxobs run`. Standard output, standard error and exit
code have to be the same, times and peak memory within bounds. Exit code 1 if something did not hold.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.trust import memory, page, running, whole
from tools.trust.case import Case
from tools.trust.hosts import concurrency, conditions, jitting, processes
from tools.trust.running import INSTALL, PLAIN, Judged

GROUPS = {
    "Threads, loops and tools": concurrency.CASES,
    "Processes and signals": processes.CASES,
    "Functions and arguments": jitting.CASES,
    "Conditions": conditions.CASES,
}
MANY, FULL = 250, 100_000
README = Path(__file__).resolve().parents[2] / "README.md"
QUOTED = ("gevent first", "a static argument whose repr locks", "descriptors exhausted")
"""Names of the programs that README.md has in a table of its own."""


def chosen(words: Sequence[str] = (), many: int = MANY) -> dict[str, list[Case]]:
    """Returns the cases by group, with the number of functions and signatures filled in."""

    cut = (INSTALL,) if many == FULL else ()

    def filled(text: str) -> str:
        return text.replace("{functions}", f"{many:_}").replace("{signatures}", f"{many:_}")

    cases = {
        group: [
            dataclasses.replace(case, name=filled(case.name).replace("_", ","), source=filled(case.source), without=cut)
            if "{functions}" in case.name or "{signatures}" in case.name
            else case
            for case in cases
        ]
        for group, cases in GROUPS.items()
    }
    return {
        group: [
            case
            for case in cases
            if not words or any(word.lower() in f"{group}: {case.name}".lower() for word in words)
        ]
        for group, cases in cases.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs, prints the table and, if asked, writes the page."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.trust", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="words of names, or of a group's (default: all)")
    parser.add_argument("--full", action="store_true", help=f"{FULL:,} functions and signatures: takes hours")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the figures into this page")
    parser.add_argument("--memory", type=float, metavar="MINUTES", help="measure resident memory instead")
    given = parser.parse_args(arguments)
    if given.memory is not None:
        return memory.main(given.memory, given.markdown)
    if given.full:
        running.MOST_SECONDS = 4 * 3600.0
        running.WALL_SHARE, running.TOGETHER = math.inf, True  # within hours, the machine does other things, too
    groups = chosen(given.words, FULL if given.full else MANY)
    judged: dict[str, list[Judged]] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        for group, coming in [(group, pool.map(_said, cases)) for group, cases in groups.items()]:
            judged[group] = list(coming)
    told = table(judged)
    print(told)
    if given.markdown is not None:
        page.put(given.markdown, "programs", table(judged, page.get(given.markdown, "programs")))
        page.put(README, "trust", quoted(given.markdown))
    if given.words:
        return 1 if any(each.wrong for found in judged.values() for each in found) else 0
    found = list(whole.parts(told))
    print("", *whole.HEAD, *(each.row() for each in found), sep="\n")
    return 0 if all(each.held for each in found) else 1


def _said(case: Case) -> Judged:
    judged = running.judge(case)
    state = f"left out, {judged.impossible}" if judged.impossible else "NOT HELD" if judged.wrong else "held"
    print(f"{case.name}: {state}", *judged.wrong, sep="\n    ", file=sys.stderr, flush=True)
    return judged


def table(judged: dict[str, list[Judged]], before: str = "") -> str:
    """Returns the table of Markdown and the sum above it; what did not run now keeps its row of the table before."""
    rows = {name: line for line in before.splitlines() if (name := _name(line))}
    rows |= {each.case.name: row(each) for found in judged.values() for each in found}
    lines = []
    for group in judged:
        named = [rows[case.name] for case in chosen(many=FULL)[group] + chosen()[group] if case.name in rows]
        lines += [f"| **{group}** | | | | | | |", *dict.fromkeys(named)] if named else []
    held, not_held = (sum(state in line for line in lines) for state in ("| held |", "| **not held**"))
    left_out = sum(line.endswith(" - | - | - | - |") for line in lines)
    here = f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"
    return "\n".join([
        f"{held} of {held + not_held} programs held; {left_out} could not run here. {here}.",
        "",
        "| program | how hard | | processor time | jaxobs adds | peak memory | jaxobs adds |",
        "|---|---|---|---:|---:|---:|---:|",
        *lines,
    ])  # fmt: skip


def quoted(trust: Path) -> str:
    """Returns the head of the page's table and the rows that README.md has, too."""
    lines = page.get(trust, "programs").splitlines()
    return "\n".join(line for line in lines if line.startswith(("| program |", "|---")) or _name(line) in QUOTED)


def _name(line: str) -> str:
    cells = line.split(" | ")
    return cells[0].removeprefix("| ") if len(cells) == 7 and not cells[0].startswith(("| program", "| **")) else ""


def row(judged: Judged) -> str:
    """Returns a program's row of the table."""
    case = judged.case
    if judged.impossible:
        return f"| {case.name} | {case.hard} | {judged.impossible} | - | - | - | - |"
    plain = judged.runs[PLAIN]
    others = [ran for way, ran in judged.runs.items() if way != PLAIN]
    cpu, peak = (max([getattr(each, what) for each in others] or [0]) for what in ("cpu", "peak"))
    state = "**not held**: " + "; ".join(judged.wrong).replace("|", "/").replace("\n", " ") if judged.wrong else "held"
    return (
        f"| {case.name} | {case.hard} | {state} | {plain.cpu:.1f} s | {cpu - plain.cpu:+.1f} s "
        f"| {plain.peak:.0f} MiB | {peak - plain.peak:+.0f} MiB |"
    )


if __name__ == "__main__":
    sys.exit(main())
