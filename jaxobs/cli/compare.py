"""`jaxobs compare`: two runs compared by their event logs; a gate for canaries and upgrades."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from jaxobs.base.errors import MissingExtraError, did_you_mean
from jaxobs.facts.events import plain
from jaxobs.views import comparing, terminal
from jaxobs.views.comparing import Comparison, Loops, Measured, Run, Verdict
from jaxobs.views.comparing.runs import FunctionFigures

HELP = "compare two runs: what got worse, by how much and why"

FINE, FINDINGS = 0, 1

GROUPS = ("versions", "flags", "config", "devices", "commit", "program", "host", "programs")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("before", metavar="A", help="event log of the run before: a file that --event-log wrote")
    parser.add_argument("after", metavar="B", help="event log of the run after")
    parser.add_argument("--process", type=int, default=0, metavar="N", help="JAX's index of the process (default: 0)")
    parser.add_argument(
        "--loop", metavar="NAME", help="loop whose steps are compared (default: the one with the most time in A)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--same", metavar="GROUP,...", default="",
        help=f"what must be the same: {', '.join(GROUPS)} (`programs`: the lowered functions)",
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
        _print(comparison, rows, unlike, loops, verdict)
    return FINDINGS if unlike or any(each.passed is False for each in rows) else FINE


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


def _print(
    comparison: Comparison, rows: Sequence[Measured], unlike: Sequence[str], loops: Loops, verdict: Verdict
) -> None:
    """Prints with colours on a terminal that has `rich`, plain everywhere else."""
    try:
        console = terminal.make_console("jaxobs compare") if sys.stdout.isatty() else None
    except MissingExtraError:
        console = None
    if console is None:
        surface = terminal.plain_surface(sys.stdout)
        sys.stdout.write(terminal.as_text(comparing.lay_out(comparison, rows, unlike, loops, verdict, surface)))
        return
    surface = terminal.console_surface(console)
    console.print(terminal.coloured(comparing.lay_out(comparison, rows, unlike, loops, verdict, surface)))
