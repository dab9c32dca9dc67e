"""An event log read back: JSON lines of one process or of many, of this version of jaxobs or of another.

A line that cannot be read costs that line: it is skipped and counted, whether a process was killed inside it, the power
failed or somebody else wrote it. A file without any event is an error: then it is not the file that was meant.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base import json_lines
from jaxobs.base.errors import JaxobsError
from jaxobs.base.files import rotated
from jaxobs.base.json_lines import Damage
from jaxobs.facts.actions import Action
from jaxobs.facts.compilations import CacheLookup, Compilation
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.numbers import NonFinite
from jaxobs.facts.process import Exit, Manifest
from jaxobs.views import client

_LISTS: dict[type[Event], str] = {
    Compilation: "compilations",
    CacheLookup: "lookups",
    Finding: "findings",
    OutOfMemory: "out_of_memory",
    NonFinite: "nonfinite",
    Error: "errors",
    Action: "actions",
}
"""Field of `ProcessEvents` by the kind of event that it lists."""
MOST_PROCESSES = 1000
"""Processes whose events are read: the first ones."""


class EventLogError(JaxobsError, ValueError):
    """A file is not an event log, or cannot be read."""


@dataclass(slots=True, eq=False)
class ProcessEvents:
    """The events of one process, in the order of their lines. Equal to nothing but itself."""

    process_index: int = 0
    pid: int = 0
    manifest: Manifest | None = None
    compilations: list[Compilation] = field(default_factory=list)
    lookups: list[CacheLookup] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    out_of_memory: list[OutOfMemory] = field(default_factory=list)
    nonfinite: list[NonFinite] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    exit: Exit | None = None
    """None where it still runs, or could not speak any more."""
    missing: int = 0
    """Events that the process no longer held when it was asked."""
    newest: int = 0
    """The largest sequence number."""
    manifest_sequence: int = 0
    """Sequence number of the latest manifest."""

    def add(self, event: Event | None) -> None:
        """Keeps an event of a kind that is shown."""
        if isinstance(event, Manifest):
            self.manifest = event
        elif isinstance(event, Exit):
            self.exit = event
        elif event is not None and type(event) in _LISTS:
            getattr(self, _LISTS[type(event)]).append(event)


def events(
    path: str,
    damage: Damage,
    kinds: Sequence[type[Event]] | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    signatures: bool = False,
) -> Iterator[tuple[ProcessEvents, Event | None]]:
    """Each line that is an event: whose it is, and the event. One line is in memory at a time.

    Args:
      damage: counts the lines that are not an event, or none that this version understands.
      kinds: those wanted; of others, and of kinds that this version does not know, the event is `None`.
      progress: called with the bytes read so far, now and then.
      signatures: whether compilations have their recorded signature.

    Raises:
      EventLogError: the file cannot be read, or holds no event.
    """
    wanted = None if kinds is None else {each.kind for each in kinds}
    processes = _Processes()
    try:
        with rotated.opened(path) as file:
            for number, body in json_lines.objects(file, damage, progress):
                name = body.get("event")
                if not isinstance(name, str):
                    damage.add(number, "is JSON, but not an event")
                    continue
                if not signatures:  # what compiles it elsewhere is long, and of little use elsewhere
                    body.pop("signature", None)
                try:
                    event = client.decode_event(body) if wanted is None or name in wanted else None
                except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
                    what = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
                    damage.add(number, f"is a `{name:.40}` that this version of jaxobs does not understand: {what}")
                    continue
                process = processes.of(body)
                if process is None:
                    damage.left_out[f"events of processes after the first {MOST_PROCESSES:,}"] += 1
                    continue
                yield process, event
    except OSError as error:
        what = "is a directory" if os.path.isdir(path) else f"cannot be read: {error.strerror or error}"
        raise EventLogError(f"`{path}` {what}. Give the file that `jaxobs run --event-log FILE` wrote.") from None
    if not processes.count and damage.count:
        raise EventLogError(
            f"`{path}` contains no events: none of its {damage.count:,} lines is an event. {path}:{damage.lines[0]}: "
            f"the line {damage.what}{f': {damage.shown!r}' if damage.shown else ''}. An event log has one JSON object "
            "per line, as `jaxobs run --event-log FILE` writes it; check whether this is the right file."
        )
    if not processes.count:
        raise EventLogError(
            f"`{path}` contains no events. Write one with `jaxobs run --event-log {path} SCRIPT`, or with "
            f"jaxobs.install(event_log={path!r}) before the program compiles anything."
        )


class _Processes:
    """The processes of a log by their numbers, the latest of those that have the same."""

    def __init__(self) -> None:
        self.count, self._latest = 0, dict[tuple[int, int], ProcessEvents]()

    def of(self, body: dict[str, Any]) -> ProcessEvents | None:
        """Returns the process of an event, or None if it is one too many.

        Process ids come back, most often in containers: a manifest begins a new one. A process may write further
        manifests, each with a larger sequence number. Threads write events that happen at the same time in any order,
        so that other events may precede a manifest with a smaller number.
        """
        key, sequence = (_whole(body.get("process_index")), _whole(body.get("pid"))), _whole(body.get("sequence"))
        known = self._latest.get(key)
        before = self._latest.get((0, key[1])) if known is None and key[0] else None
        if before is not None and before.newest == sequence - 1:  # it was reported as number 0 until it joined its job
            known = self._latest[key] = self._latest.pop((0, key[1]))
            known.process_index = key[0]
        begins = body["event"] == Manifest.kind
        if known is None or (begins and sequence <= known.manifest_sequence):
            self._latest.pop(key, None)
            if self.count >= MOST_PROCESSES:
                return None
            self.count += 1
            known = self._latest[key] = ProcessEvents(*key)
        if begins:
            known.manifest_sequence = sequence
        known.newest = max(known.newest, sequence)
        return known


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
