"""`jaxobs compare`: two runs told apart by their event logs; a gate for canaries and upgrades."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from jaxobs import comparing, terminal
from jaxobs.comparing import Comparison, Measured, Run
from jaxobs.errors import MissingExtraError
from jaxobs.facts import plain

HELP = "tell two runs apart by their event logs, and say whether the second keeps given tolerances"

FINE, FINDINGS = 0, 1

GROUPS = ("versions", "flags", "config", "devices", "commit", "program", "host", "programs")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("before", metavar="A", help="event log of the run before: a file that --event-log wrote")
    parser.add_argument("after", metavar="B", help="event log of the run after")
    parser.add_argument("--process", type=int, default=0, metavar="N", help="JAX's index of the process (default: 0)")
    parser.add_argument("--loop", metavar="NAME", help="whose steps are compared (default: that with most time in A)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--same", metavar="GROUP,...", default="",
        help=f"what has to be the same: {', '.join(GROUPS)} (`programs`: what the functions were lowered to)",
    )  # fmt: skip
    group = parser.add_argument_group(
        "tolerances", "By how much a figure of B may be larger than A's: a share such as 5%%, or an amount."
    )
    for each in comparing.MEASURES:
        group.add_argument(f"--max-{each.name}", metavar="X", help=each.about)


def run(args: argparse.Namespace) -> int:
    """Prints the comparison; 1 when a tolerance is passed over, or what was to be the same is not.

    Raises:
      JaxobsError: a log cannot be read or has no such process, or a tolerance is none.
    """
    given = ((each, getattr(args, f"max_{each.name.replace('-', '_')}")) for each in comparing.MEASURES)
    tolerances = {each.name: comparing.parse(each, text) for each, text in given if text is not None}
    wanted = _groups(args.same)
    before, after = comparing.read_run(args.before, args.process), comparing.read_run(args.after, args.process)
    loop = args.loop or before.loop or after.loop
    comparison = comparing.compare(before, after)
    rows = comparing.measured(before, after, tolerances, loop)
    known = comparison.groups()
    manifests = None not in (before.manifest, after.manifest)
    unlike = [each for each in wanted if each in known or not manifests]
    if args.json:
        print(json.dumps(as_json(comparison, rows, unlike, loop), indent=2, allow_nan=False))
    else:
        _print(comparison, rows, unlike, loop)
    return FINDINGS if unlike or any(each.passed is False for each in rows) else FINE


def _groups(text: str) -> list[str]:
    wanted = [each.strip() for each in text.split(",") if each.strip()]
    for each in wanted:
        if each not in GROUPS:
            raise comparing.ToleranceError(f"`--same {each}` is unknown. Known: {', '.join(GROUPS)}.")
    return wanted


def as_json(
    comparison: Comparison, rows: Sequence[Measured], unlike: Sequence[str], loop: str | None
) -> dict[str, Any]:
    """The comparison as one object."""
    body: dict[str, Any] = plain({
        "a": _run(comparison.before),
        "b": _run(comparison.after),
        "loop": loop,
        "figures": [
            {
                "name": each.measure.name, "unit": each.measure.unit or None, "a": each.before, "b": each.after,
                "change": each.change, "tolerance": each.tolerance.text if each.tolerance else None,
                "passed": each.passed,
            }
            for each in rows
        ],
        "differences": comparison.differences,
        "unlike": list(unlike),
        "functions": [
            {"function": each.name, "same_programs": each.same_programs, "a": each.before, "b": each.after}
            for each in comparison.functions
        ],
        "passed": not unlike and all(each.passed is not False for each in rows),
    })  # fmt: skip
    return body


def _run(run: Run) -> dict[str, Any]:
    loops = {
        name: {
            "steps": each.steps, "median_seconds": each.median, "mean_seconds": each.mean, "items": each.items,
        }
        for name, each in run.loops.items()
    }  # fmt: skip
    return {
        "source": run.source, "pid": run.process.pid, "process_index": run.process.process_index,
        "manifest": run.manifest, "memory_peak_bytes": run.memory_peak, "loops": loops,
        "saved_seconds": run.saved_seconds, "findings": sorted(each.finding for each in run.findings.values()),
        "exit": run.exit, "notes": run.notes,
    }  # fmt: skip


def _print(comparison: Comparison, rows: Sequence[Measured], unlike: Sequence[str], loop: str | None) -> None:
    """With colours on a terminal that has `rich`, plain everywhere else."""
    try:
        console = terminal.make_console("jaxobs compare") if sys.stdout.isatty() else None
    except MissingExtraError:
        console = None
    if console is None:
        surface = terminal.plain_surface(sys.stdout)
        sys.stdout.write(terminal.as_text(comparing.lay_out(comparison, rows, unlike, loop, surface)))
        return
    surface = terminal.console_surface(console)
    console.print(terminal.coloured(comparing.lay_out(comparison, rows, unlike, loop, surface)))
