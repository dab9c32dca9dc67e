"""`jaxobs profile`: where the devices' time went, from a trace of JAX's profiler."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from jaxobs.base.errors import MissingExtraError
from jaxobs.facts.events import plain
from jaxobs.profiles import reading
from jaxobs.profiles.reading import Reading
from jaxobs.views import terminal
from jaxobs.views.profile import text

HELP = "show where the devices' time went, from a trace: functions, operations, idle time with its reasons"

FINE = 0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "source", metavar="TRACE|CAPTURE|URL|EVENTLOG",
        help="a file `*.xplane.pb`, or a directory of JAX's profiler or of `jaxobs.capture`",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the profile.

    Raises:
      JaxobsError: there is no trace, or it cannot be read.
    """
    found = reading.read(args.source)
    if args.json:
        for note in found.notes:
            print(f"jaxobs: {note}", file=sys.stderr)
        print(json.dumps(plain(found.profile), indent=2, allow_nan=False))
    else:
        _print(found, args.source, found.notes)
    return FINE


def _print(found: Reading, source: str, notes: Sequence[str]) -> None:
    """With colours on a terminal that has `rich`, plain everywhere else."""
    try:
        console = terminal.make_console("jaxobs profile") if sys.stdout.isatty() else None
    except MissingExtraError:
        console = None
    if console is None:
        surface = terminal.plain_surface(sys.stdout)
        sys.stdout.write(terminal.as_text(text.lay_out(found.profile, source, notes, surface)))
        return
    surface = terminal.console_surface(console)
    console.print(terminal.coloured(text.lay_out(found.profile, source, notes, surface)))
