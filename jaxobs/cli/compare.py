"""`jaxobs compare`: two runs by their event logs, XLA dumps or profiles; a gate for canaries and upgrades."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxobs.base.errors import MissingExtraError, did_you_mean
from jaxobs.cli import profile
from jaxobs.facts.events import plain
from jaxobs.ops import xla_comparison
from jaxobs.ops.doctor import xla_dumps
from jaxobs.profiles import reading
from jaxobs.views import comparing, terminal
from jaxobs.views.comparing import Comparison, Loops, Measured, Run, Verdict
from jaxobs.views.comparing.runs import FunctionFigures
from jaxobs.views.terminal.lines import Line, Surface

HELP = "compare two runs: what got worse, by how much and why"

FINE, FINDINGS = 0, 1
LOG, DUMPS, PROFILE = "an event log", "a folder of XLA dumps", "a profile"
FOLDER = "a folder without XLA dumps"

GROUPS = ("versions", "flags", "config", "devices", "commit", "program", "host", "programs")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "before",
        metavar="A",
        help="the run before: its event log, a folder that XLA_FLAGS=--xla_dump_to wrote, or a profile",
    )
    parser.add_argument("after", metavar="B", help="the same kind of file or folder, of the run after")
    parser.add_argument("--process", type=int, default=0, metavar="N", help="JAX's index of the process (default: 0)")
    parser.add_argument(
        "--loop", metavar="NAME", help="loop whose steps are compared (default: the one with the most time in A)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--same", metavar="GROUP,...", default="",
        help=f"groups that must be the same: {', '.join(GROUPS)} (`programs`: the lowered functions)",
    )  # fmt: skip
    group = parser.add_argument_group(
        "tolerances", "By how much a figure of B may be worse than that of A: a percentage such as 5%, or an amount."
    )
    for measure in comparing.MEASURES:
        if measure.better:
            group.add_argument(f"--{measure.flag}", metavar="X", help=measure.about)


def run(args: argparse.Namespace) -> int:
    """Prints the comparison; 1 when a tolerance is passed over, or what should be the same is not.

    Raises:
      JaxobsError: a log cannot be read or has no such process or loop, or a tolerance is not one.
    """
    kinds = [_kind(each) for each in (args.before, args.after) if os.path.exists(each)] or [LOG]
    if kinds[0] != kinds[-1] and not {*kinds} <= {PROFILE, FOLDER}:
        raise comparing.NoRunError(
            f"`{args.before}` is {kinds[0]}, and `{args.after}` is {kinds[-1]}. Give two of one kind."
        )
    if kinds[0] != LOG:
        _only_of_logs(args, kinds[0])
        return _dumps(args) if kinds[0] == DUMPS else _profiles(args)
    given = ((each, getattr(args, each.flag.replace("-", "_"), None)) for each in comparing.MEASURES)
    tolerances = {each.name: comparing.parse(each, text) for each, text in given if text is not None}
    wanted = _groups(args.same)
    before, after = comparing.read_run(args.before, args.process), comparing.read_run(args.after, args.process)
    if args.loop is not None and args.loop not in {**before.loops, **after.loops}:
        raise _unknown_loop(args.loop, [*before.loops, *after.loops])
    loops = _loops(before, after, args.loop)
    comparison = comparing.compare(before, after)
    rows = comparing.measured(before, after, tolerances, loops)
    verdict = comparing.judge(comparison, rows, loops)
    known = comparison.groups()
    manifests = None not in (before.manifest, after.manifest)
    unlike = [each for each in wanted if each in known or not manifests]
    if args.json:
        for note in (*before.notes, *after.notes):
            print(f"jaxobs: {note}", file=sys.stderr)
        print(json.dumps(as_json(comparison, rows, unlike, loops, verdict), indent=2, allow_nan=False))
    else:
        _write(lambda surface: comparing.lay_out(comparison, rows, unlike, loops, verdict, surface))
    return FINDINGS if unlike or any(each.passed is False for each in rows) else FINE


def _kind(path: str) -> str:
    if os.path.isdir(path):
        return DUMPS if xla_dumps.is_dump(Path(path)) else FOLDER
    return PROFILE if path.endswith(reading.ENDING) else LOG


def _only_of_logs(args: argparse.Namespace, kind: str) -> None:
    given = [each.flag for each in comparing.MEASURES if getattr(args, each.flag.replace("-", "_"), None) is not None]
    given += ["loop"] * (args.loop is not None) + ["same"] * bool(args.same and kind != DUMPS)
    wrong = [each for each in _groups(args.same) if each not in ("programs", "flags")]
    if given or wrong:
        option = f"--{given[0]}" if given else f"--same {wrong[0]}"
        what, more = (DUMPS, " Folders of XLA dumps have `--same programs,flags`.") if kind == DUMPS else (PROFILE, "")
        raise comparing.ToleranceError(f"`{option}` compares event logs, and each of these is {what}.{more}")


def _dumps(args: argparse.Namespace) -> int:
    found = xla_comparison.compare(args.before, args.after)
    unlike = [each for each in _groups(args.same) if each in found.groups]
    if args.json:
        print(json.dumps(xla_comparison.as_json(args.before, args.after, found, unlike), indent=2, allow_nan=False))
    else:
        _write(lambda surface: xla_comparison.lay_out(args.before, args.after, found, unlike, surface))
    return FINDINGS if unlike else FINE


def _profiles(args: argparse.Namespace) -> int:
    before, after = reading.read(args.before), reading.read(args.after)
    return profile.compare((args.before, args.after), before, after, as_object=args.json)


def _loops(before: Run, after: Run, named: str | None) -> Loops:
    """Returns the named loop; else the one with most time in A, and in B the same, or the one with most time there."""
    if named is not None:
        return named, named
    a, b = before.loop, after.loop
    return a, (a if a in after.loops else b)


def _unknown_loop(name: str, known: Sequence[str]) -> comparing.NoRunError:
    loops = list(dict.fromkeys(known))
    some = ", ".join(f"`{each}`" for each in loops[:10]) + (", ..." if len(loops) > 10 else "")
    return comparing.NoRunError(
        f"Neither run has a loop `{name}`. {did_you_mean(name, loops)}Loops: {some or 'none at all'}."
    )


def _groups(text: str) -> list[str]:
    wanted = [each.strip() for each in text.split(",") if each.strip()]
    for group in wanted:
        if group not in GROUPS:
            meant = did_you_mean(group, GROUPS)
            raise comparing.ToleranceError(f"`--same {group}` is unknown. {meant}Known: {', '.join(GROUPS)}.")
    return wanted


def as_json(
    comparison: Comparison, rows: Sequence[Measured], unlike: Sequence[str], loops: Loops, verdict: Verdict
) -> dict[str, Any]:
    """Returns the comparison as one object."""
    body: dict[str, Any] = plain({
        "verdict": verdict,
        "a": _run(comparison.before),
        "b": _run(comparison.after),
        "loop": loops[0] or loops[1],
        "loops": {"a": loops[0], "b": loops[1]},
        "figures": [
            {
                "name": each.measure.name, "unit": each.measure.unit or None, "a": each.before, "b": each.after,
                "change": each.change, "noise": each.noise, "judged": each.judged,
                "missing": each.measure.missing or None if None in (each.before, each.after) else None,
                "tolerance": each.tolerance.text if each.tolerance else None, "passed": each.passed,
            }
            for each in rows
        ],
        "differences": comparison.differences,
        "unlike": list(unlike),
        "functions": [
            {
                "function": each.name, "same_programs": each.same_programs,
                "a": _figures(each.before), "b": _figures(each.after),
            }
            for each in comparison.functions
        ],
        "passed": not unlike and all(each.passed is not False for each in rows),
    })  # fmt: skip
    return body


def _figures(figures: FunctionFigures | None) -> dict[str, Any] | None:
    return None if figures is None else {**plain(figures), "fingerprints": list(figures.fingerprints)}


def _run(run: Run) -> dict[str, Any]:
    loops = {
        name: {
            "steps": each.steps, "found": each.found, "median_seconds": each.median, "p95_seconds": each.p95,
            "mean_seconds": each.mean, "items": each.items,
        }
        for name, each in run.loops.items()
    }  # fmt: skip
    return {
        "source": run.source, "pid": run.process.pid, "process_index": run.process.process_index,
        "manifest": run.manifest, "memory_peak_bytes": run.memory_peak, "live_array_bytes": run.live_peak,
        "loops": loops,
        "time": run.seconds, "wall_seconds": run.wall_seconds,
        "saved_seconds": run.saved_seconds, "findings": sorted(each.finding for each in run.findings.values()),
        "exit": run.exit, "notes": run.notes,
    }  # fmt: skip


def _write(lay_out: Callable[[Surface], list[Line]]) -> None:
    """Prints with colors on a terminal that has `rich`, plain everywhere else."""
    try:
        console = terminal.make_console("jaxobs compare") if sys.stdout.isatty() else None
    except MissingExtraError:
        console = None
    if console is None:
        sys.stdout.write(terminal.as_text(lay_out(terminal.plain_surface(sys.stdout))))
    else:
        console.print(terminal.coloured(lay_out(terminal.console_surface(console))))
