"""How the inputs of a process stand, look by look."""

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
    """By input that the program waits for most of the time: since when it has, and the seconds waited until then."""


class Looks:
    """Remembers since when each input has been the bottleneck."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, float]] = {}

    def look(self, states: Iterable[InputState], now: float) -> Waits:
        """Takes in how the inputs stand."""
        known = tuple(states)
        bound = [state for state in known if state.verdict == "input"]
        self._since = {state.name: self._since.get(state.name, (now, state.wait_seconds)) for state in bound}
        return Waits(time=now, states=known, since=self._since)
