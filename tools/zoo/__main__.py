"""Runs the zoo, with jaxobs and without, and compares what jaxobs says with what is expected.

python -m tools.zoo                              all programs; the environments are made if they are missing
python -m tools.zoo haiku_digits --keep DIR      one, and what its runs leave
python -m tools.zoo --markdown docs/zoo.md       all, and the table
python -m tools.zoo --systems                    all, and what docs/systems shows of them
python -m tools.zoo --plain-every 3              all, and only every third also without jaxobs, as CI does
python -m tools.zoo --first-tries                how often jaxobs was right before it was changed for a program
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jaxobs.base import discovery
from tools import environments
from tools.zoo import comparing, running, systems, table
from tools.zoo.comparing import Result
from tools.zoo.entry import Entry
from tools.zoo.known import EntriesModule


def entries() -> dict[str, Entry]:
    """All programs of the zoo."""
    kinds = (each.ENTRIES for each in discovery.modules(EntriesModule))
    return dict(sorted(pair for kind in kinds for pair in kind.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: jaxobs says of each program what is expected; 1: something differs."""
    known = entries()
    parser = argparse.ArgumentParser(prog="python -m tools.zoo", description="Runs jaxobs on real programs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"programs: {', '.join(known)}; all by default")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table; what does not run keeps its row"
    )
    parser.add_argument(
        "--systems", action="store_true", help="write what was printed into docs/systems, and its table"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep outputs, event logs and metrics in this folder")
    parser.add_argument("--compare", type=Path, metavar="DIR", help="run nothing: compare what `--keep DIR` has left")
    parser.add_argument("--plain-every", type=int, default=1, metavar="N", help="run every Nth without jaxobs, too")
    parser.add_argument("--first-tries", action="store_true", help="run nothing: list the outcomes of first runs")
    parser.add_argument("--jobs", type=int, default=min(len(os.sched_getaffinity(0)), 4), metavar="N")
    given = parser.parse_args(arguments)
    if given.first_tries:
        print(*table.first_tries(known), sep="\n")
        return 0
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(known)}")
    named = {name: entry for name, entry in known.items() if not given.names or name in given.names}
    with tempfile.TemporaryDirectory() as temporary:
        if given.compare is not None:
            chosen = {name: entry for name, entry in named.items() if (given.compare / name).exists()}
            run = functools.partial(_again, folder=given.compare)
        else:
            chosen = named
            for row in dict.fromkeys(entry.row for entry in chosen.values()):
                environments.environment(row)  # one after the other, before several programs ask for it
            both = {*[*chosen][:: given.plain_every]}
            run = functools.partial(_one, folder=given.keep or Path(temporary), both=both)
        results, once = _run(chosen, run, given.jobs, quiet=given.json)
    if given.json:
        print(json.dumps({name: dataclasses.asdict(each) for name, each in results.items()}, indent=1))
    if given.markdown is not None:
        before = given.markdown.read_text() if given.markdown.exists() else ""
        given.markdown.write_text(table.markdown(known, results, before))
    if given.systems:
        systems.write(known, results)
    failed = {name: each for name, each in results.items() if each.differs}
    out = sys.stderr if given.json else sys.stdout
    for name in once:
        print(f"{name}: differed in the first of two runs", file=out)
    for name, each in failed.items():
        print(f"{name}: FAILED", *_lines(each), sep="\n", file=out)
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed", file=out)
    return 1 if failed else 0


def _run(
    chosen: dict[str, Entry], run: Callable[[str, Entry], tuple[Result, float]], jobs: int, *, quiet: bool
) -> tuple[dict[str, Result], list[str]]:
    """The results, and the programs that differed in the first of two runs only."""
    results: dict[str, Result] = {}

    def keep(name: str, result: Result, seconds: float) -> None:
        results[name] = result
        if not quiet:
            print(f"{name}: {_verdict(result)} in {seconds:.0f} s", *_lines(result), sep="\n", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        for name, (result, seconds) in zip(chosen, pool.map(run, chosen, chosen.values()), strict=True):
            keep(name, result, seconds)
    # Programs that run beside each other disturb clocks and what rests on them: what is wrong comes again alone.
    once: list[str] = []
    for name, first in [(name, result) for name, result in results.items() if result.differs]:
        second, seconds = run(name, chosen[name])
        keep(name, comparing.in_both(first, second), seconds)
        if not results[name].differs:
            once.append(name)
    return results, once


def _lines(result: Result) -> list[str]:
    word = {key: "DIFFERS" if key in result.new else "known" for key in result.differences}
    return [
        *(f"  {word[key]}: {key}: {text}" for key, text in result.differences.items()),
        *(f"  GONE: {key}: no longer differs; take it out of the entry's `differs`" for key in result.gone),
    ]


def _one(name: str, entry: Entry, folder: Path, both: Collection[str]) -> tuple[Result, float]:
    began = time.monotonic()
    running.clear(folder / name)
    found = running.run(name, entry, folder / name, plain=name in both)
    return _compared(name, entry, found), time.monotonic() - began


def _again(name: str, entry: Entry, folder: Path) -> tuple[Result, float]:
    return _compared(name, entry, running.left(entry, folder / name)), 0.0


def _compared(name: str, entry: Entry, found: running.Pair) -> Result:
    return comparing.compare(entry, found, systems.untrue(name, found.watched[0].explained))


def _verdict(result: Result) -> str:
    if result.differs:
        return "differs from what is expected"
    return "differs as known" if result.differences else "ok"


if __name__ == "__main__":
    sys.exit(main())
