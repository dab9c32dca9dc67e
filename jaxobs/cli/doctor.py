"""`jaxobs doctor`: checks a machine before the job."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from jaxobs.base.errors import JaxobsError
from jaxobs.facts.events import plain
from jaxobs.ops import doctor
from jaxobs.ops.doctor import baselines, deep, xla_dumps
from jaxobs.ops.doctor.machine import Finding, Machine
from jaxobs.views.terminal.text import safe

HELP = "check this machine before the job: versions, flags, devices, cache, limits"

FINE, FINDINGS = 0, 1

_EPILOG = """\
The command does not use an accelerator, unless --deep is given: then it compiles and runs one program there.
Exit codes: 0 fine, 1 there is a warning or worse, 2 usage."""
_MARKS = {"ok": "ok", "info": "info", "warning": "WARNING", "critical": "CRITICAL"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--all", action="store_true", help="also print the checks that found nothing wrong")
    parser.add_argument(
        "--deep", action="store_true",
        help="also compile and run one program on the accelerator with an empty cache, to time a first call",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE",
        help="the output of --json on a good machine; also report the differences",
    )  # fmt: skip
    parser.add_argument(
        "--xla-dump", type=Path, nargs=2, metavar=("A", "B"),
        help="only compare two directories that --xla_dump_to wrote",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Runs the checks; 1 when something must be fixed.

    Raises:
      JaxobsError: a file or directory that was given cannot be read.
    """
    machine = Machine()
    if args.xla_dump:
        if args.deep or args.baseline:
            raise JaxobsError("`--xla-dump A B` only compares two directories: leave the other options out.")
        found, facts = list(xla_dumps.compare(*args.xla_dump)), None
    else:
        before = None if args.baseline is None else baselines.read(args.baseline)
        found = list(doctor.examine(machine))
        facts = baselines.facts(machine)
        if before is not None:
            found += baselines.compare(before, facts)
        if args.deep:
            found += deep.check(machine)
    found = doctor.worst_first(found)
    if args.json:
        body = {"findings": plain(found)} | ({} if facts is None else {"machine": facts})
        print(json.dumps(body, indent=2, allow_nan=False))
    else:
        print(_text(found, everything=args.all or bool(args.xla_dump)))
    return FINDINGS if doctor.has_faults(found) else FINE


def _text(found: Sequence[Finding], *, everything: bool) -> str:
    lines: list[str] = []
    for finding in found:
        # What --deep measures is an answer, not a check that is fine.
        if finding.severity == "ok" and not everything and finding.id != "deep":
            continue
        lines.append(f"{_MARKS[finding.severity]:<9} {safe(finding.title)}   [{finding.id}]")
        lines += [
            f"{'':<9} {label:<9} {safe(text)}"
            for label, text in (("found:", finding.evidence), ("why:", finding.why), ("fix:", finding.fix))
            if text
        ]
        lines.append("")
    counts = {severity: sum(each.severity == severity for each in found) for severity in _MARKS}
    said = ", ".join(f"{count} {severity}" for severity, count in reversed(counts.items()) if count)
    hint = "" if everything or not counts["ok"] else " (--all shows all)"
    return "\n".join([*lines, f"{len(found)} results: {said}{hint}."])
