"""Gives every reader of files and answers valid ones with one thing changed, and counts what goes wrong.

python -m tools.fuzz_readers --cases 2000 --seed 1          so many for each reader
python -m tools.fuzz_readers --reader explain --cases 500   of one
python -m tools.fuzz_readers --worst                        the worst files of 100 MB, within 500 MiB and 10 s
python -m tools.fuzz_readers --guided 60                    up to four changes at a time, guided by coverage (Atheris)

A real program is run for the originals: its event log, sidecar, run file, cache entries and answers. A reader may read,
or refuse in a sentence (a JaxobsError, exit code 2). Anything else is a failure: another exception, a traceback, JSON
that is none, more than a minute for one case. Exit code 1 where there was one.
"""

from __future__ import annotations

import argparse
import faulthandler
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tools.fuzzing import guided, originals, worst
from tools.fuzzing.changes import Changer
from tools.fuzzing.originals import Originals
from tools.fuzzing.readers import Readers
from tools.trust import page

HANGS_AFTER = 60.0


@dataclass
class Result:
    """Cases that were run, and those that failed."""

    cases: int = 0
    failures: list[str] = field(default_factory=list)
    """A text for each failure: reader, seed, change, and the end of the traceback."""


def fuzz(made: Originals, cases: int, seed: int = 1, only: Sequence[str] = ()) -> Result:
    """Runs `cases` cases for each reader. Changes are the same for the same seed."""
    result = Result()
    for name, case in Readers(made).all().items():
        if only and name not in only:
            continue
        for number in range(cases):
            changer = Changer(f"{seed} {name} {number}")
            result.cases += 1
            try:
                signal.setitimer(signal.ITIMER_REAL, HANGS_AFTER)
                case(changer)
            except Exception as error:
                where = "".join(traceback.format_exception(error)[-3:])
                result.failures.append(
                    f"{name}, case {number}, {changer.told}: {type(error).__name__}: {error!s:.200}\n{where}"
                )
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    return result


def _guided(seconds: int, only: Sequence[str], into: Path | None) -> int:
    rows = []
    for row in guided.every(seconds, only):
        rows.append(row)
        print(row.row(), row.problem, flush=True)
    if into is not None:
        page.put(into, guided.PART, guided.table(rows, seconds))
    return 1 if any(each.problem for each in rows) else 0


def _hangs(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError(f"more than {HANGS_AFTER:g} s")


def main() -> int:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200, help="for each reader (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", action="append", default=[], metavar="NAME")
    parser.add_argument("--worst", action="store_true", help="give each the worst files of 100 MB instead")
    parser.add_argument("--guided", type=int, metavar="SECONDS", help="fuzz each so long, guided by coverage, instead")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the figures of these two into this page")
    args = parser.parse_args()
    if args.guided is not None:
        return _guided(args.guided, args.reader, args.markdown)
    faulthandler.enable()
    signal.signal(signal.SIGALRM, _hangs)
    with tempfile.TemporaryDirectory(prefix="jaxobs-fuzz-") as folder:
        made = originals.make(Path(folder))
        if args.worst:
            code = 0
            for problem in worst.problems(made, only=args.reader, into=args.markdown):
                code = 1
                print(problem, flush=True)
            return code
        result = fuzz(made, args.cases, args.seed, args.reader)
    print(*result.failures, sep="\n")
    print(f"{result.cases:,} cases, {len(result.failures)} failures, seed {args.seed}")
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
