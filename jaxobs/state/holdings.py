"""Devices and what is held on them, as last sampled. Changed under the store's lock."""

from __future__ import annotations

import dataclasses

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.memory import ArrayGroup, DeviceMemory, DeviceState

MOST_HISTORY = 360
RECENT_HISTORY = 120


class Holdings:
    """Devices as JAX and as their drivers see them, the largest groups of live arrays, loaded executables."""

    def __init__(self) -> None:
        self.array_groups: tuple[ArrayGroup, ...] = ()
        self.executables: int | None = None
        self._devices: dict[str, DeviceState] = {}
        self._accelerators: dict[str, tuple[AcceleratorState, ...]] = {}

    def set_device(self, state: DeviceState, memory: DeviceMemory) -> None:
        """A sample of one device; its history keeps the latest ones, and ever fewer of the older."""
        old = self._devices.get(state.device)
        point = (memory.time, memory.in_use_bytes, memory.live_array_bytes)
        history = (*(old.history if old else ()), point)
        if len(history) > MOST_HISTORY:
            history = history[:-RECENT_HISTORY:2] + history[-RECENT_HISTORY:]
        self._devices[state.device] = dataclasses.replace(state, memory=memory, history=history)

    def set_accelerators(self, states: tuple[AcceleratorState, ...], driver: str) -> None:
        """How a driver sees its devices, all of them, in the place of what was known from it."""
        self._accelerators[driver] = states

    def devices(self) -> tuple[DeviceState, ...]:
        """As JAX sees them."""
        return tuple(self._devices.values())

    def accelerators(self) -> tuple[AcceleratorState, ...]:
        """As their drivers see them."""
        return tuple(state for states in self._accelerators.values() for state in states)
