"""The state of a process, in one event."""

from dataclasses import dataclass

from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.numbers import WatchedState
from jaxobs.facts.requests import RouteState
from jaxobs.facts.transfers import TransferState
from jaxobs.facts.wall import TimeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The state of a process that no other event shows: the fields of `Snapshot` of the same names.

    It is for readers of the event log, which has no snapshots.
    """

    wall: TimeState | None = None
    loops: tuple[LoopState, ...] = ()
    inputs: tuple[InputState, ...] = ()
    watched: tuple[WatchedState, ...] = ()
    routes: tuple[RouteState, ...] = ()
    transfers: tuple[TransferState, ...] = ()
