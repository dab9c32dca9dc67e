"""The process: what runs here, how it ended, and how jaxobs itself is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from jaxobs.facts.compilations import OpenCompilation
from jaxobs.facts.events import Event
from jaxobs.facts.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Event):
    """The program that was started, and the versions that it runs with."""

    kind: ClassVar[str] = "manifest"

    versions: Mapping[str, str]
    program: str | None = None
    """The script or module that was started."""
    process_count: int = 1
    hostname: str | None = None
    """The machine it runs on."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Variables of XLA, libtpu and NCCL that are set, from an allow-list."""
    config: Mapping[str, str] = field(default_factory=dict)
    """JAX's options with plain values, however they were set."""
    commit: str | None = None
    """The commit of the program's directory; whether files were modified since is unknown."""
    platform: str | None = None
    """JAX's default backend; None until the program has initialized it, when the manifest is recorded again."""
    devices: Mapping[str, int] = field(default_factory=dict)
    """Devices of the default backend in the whole job, by kind."""
    devices_by_process: Mapping[str, int] = field(default_factory=dict)
    """Devices of the default backend by process index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit(Event):
    """The last event of a process that could still record one."""

    kind: ClassVar[str] = "exit"

    reason: str
    """`normal`, `exception` or `signal`."""
    detail: str | None = None
    """The exception's type or the signal's name."""
    code: int | None = None
    """The exit code, if known."""
    report: str | None = None
    """The text file with the last minutes; None if none was written, as at a normal end."""
    compiling: tuple[OpenCompilation, ...] = ()
    """Compilations that had begun and were never finished."""
    standing: Standing | None = None
    """The state of the whole process at its end: in the event log."""


LAST_EXITS = ("normal", "error", "signal", "killed", "out_of_memory")
"""How a process ended: by itself, by an exception or an exit code, by a signal that it noticed, without noticing it
(SIGKILL, power), or because host or device ran out of memory. What `sys.exit` is given is known under `jaxobs run`
alone; elsewhere that is `normal`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """The process that is looked at."""

    pid: int
    hostname: str
    program: str | None
    started: float
    """Time at which jaxobs was first used in the process."""
    process_index: int
    process_count: int
    versions: Mapping[str, str]
    """jaxobs, python, jax, jaxlib, and the plugins that are installed."""
    platform: str | None
    """JAX's default backend; None until the program has initialized it."""
    run_id: str = ""
    """The run that it belongs to: the setting `run_id`, else the address of the job's coordinator; empty for neither.
    Processes with the same one work together."""
    last_exit: str = ""
    """How the process before it at the same place ended, one of `LAST_EXITS`; empty if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalError:
    """A failure of jaxobs itself."""

    since: float
    """Time of the first failure with that name."""
    latest: float | None = None
    """Time of the latest one; None from older versions."""
    text: str
    """Type and message; of the system's errors with number and path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverState:
    """jaxobs about itself."""

    installed: bool
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    """Capabilities that this JAX allows jaxobs; False if a release moved what one needs."""
    internal_errors: Mapping[str, int] = field(default_factory=dict)
    latest_errors: Mapping[str, InternalError] = field(default_factory=dict)
    """The latest internal error, by place."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Items that a bound dropped, by reason."""
    collect_seconds: float | None = None
    """Time that the latest scrape took."""
    notes: tuple[str, ...] = ()
    """Sentences for a person: listeners removed by somebody and put back, another copy of jaxobs, ..."""
