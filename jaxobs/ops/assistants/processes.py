"""Facts of a process that runs, or that left an event log."""

import functools
import os
from dataclasses import dataclass

from jaxobs.base.errors import JaxobsError, did_you_mean
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.snapshot import Snapshot
from jaxobs.ops.assistants.answers import RUNNING, NotGivenError, RefusedError, Sources
from jaxobs.views import client, report


@dataclass(frozen=True, slots=True)
class Process:
    """A process with its state and its compilations."""

    name: str
    kind: str
    snapshot: Snapshot
    compilations: tuple[Compilation, ...]
    dropped: int = 0
    """Compilations that are no longer known."""


class SilentError(JaxobsError):
    """A process or a file says nothing; the message says why."""


def read(sources: Sources, name: str) -> list[Process]:
    """Returns the processes behind a name: several, if an event log has several.

    Args:
      name: one of `Sources.processes`; may be empty if there is only one.

    Raises:
      RefusedError: there is no such name, or several and none was given.
      SilentError: it cannot be read.
    """
    known = {each: (kind, where) for each, kind, where in sources.processes()}
    if not known:
        raise NotGivenError("The server was started without --target and without --event-log.")
    if not name and len(known) == 1:
        name = next(iter(known))
    if name not in known:
        said = f"`{name}` is not a process of this server." if name else "Say which process."
        raise RefusedError(f"{said} {did_you_mean(name, known)}Known: {', '.join(known)}.")
    kind, where = known[name]
    try:
        return [_ask(name, where)] if kind == RUNNING else _logged(name, kind, where)
    except JaxobsError as error:
        raise SilentError(str(error).replace(where, name)) from None
    except OSError as error:
        raise SilentError(f"`{name}` cannot be read: {error.strerror or error}.") from None


def one(sources: Sources, name: str, index: int) -> Process:
    """Returns a process by its name, and by JAX's index of it.

    Raises:
      RefusedError: there is none with that index.
    """
    found = read(sources, name)
    chosen = [each for each in found if each.snapshot.process.process_index == index]
    if chosen:
        return chosen[-1]
    indices = sorted({each.snapshot.process.process_index for each in found})
    if len(found) == 1:
        return found[0]
    raise RefusedError(f"`{name}` has no process {index}. Known: {', '.join(map(str, indices[:40]))}.")


def _ask(name: str, url: str) -> Process:
    snapshot = client.fetch_snapshot(url)
    page = client.fetch_events(url, kind=Compilation.kind)
    found = tuple(each for each in page.events if isinstance(each, Compilation))
    return Process(name, RUNNING, snapshot, found, page.dropped)


def _logged(name: str, kind: str, path: str) -> list[Process]:
    status = os.stat(path)
    return list(_read_log(name, kind, path, status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=4)
def _read_log(name: str, kind: str, path: str, changed: int, size: int) -> tuple[Process, ...]:
    """Read once for as long as the file does not change."""
    made = report.read(path).processes.items()
    return tuple(Process(name, kind, at.snapshot(), tuple(each.compilations)) for each, at in made if at is not None)
