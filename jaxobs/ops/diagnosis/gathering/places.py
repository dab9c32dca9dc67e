"""Where to look, as it was asked for, and as it is read: files by their shortest names that differ."""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jaxobs.base.files import rotated

EVENT_LOG, METRICS_FILE, LOG = "event-log", "metrics-file", "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Where to look: paths and addresses."""

    logs: tuple[str, ...] = ()
    event_logs: tuple[str, ...] = ()
    metrics_files: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    prometheus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file to read."""

    kind: str
    """`event-log`, `metrics-file` or `log`."""
    path: str
    name: str
    """What to call it."""
    year: int
    """For times without one, unless another source says it."""
    modified: float | None = None
    """When it was written last, in seconds since the epoch."""
    problem: str | None = None
    """Why it cannot be read, if that is known already."""
    notes: tuple[str, ...] = ()
    """What was left out of it before."""


def files(inputs: Inputs) -> Iterator[File]:
    """The files among the inputs, each once, in the order in which they are read."""
    names = _names((*inputs.logs, *inputs.event_logs, *inputs.metrics_files))
    event_logs = rotated.without_parts(inputs.event_logs)
    for kind, paths in ((EVENT_LOG, event_logs), (METRICS_FILE, inputs.metrics_files), (LOG, inputs.logs)):
        for path in dict.fromkeys(paths):
            modified = _modified(path)
            year = 1970 if modified is None else time.gmtime(modified).tm_year
            yield File(kind=kind, path=path, name=names[path], year=year, modified=modified)


def _names(paths: Iterable[str]) -> dict[str, str]:
    """What to call files: by as many of the last parts of their paths as differ."""
    unique = list(dict.fromkeys(paths))
    found = {}
    for path in unique:
        parts = path.split(os.sep)
        tails = (os.sep.join(parts[-count:]) for count in range(1, len(parts) + 1))
        others = [each for each in unique if each != path]
        found[path] = next(
            (tail for tail in tails if not any((os.sep + each).endswith(os.sep + tail) for each in others)), path
        )
    return found


def _modified(path: str) -> float | None:
    try:
        modified = os.stat(path).st_mtime
        time.gmtime(modified)
    except (OSError, ValueError, OverflowError):
        return None
    return modified
