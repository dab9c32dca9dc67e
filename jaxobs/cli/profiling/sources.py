"""Inputs of `jaxobs profile`: a trace, a capture, an event log that names captures."""

import os
from pathlib import Path

from jaxobs.base.json_lines import Damage
from jaxobs.facts.actions import Action
from jaxobs.facts.process import Manifest
from jaxobs.profiles import reading
from jaxobs.profiles.reading import Reading, TraceError
from jaxobs.views import story


def is_event_log(path: str) -> bool:
    """Whether a file begins as an event log does, by its content and not by its name."""
    try:
        if not os.path.isfile(path) or path.endswith(reading.ENDING):
            return False
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    return head.lstrip().startswith(b"{") and b'"event"' in head


def read_captures(path: str) -> Reading:
    """Returns the newest trace that a log names and that still exists; raises `EventLogError`, `TraceError`."""
    damage = Damage()
    named: list[Action] = []
    refused: Action | None = None
    kinds: dict[str, str] = {}
    for _, event in story.events(path, damage, (Action, Manifest)):
        if isinstance(event, Action) and event.name == "profile":
            if event.result == "done" and event.path is not None:
                named.append(event)
            else:
                refused = event
        elif isinstance(event, Manifest) and event.platform is not None and len(event.devices) == 1:
            [(kind, count)] = event.devices.items()
            kinds |= {f"{event.platform}:{number}": kind for number in range(count)}
    places = [each.path for each in named if each.path is not None]
    there = [place for place in places if os.path.exists(_beside(path, place))]
    if not places:
        why = f" The last attempt was {refused.result}: {refused.detail}" if refused is not None else ""
        why += f" {damage.sentence()}".rstrip()
        raise TraceError(
            f"`{path}` names no trace: no capture `profile` was made.{why} Capture one with "
            f'`jaxobs.capture("profile")`, or give the address of the running process.'
        )
    if not there:
        raise TraceError(
            f"`{path}` names {len(places)} trace{'s' * (len(places) != 1)}, and none of them is there any more; the "
            f"last one was `{places[-1]}`. Give the directory that it was moved to."
        )
    found = reading.read(_beside(path, there[-1]), kinds)
    notes = [*found.notes, *filter(None, [damage.sentence()])]
    if len(places) > 1:
        notes.append(f"`{path}` names {len(places)} traces. This is `{there[-1]}`: name another to read that.")
    return Reading(found.profile, found.hosts, found.files, tuple(notes))


def _beside(log: str, place: str) -> str:
    """Returns the path of a capture: where it was written, or next to the log, if both were copied here."""
    return place if os.path.exists(place) else str(Path(log).absolute().parent / Path(place).name)
