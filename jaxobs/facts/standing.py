"""How a process is doing, in one event."""

from __future__ import annotations

from dataclasses import dataclass

from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.numbers import WatchedState
from jaxobs.facts.requests import RouteState
from jaxobs.facts.transfers import TransferState
from jaxobs.facts.wall import TimeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a process stands, as far as nothing but its state tells it: the fields of `Snapshot` of the same names.

    For who has the event log only. Receipts of inputs are in the manifest, and not repeated here.
    """

    wall: TimeState | None = None
    loops: tuple[LoopState, ...] = ()
    inputs: tuple[InputState, ...] = ()
    watched: tuple[WatchedState, ...] = ()
    routes: tuple[RouteState, ...] = ()
    transfers: tuple[TransferState, ...] = ()
