"""Reads an event log, of one process or of many, into recordings whose size together is bounded."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.base.errors import JaxobsError, did_you_mean
from jaxobs.base.json_lines import Damage
from jaxobs.views import story
from jaxobs.views.report.recording import MOST_COMPILATIONS, MOST_EAGER, Recording

MOST_PROCESSES = 256
_MOST_NAMED = 12


class UnknownProcessError(JaxobsError, ValueError):
    """A log has no process with that number."""


@dataclass(frozen=True, slots=True)
class Report:
    """Contents of an event log."""

    source: str
    """The file's name, without its folder."""
    recordings: Sequence[Recording]
    """The processes, in the order of their first lines."""
    notes: Sequence[str]
    """Sentences on what was passed over or left out."""
    processes: Mapping[story.ProcessEvents, Recording | None]
    """All processes; of very many only the first have a recording."""
    damage: Damage
    """Lines that were skipped or left out."""


def read(path: str, process: int | None = None, progress: Callable[[int], None] | None = None) -> Report:
    """Reads a log, of one process by its index or pid; raises `EventLogError` or `UnknownProcessError`."""
    recordings: dict[story.ProcessEvents, Recording | None] = {}
    damage = Damage()
    taken = 0
    for owner, event in story.events(path, damage, progress=progress):
        if owner not in recordings:
            # A process is number 0 until it joins its job.
            wanted = process is None or process in (owner.process_index, owner.pid) or owner.process_index == 0
            recordings[owner] = Recording(owner) if wanted and taken < MOST_PROCESSES else None
            taken += recordings[owner] is not None
        owner.add(event)
        recording = recordings[owner]
        if recording is not None:
            recording.take(event)
    found = [each for each in recordings.values() if each is not None and each.first is not None]
    if process is not None:
        # Indices are small, and numbers of processes large: a number that is an index means the index.
        by_index = [each for each in found if each.process_index == process]
        found = by_index or [each for each in found if each.pid == process]
    if not found:
        raise _unknown(path, process, recordings)
    _keep_bounds(found)
    refused = 0 if process is not None else list(recordings.values()).count(None)
    return Report(os.path.basename(path) or path, found, _notes(found, damage, refused), recordings, damage)


def _keep_bounds(recordings: Sequence[Recording]) -> None:
    """All together have the bounds of one, at the cost of those that hold most."""
    kept = [each.compilations for each in recordings] + [each.eager for each in recordings]
    while sum(map(len, kept)) > MOST_COMPILATIONS + MOST_EAGER:
        largest = max(kept, key=len)
        for _ in range(max(1, len(largest) // 8)):
            largest.drop()


def _unknown(
    path: str, process: int | None, owners: Iterable[story.ProcessEvents]
) -> story.EventLogError | UnknownProcessError:
    if process is None:
        return story.EventLogError(
            f"`{path}` contains only events that this version of jaxobs does not know. A newer version wrote it: "
            f"use that one, see `jaxobs --version`."
        )
    found = list(owners)
    known = [f"{each.process_index} (pid {each.pid})" for each in found]
    meant = did_you_mean(str(process), [str(number) for each in found for number in (each.process_index, each.pid)])
    some = ", ".join(known[:_MOST_NAMED]) + (", ..." if len(known) > _MOST_NAMED else "")
    return UnknownProcessError(
        f"`{path}` has no process `{process}`. {meant}It has: {some}. Pass `--process` one of these: the JAX process "
        f"index or the pid."
    )


def _notes(recordings: Sequence[Recording], damage: Damage, refused: int) -> list[str]:
    notes = [note] if (note := damage.sentence()) else []
    unknown = sum(each.unknown for each in recordings)
    if unknown:
        what = "1 event of a kind" if unknown == 1 else f"{unknown:,} events of kinds"
        notes.append(f"Skipped {what} that this version of jaxobs does not know.")
    if refused:
        notes.append(
            f"The log has {refused:,} more processes than the {MOST_PROCESSES} in this report; "
            f"`--process N` shows one of them."
        )
    left = sum(each.compilations.left_out + each.eager.left_out for each in recordings)
    if left:
        notes.append(f"The lists leave out the earliest {left:,} compilations; the figures count them.")
    return notes
