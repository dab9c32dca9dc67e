"""`jaxobs explain`: what a process compiled and why, from its endpoint or from an event log."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from jaxobs import client, story, terminal
from jaxobs.errors import JaxobsError, MissingExtraError
from jaxobs.facts import CacheLookup, Compilation, Error, Manifest, NonFinite, OutOfMemory, as_event, plain
from jaxobs.story import Story

HELP = "say what a process compiled and why, with findings and advice; from its address or its event log"

FINE, FINDINGS = 0, 1

_ADDRESS = re.compile(r"\w+://|:?\d+(/|$)|\[?[\w.:-]*\]?:\d+(/|$)")


class UnknownFunctionError(JaxobsError, ValueError):
    """No function of that name was compiled."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "source", metavar="URL|EVENTLOG",
        help="address of the endpoint (9464, localhost:9464, http://host:9464) or a file that --event-log wrote",
    )  # fmt: skip
    parser.add_argument("--function", metavar="F", help="only this one: its `module.qualname` or the end of it")
    parser.add_argument("--json", action="store_true", help="print one JSON object: functions and findings")


def run(args: argparse.Namespace) -> int:
    """Prints the story; 1 when there are findings.

    Raises:
      JaxobsError: the log cannot be read, nothing answers at the address, or nothing of that name was compiled.
    """
    processes, notes = _read(args.source)
    stories = [story.tell(each, args.function) for each in processes]
    if args.function is not None and not any(each.functions for each in stories):
        raise _unknown(args.function, processes)
    if args.json:
        print(json.dumps(as_json(stories), indent=2, allow_nan=False))
    else:
        _print(stories, args.source, notes, all_of=args.function is not None)
    return FINDINGS if any(finding.ended is None for each in stories for finding in each.findings) else FINE


def _read(source: str) -> tuple[Sequence[story.ProcessEvents], list[str]]:
    """The processes behind an address or in a file, and sentences about what could not be read."""
    if os.path.exists(source) or not _ADDRESS.match(source):
        try:
            log = story.read_log(source)
        except story.EventLogError as error:
            if os.path.exists(source):
                raise
            raise story.EventLogError(f"{error} Or give the address of a running process, such as 9464.") from None
        return log.processes, _torn(log.torn)
    return [_ask(client.endpoint_url(source))], []


def _torn(lines: Sequence[int]) -> list[str]:
    if not lines:
        return []
    first = ", ".join(map(str, lines[:5])) + (", ..." if len(lines) > 5 else "")
    return [f"Passed over {len(lines)} half-written {'line' if len(lines) == 1 else 'lines'} (line {first})."]


def _ask(url: str) -> story.ProcessEvents:
    """What a running process tells of itself."""
    snapshot = client.fetch_snapshot(url)
    process = story.ProcessEvents(snapshot.process.process_index, snapshot.process.pid)
    process.manifest = Manifest(
        time=snapshot.process.started,
        versions=snapshot.process.versions,
        program=snapshot.process.program,
        process_count=snapshot.process.process_count,
    )
    process.findings = list(snapshot.findings)
    for kind in (Compilation.kind, CacheLookup.kind, OutOfMemory.kind, NonFinite.kind, Error.kind):
        page = client.fetch_events(url, kind=kind)
        process.missing += page.dropped
        process.compilations += [each for each in page.events if isinstance(each, Compilation)]
        process.lookups += [each for each in page.events if isinstance(each, CacheLookup)]
        process.out_of_memory += [each for each in page.events if isinstance(each, OutOfMemory)]
        process.nonfinite += [each for each in page.events if isinstance(each, NonFinite)]
        process.errors += [each for each in page.events if isinstance(each, Error)]
    return process


def _unknown(function: str, processes: Sequence[story.ProcessEvents]) -> UnknownFunctionError:
    stories = [story.tell(each) for each in processes]
    names = list(dict.fromkeys(row.name for each in stories for row in each.functions))
    some = ", ".join(f"`{name}`" for name in names[:10]) + (", ..." if len(names) > 10 else "")
    return UnknownFunctionError(
        f"Nothing was compiled for a function `{function}`. Compiled were: {some or 'none at all'}. Give one of these, "
        f"or the end of its name."
    )


# ------------------------------------------------------------------------------------------------------- output


def as_json(stories: Sequence[Story]) -> dict[str, Any]:
    """The stories as one object: functions and findings of all processes, each with its process."""
    functions = [
        {
            "process_index": each.process.process_index,
            "pid": each.process.pid,
            "function": row.name,
            "programs": row.programs,
            "seconds": row.seconds,
            "phases": dict(row.phases),
            "causes": dict(row.causes),
            "cache": dict(row.cache),
            "unsaved": [
                {"reason": reason, "count": count, "detail": row.unsaved_detail[reason] or None}
                for reason, count in row.unsaved.most_common()
            ],
            "saved_seconds": row.saved_seconds,
            "lookups": [as_event(lookup) for lookup in row.lookups],
            "recompilations": [as_event(event) for event in row.recompilations],
        }
        for each in stories
        for row in each.functions
    ]
    findings = [
        as_event(finding) | {"process_index": each.process.process_index, "pid": each.process.pid}
        for each in stories
        for finding in each.findings
    ]
    ends = [
        as_event(event)
        for each in stories
        for event in (*each.process.out_of_memory, *each.process.errors, each.process.exit)
        if event is not None
    ]
    body: dict[str, Any] = plain({"functions": functions, "findings": findings, "ends": ends})
    return body


def _print(stories: Sequence[Story], source: str, notes: Sequence[str], *, all_of: bool) -> None:
    """With colours on a terminal that has `rich`, plain everywhere else."""
    try:
        console = terminal.make_console("jaxobs explain") if sys.stdout.isatty() else None
    except MissingExtraError:
        console = None
    if console is None:
        surface = terminal.plain_surface(sys.stdout)
        sys.stdout.write(terminal.as_text(story.lay_out(stories, source, notes, surface, all_of=all_of)))
        return
    surface = terminal.console_surface(console)
    console.print(terminal.coloured(story.lay_out(stories, source, notes, surface, all_of=all_of)))
