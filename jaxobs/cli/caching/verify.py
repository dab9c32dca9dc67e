"""`jaxobs cache verify`: runs a command twice in a fresh cache, and says whether the second start really hits."""

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jaxobs.base import config
from jaxobs.base.errors import JaxobsError
from jaxobs.compile_cache import events, trial, verdicts
from jaxobs.compile_cache.comparison import COLD, WARM, Comparison
from jaxobs.compile_cache.events import Observation
from jaxobs.compile_cache.trial import Run
from jaxobs.session.termination import ended_by_signals

HELP = "run a command twice with a new cache, and report whether the second start hits"

OUTPUT_LINES = 20
OUTPUT_BYTES = 2**16

_EPILOG = """\
examples:
  jaxobs cache verify -- python train.py --steps 3
  jaxobs cache verify --ignore too_fast --timeout 600 -- torchrun --nproc-per-node 2 train.py
  JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 jaxobs cache verify -- ./start.sh

The command runs unchanged, twice, with its input closed. JAX_COMPILATION_CACHE_DIR names an empty directory; all other
settings of JAX are those of the environment. Every Python that it starts is observed, unless it ignores PYTHONPATH.
Exit codes: 0 the warm start hits, 1 it does not or the command failed, 2 usage."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the options; the command is taken apart by `parse`."""
    parser.usage = "jaxobs cache verify [options] -- COMMAND [ARGS]"
    parser.epilog = _EPILOG
    parser.add_argument("--timeout", type=_positive, metavar="SECONDS", help="end a run that takes longer")
    parser.add_argument(
        "--ignore", action="append", default=[], choices=verdicts.REASONS, metavar="REASON",
        help="a reason that does not count as a failure; repeatable: " + ", ".join(verdicts.REASONS),
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="hide the command's output, unless it fails")
    parser.add_argument("--keep", action="store_true", help="keep the cache and the observations, and print their path")
    parser.add_argument("--json", action="store_true", help="print one JSON object; the command then prints to stderr")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the options up to `--`; what follows is the command."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    if end == len(words) and (unknown := parser.parse_known_args(words)[1]):
        hint = shlex.join(unknown)
        parser.error(f"unknown: {' '.join(unknown)}. Put the command after `--`: jaxobs cache verify -- {hint}")
    args = parser.parse_args(words[:end])
    args.command = words[end + 1 :]
    if not args.command:
        parser.error("name a command after `--`: jaxobs cache verify -- python train.py")
    return args


def run(args: argparse.Namespace) -> int:
    """Runs the command; 1 when a function of the program was recompiled, or the command failed.

    Raises:
      JaxobsError: the command cannot be started, or jaxobs is switched off in the environment.
    """
    if config.disabled():
        raise JaxobsError("`JAXOBS_DISABLED` is set, so nothing can be observed. Unset it for this command.")
    folder = Path(tempfile.mkdtemp(prefix="jaxobs-verify-"))
    try:
        with ended_by_signals():
            return _verify(args, folder)
    finally:
        if args.keep:
            _say(f"kept: {folder} (cache/, cold/, warm/)")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _verify(args: argparse.Namespace, folder: Path) -> int:
    cache = folder / "cache"
    comparison = Comparison(command=args.command, ignored=args.ignore)
    for name in (COLD, WARM):
        done, seen = _run(args, name, folder, cache), events.read(folder / name)
        failure = _failure(name, done, seen, args.timeout)
        comparison.add(name, done, seen, failure)
        if failure is not None:
            break
    else:
        comparison.judge(str(cache))
    print(json.dumps(comparison.as_json(), indent=2) if args.json else "\n".join(comparison.as_text()))
    return 1 if comparison.problems else 0


def _run(args: argparse.Namespace, name: str, folder: Path, cache: Path) -> Run:
    observations = folder / name
    observations.mkdir()
    cache.mkdir(exist_ok=True)
    variables = trial.environment(os.environ, observations, cache)
    _say(f"{name} run: {shlex.join(args.command)}")
    if not args.quiet:
        sys.stdout.flush()
        stdout = sys.stderr.fileno() if args.json else None
        return trial.run(args.command, variables, timeout=args.timeout, stdout=stdout)
    path = folder / f"{name}.output"
    with path.open("wb") as output:
        done = trial.run(args.command, variables, timeout=args.timeout, stdout=output, stderr=output)
    if done.code or done.timed_out:
        with path.open("rb") as written:
            written.seek(max(0, written.seek(0, os.SEEK_END) - OUTPUT_BYTES))
            said = written.read(OUTPUT_BYTES).decode(errors="replace")
        print(*said.splitlines()[-OUTPUT_LINES:], sep="\n", file=sys.stderr)
    return done


def _failure(name: str, done: Run, seen: Observation, timeout: float | None) -> str | None:
    """Returns why there is nothing to compare."""
    if done.timed_out:
        return f"The {name} run did not finish within {timeout:g} s and was stopped. Give it less to do, or more time."
    if done.code:
        how = signal.Signals(done.code - 128).name if 128 < done.code < 160 else f"exit code {done.code}"
        return f"The command failed in the {name} run ({how}), so there is nothing to compare."
    if seen.programs:
        return None
    if seen.errors:
        return f"The {name} run could not be observed: {seen.errors[0]}."
    if seen.processes:
        return f"Nothing was compiled in the {name} run, although JAX was imported. Let the command run a step."
    return (
        f"Nothing was compiled in the {name} run: no Python that imports JAX was found. One that ignores PYTHONPATH "
        "(-I, -E, -S, a new environment, another host) cannot be observed."
    )


def _say(text: str) -> None:
    print(f"jaxobs: {text}", file=sys.stderr, flush=True)
