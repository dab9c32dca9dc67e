"""`jaxobs profile`: where the devices' time went, from a trace of JAX's profiler."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxobs.base import private_files
from jaxobs.base.errors import MissingExtraError
from jaxobs.cli.profiling import folded, perfetto, pprof, sources
from jaxobs.facts.events import plain
from jaxobs.ops import captures
from jaxobs.profiles import comparison, reading
from jaxobs.profiles.comparison import Change, ProfileComparison
from jaxobs.profiles.reading import Reading, TraceError
from jaxobs.views import client, terminal
from jaxobs.views.profile import comparison as comparison_text
from jaxobs.views.profile import page, text
from jaxobs.views.terminal import Surface
from jaxobs.views.terminal.lines import Line

HELP = "show where the devices' time went, from a trace: functions, operations, reasons for idle time"

FINE = 0
STDOUT = "-"
TOKEN = "JAXOBS_ACTION_TOKEN"
STEPS = 5
_WAIT_SECONDS = 90.0
_ADDRESS = re.compile(r"\w+://|:?\d+(/|$)|\[?[\w.:-]*\]?:\d+(/|$)")

_FILES: tuple[tuple[str, str, Callable[[Reading, str], Iterable[bytes]]], ...] = (
    ("html", "one self-contained page: timelines, a flame graph by scope, tables", page.page),
    ("pprof", "compressed profile for pprof, Pyroscope and Speedscope", lambda found, _: [pprof.pprof(found.profile)]),
    (
        "perfetto",
        "trace for Perfetto and chrome://tracing: operations, steps, compilations and idle time as tracks",
        lambda found, _: (piece.encode() for piece in perfetto.perfetto(found)),
    ),
    ("folded", "folded stacks, for flame graphs", lambda found, _: [folded.folded(found.profile).encode()]),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "source", metavar="TRACE|CAPTURE|URL|EVENTLOG",
        help="a file *.xplane.pb, a directory of JAX's profiler or of `jaxobs.capture`, an event log that names "
        "captures, or the address of a process, which then traces some steps",
    )  # fmt: skip
    parser.add_argument(
        "--compare", metavar="OTHER", help="show what got slower in OTHER, which may be of any of these kinds"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    files = parser.add_argument_group("files", "Further files to write; - is the standard output.")
    for name, about, _ in _FILES:
        files.add_argument(f"--{name}", metavar="FILE", help=about)
    parser.add_argument(
        "--steps", type=int, default=STEPS, metavar="N", help=f"steps that a running process traces (default {STEPS})"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the profile, or what differs between two, and writes the files that are asked for.

    Raises:
      JaxobsError: there is no trace, it cannot be read, or the process does not take one.
    """
    wanted = [(path, write) for name, _, write in _FILES if (path := getattr(args, name)) is not None]
    if args.compare is not None and wanted:
        raise TraceError("`--compare` shows two profiles, and a file holds one. Write the files without `--compare`.")
    if [path for path, _ in wanted].count(STDOUT) + args.json > 1:
        raise TraceError("Only one thing can go to the standard output. Name a file for the others.")
    found = _read(args.source, args.steps)
    for path, write in wanted:
        _write(path, write(found, args.source))
    if args.compare is not None:
        return compare((args.source, args.compare), found, _read(args.compare, args.steps), as_object=args.json)
    if STDOUT in [path for path, _ in wanted]:
        _tell(found.notes)
    elif args.json:
        _tell(found.notes)
        print(json.dumps(plain(found.profile), indent=2, allow_nan=False))
    else:
        _print(lambda surface: text.lay_out(found.profile, args.source, found.notes, surface))
    return FINE


def _write(path: str, pieces: Iterable[bytes]) -> None:
    """Writes a file whole or not at all."""
    if path == STDOUT:
        sys.stdout.buffer.writelines(pieces)
        return
    try:
        private_files.write_whole(path, pieces)
    except OSError as error:
        raise TraceError(f"`{path}` cannot be written: {error.strerror or error}. Name another file.") from None


def compare(names: tuple[str, str], before: Reading, after: Reading, *, as_object: bool) -> int:
    """Prints what differs between two profiles, given what the person called them."""
    compared = comparison.compare(before.profile, after.profile)
    notes = (*before.notes, *after.notes)
    if as_object:
        _tell(notes)
        print(json.dumps(as_json(compared), indent=2, allow_nan=False))
    else:
        _print(lambda surface: comparison_text.lay_out(compared, names, notes, surface))
    return FINE


def as_json(compared: ProfileComparison) -> dict[str, Any]:
    """Returns a comparison as one object. Times are seconds, `per` one step, call or trace."""

    def rows(changes: Sequence[Change]) -> list[dict[str, Any]]:
        return [
            {"name": each.name, "a": each.before, "b": each.after, "change": each.seconds}
            | ({"category": each.category} if each.category is not None else {})
            for each in changes
        ]

    [window], [device] = rows([compared.window]), rows([compared.device])
    body: dict[str, Any] = plain({
        "headline": comparison_text.headline(compared),
        "per": compared.per,
        "window_seconds": window,
        "device_seconds": device,
        "idle": rows(compared.idle),
        "functions": rows(compared.functions),
        "scopes": rows(compared.scopes),
        "operations": rows(compared.operations),
        "sources": rows(compared.sources),
    })  # fmt: skip
    return body


def _read(source: str, steps: int) -> Reading:
    if os.path.exists(source) or not _ADDRESS.match(source):
        return sources.read_captures(source) if sources.is_event_log(source) else reading.read(source)
    return _captured(client.endpoint_url(source), steps)


def _captured(url: str, steps: int) -> Reading:
    """Has the process behind an address trace some steps, and reads what it wrote."""
    snapshot = client.fetch_snapshot(url)
    if not os.environ.get(TOKEN):
        raise TraceError(
            f"`{url}` traces only for those who know its `action_token`: set `{TOKEN}` to it, and `actions` and "
            f"`action_token` in the process."
        )
    outcome = captures.capture(url, "profile", {"steps": steps}, TOKEN, _WAIT_SECONDS, lambda: False)
    if outcome.path is None:
        raise TraceError(f"`{url}` took no trace. {outcome.detail}")
    if not os.path.exists(outcome.path):
        raise TraceError(
            f"`{url}` wrote its trace to `{outcome.path}` on the machine it runs on. Copy it here, or run "
            f"`jaxobs profile {outcome.path}` there."
        )
    kinds = {each.device: each.device_kind for each in snapshot.devices}
    return reading.read(outcome.path, kinds)


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"jaxobs: {note}", file=sys.stderr)


def _print(lay_out: Callable[[Surface], list[Line]]) -> None:
    """Prints with colors on a terminal that has `rich`, plain everywhere else."""
    try:
        console = terminal.make_console("jaxobs profile") if sys.stdout.isatty() else None
    except MissingExtraError:
        console = None
    if console is None:
        sys.stdout.write(terminal.as_text(lay_out(terminal.plain_surface(sys.stdout))))
    else:
        console.print(terminal.coloured(lay_out(terminal.console_surface(console))))
