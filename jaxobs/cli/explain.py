"""`jaxobs explain`: what a process compiled and why, from its endpoint or from an event log."""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from jaxobs.base.errors import JaxobsError, MissingExtraError, did_you_mean
from jaxobs.facts.actions import Action
from jaxobs.facts.compilations import CacheLookup, Compilation
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.events import as_event, plain
from jaxobs.facts.numbers import NonFinite
from jaxobs.facts.process import Manifest
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.verdicts import VERDICTS
from jaxobs.views import client, report, story, terminal
from jaxobs.views.story import Story

HELP = "explain what a process compiled and why, with advice, from its address or event log"

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
    parser.add_argument("--function", metavar="F", help="only this function: its `module.qualname` or the end of it")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object: verdict, findings, loops and functions"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the story; 1 when there are findings.

    Raises:
      JaxobsError: the log cannot be read, nothing answers at the address, or nothing of that name was compiled.
    """
    processes, notes = _read(args.source)
    stories = [story.tell(each, args.function, snapshot) for each, snapshot in processes]
    if args.function is not None and not any(each.functions for each in stories):
        raise _unknown(args.function, [each for each, _ in processes])
    if args.json:
        for note in notes:
            print(f"jaxobs: {note}", file=sys.stderr)
        print(json.dumps(as_json(stories), indent=2, allow_nan=False))
    else:
        _print(stories, args.source, notes, all_of=args.function is not None)
    return FINDINGS if any(finding.ended is None for each in stories for finding in each.findings) else FINE


_Process = tuple[story.ProcessEvents, Snapshot | None]


def _read(source: str) -> tuple[Sequence[_Process], Sequence[str]]:
    """Returns the processes behind an address or in a file, and sentences about what could not be read."""
    if os.path.exists(source) or not _ADDRESS.match(source):
        try:
            made = report.read(source)
        except story.EventLogError as error:
            if os.path.exists(source):
                raise
            raise story.EventLogError(f"{error} Or give the address of a running process, such as 9464.") from None
        notes = [note] if (note := made.damage.sentence()) else []
        return [(each, None if at is None else at.snapshot()) for each, at in made.processes.items()], notes
    return [_ask(client.endpoint_url(source))], []


def _ask(url: str) -> _Process:
    """Returns the state that a running process reports."""
    snapshot = client.fetch_snapshot(url)
    process = story.ProcessEvents(snapshot.process.process_index, snapshot.process.pid)
    process.manifest = Manifest(
        time=snapshot.process.started,
        versions=snapshot.process.versions,
        program=snapshot.process.program,
        process_count=snapshot.process.process_count,
    )
    process.findings = list(snapshot.findings)
    for kind in (Compilation.kind, CacheLookup.kind, OutOfMemory.kind, NonFinite.kind, Error.kind, Action.kind):
        page = client.fetch_events(url, kind=kind)
        process.missing += page.dropped
        for event in page.events:
            process.add(event)
    return process, snapshot


def _unknown(function: str, processes: Sequence[story.ProcessEvents]) -> UnknownFunctionError:
    stories = [story.tell(each) for each in processes]
    names = list(dict.fromkeys(row.name for each in stories for row in each.functions))
    some = ", ".join(f"`{name}`" for name in names[:10]) + (", ..." if len(names) > 10 else "")
    return UnknownFunctionError(
        f"Nothing was compiled for a function `{function}`. {_meant(function, names)}Compiled functions: "
        f"{some or 'none'}. Give one of these, or the end of its name."
    )


def _meant(function: str, names: Sequence[str]) -> str:
    """Compares a name with the end of each one, as many parts of it: `trian_step` is nearer to `train_step` than to
    `__main__.train_step`."""
    parts = function.count(".") + 1
    return did_you_mean(function, [".".join(name.split(".")[-parts:]) for name in names])


# ------------------------------------------------------------------------------------------------------- output


def as_json(stories: Sequence[Story]) -> dict[str, Any]:
    """Returns the stories as one object: findings, loops and functions of all processes, each with its process."""
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
        as_event(finding)
        | {"process_index": each.process.process_index, "pid": each.process.pid}
        | (plain(entries[finding.id]) if finding.id in entries else {"caused_by": None})
        for each in stories
        for entries in [{entry.id: entry for entry in each.verdict.findings}]
        for finding in each.findings
    ]
    loops = [
        {"process_index": each.process.process_index, "pid": each.process.pid, **plain(loop)}
        for each in stories
        if each.snapshot is not None
        for loop in each.snapshot.loops
    ]
    worst = min(stories, key=lambda each: VERDICTS.index(each.verdict.verdict), default=None)
    judged = (
        {name: getattr(worst.verdict, name) for name in ("verdict", "headline", "account")} if worst is not None
        else {"verdict": "ok", "headline": "Nothing to fix: nothing has compiled.", "account": None}
    )  # fmt: skip
    ends = [
        as_event(event)
        for each in stories
        for event in (*each.process.out_of_memory, *each.process.errors, each.process.exit)
        if event is not None
    ]
    body: dict[str, Any] = plain(judged | {"findings": findings, "loops": loops, "functions": functions, "ends": ends})
    return body


def _print(stories: Sequence[Story], source: str, notes: Sequence[str], *, all_of: bool) -> None:
    """Prints with colors on a terminal that has `rich`, plain everywhere else."""
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
