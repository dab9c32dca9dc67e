"""`jaxobs cache warm`: compiles into the cache what a production run compiled, so that a deployment starts hot."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from jaxobs.base.errors import SettingError
from jaxobs.compile_cache.warming import plan
from jaxobs.compile_cache.warming.plan import Item, Plan
from jaxobs.views.terminal.text import duration, safe

HELP = "compile into a cache what a run recorded in its event log"

_EPILOG = """\
Name the program with --script or --module. Only this program is imported, a script without its
`if __name__ == "__main__":` part; names in the log import nothing. Run this in the environment of production: the same
devices, versions, XLA_FLAGS and cache directory. --dry-run lists the functions in the log; it imports and runs nothing.

  jaxobs cache warm events.jsonl --dry-run
  JAX_COMPILATION_CACHE_DIR=/data/jax-cache jaxobs cache warm events.jsonl --script train.py
  jaxobs cache warm events.jsonl --module train --cache-dir /data/jax-cache --like train_step=train:example_arguments

Exit codes: 0 everything was compiled, 1 something could not be, 2 usage."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("event_log", metavar="EVENTLOG", type=Path, help="event log of the run")
    parser.add_argument("--cache-dir", metavar="DIR", help="the cache directory (default: JAX_COMPILATION_CACHE_DIR)")
    parser.add_argument(
        "--function", action="append", default=[], metavar="NAME",
        help="only this function, such as train_step, train.train_step or with *; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module for the functions; repeatable",
    )
    parser.add_argument("--script", metavar="FILE", help="load this script for functions of `__main__`")
    parser.add_argument(
        "--like", action="append", default=[], metavar="NAME=[MODULE:]MAKER",
        help="a function that returns example arguments of NAME, if the log cannot hold them; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=_jobs, metavar="N", help="functions to compile at once (default: the number of cores, at most 8)"
    )
    parser.add_argument("--dry-run", action="store_true", help="list what would be compiled, and run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 1 to 1024")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Warms the cache; 0 when all of it was, 1 when some could not be.

    Raises:
      JaxobsError: the log cannot be read, there is not a directory for the cache, or a name is unknown.
    """
    makers = dict(_maker(each) for each in args.like)
    if args.dry_run:
        work, directory = plan.outlined(args.event_log, args.function, makers), None
        with _Progress(sys.stdout, len(work.items), silent=args.json) as progress:
            for item in work.items:
                progress.done(item)
    else:
        work, directory = _warm(args, makers)
    if args.json and (note := work.damage.sentence()):
        print(f"jaxobs: {work.log}: {note}", file=sys.stderr)
    print(_as_json(work, directory) if args.json else _summary(work, directory))
    return 0 if not _undone(work) and not work.without else 1


def _warm(args: argparse.Namespace, makers: dict[str, str]) -> tuple[Plan, str]:
    # The program's own jaxobs, if it starts one when it is imported, would write into the log that is read.
    os.environ["JAXOBS_DISABLED"] = "1"
    out = sys.stdout
    # What the program prints while it is imported and traced must not end up among what we print.
    with contextlib.redirect_stdout(sys.stderr):
        plan.use_cache(args.cache_dir)
        work = plan.make(args.event_log, args.function, args.module, args.script, makers)
        directory = plan.use_cache(args.cache_dir)  # once more: a module may have set it otherwise
        with _Progress(out, len(work.items), silent=args.json) as progress:
            plan.carry_out(work, args.jobs, progress.done)
    return work, directory


def _maker(text: str) -> tuple[str, str]:
    function, equals, maker = text.partition("=")
    if not (function and equals and maker):
        raise SettingError(
            f"`--like` is {text!r:.100}, which is not of the form NAME=[MODULE:]MAKER, such as "
            "train_step=train:example_arguments."
        )
    return function, maker


# --------------------------------------------------------------------------------------------------- as text


class _Progress:
    """A line for each signature that is done, and on a terminal with `rich` a bar below them."""

    def __init__(self, out: TextIO, total: int, silent: bool) -> None:
        self._out = out
        self._total = total
        self._silent = silent
        self._count = 0
        self._bar: Any = None

    def __enter__(self) -> _Progress:
        if not self._silent and self._out.isatty() and importlib.util.find_spec("rich") is not None:
            self._bar = _bar(self._out)
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def done(self, item: Item) -> None:
        """Reports one signature."""
        self._count += 1
        if self._bar is not None:
            self._bar.console.print(_line(item), markup=False, highlight=False, soft_wrap=True)
            self._bar.advance(self._task)
        elif not self._silent:
            width = len(str(self._total))
            print(f"{self._count:>{width}} of {self._total}  {_line(item)}", file=self._out, flush=True)


def _bar(out: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(file=out), redirect_stdout=False, redirect_stderr=False)


def _line(item: Item) -> str:
    if item.why_not is not None:
        result = "not warmed"
    elif item.dry:
        result = "can be"
    else:
        result = "compiled" if item.cache == "miss" else "was there"
    took = duration(item.seconds) if result in ("compiled", "was there") else ""
    return f"{result:<10} {took:>8}  {safe(item.function + item.text)}"


def _summary(work: Plan, directory: str | None) -> str:
    undone = _undone(work)
    count = len(work.items) - len(undone)
    compiled = sum(item.cache == "miss" and not item.why_not for item in work.items)
    lines = []
    for function, reason, advice, times in _grouped(undone):
        lines += ["", safe(f"{function}{f' ({times} signatures)' if times > 1 else ''}: {reason}.")]
        lines += [f"  {safe(advice)}"] if advice else []
    for function, times in work.without.items():
        lines += ["", safe(f"{function}: compiled {times} times, and its signature was not recorded.")]
        lines += ["  Record it with this version of jaxobs, from a call with fewer than 20,000 arrays."]
    if note := work.damage.sentence():
        lines += ["", note]
    if directory is None:
        total = f"{count} of {len(work.items)} signatures can be compiled, judging by the log alone."
    else:
        total = (
            f"{count} of {len(work.items)} signatures are in {directory}: "
            f"{compiled} compiled, {count - compiled} were there."
        )
    lines += ["", total]
    if directory is not None and "://" not in directory and not os.path.isabs(directory):
        lines += [f"Production must use exactly the same path, `{directory}`: up to JAX 0.10 it is part of the keys."]
    return "\n".join(lines)


def _grouped(items: list[Item]) -> list[tuple[str, str, str | None, int]]:
    """Function, reason and advice of what was not done, the same ones once, and how often."""
    groups: dict[tuple[str, str, str | None], int] = {}
    for item in items:
        key = (item.function, str(item.why_not).rstrip("."), item.advice)
        groups[key] = groups.get(key, 0) + 1
    return [(*key, times) for key, times in groups.items()]


def _undone(work: Plan) -> list[Item]:
    return [item for item in work.items if item.why_not is not None]


# --------------------------------------------------------------------------------------------------- as JSON


def _as_json(work: Plan, directory: str | None) -> str:
    body = {
        "event_log": str(work.log),
        "cache_dir": directory,
        "signatures": [_entry(item) for item in work.items],
        "not_recorded": work.without,
        "damaged_lines": work.damage.count,
    }
    return json.dumps(body, indent=2)


def _entry(item: Item) -> dict[str, Any]:
    return {
        "function": item.function,
        "signature": item.text or None,
        "warmed": item.why_not is None and not item.dry,
        "cache": item.cache,
        "seconds": round(item.seconds, 3),
        "reason": item.why_not,
        "advice": item.advice,
        "recorded": {"times": item.recorded.times, "compile_seconds": round(item.recorded.seconds, 3)},
    }
