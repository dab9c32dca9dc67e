"""Waits for the inputs of a process, look by look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.facts.inputs import InputState


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The inputs at one look."""

    time: float
    states: Sequence[InputState]
    since: Mapping[str, tuple[float, float]]
    """Since when the program waits most of the time, and the seconds waited until then, by input."""


class Looks:
    """Remembers since when each input has been the bottleneck."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, float]] = {}

    def look(self, states: Iterable[InputState], now: float) -> Waits:
        """Takes in the state of the inputs."""
        known = tuple(states)
        bound = [state for state in known if state.verdict == "input"]
        self._since = {state.name: self._since.get(state.name, (now, state.wait_seconds)) for state in bound}
        return Waits(time=now, states=known, since=self._since)
