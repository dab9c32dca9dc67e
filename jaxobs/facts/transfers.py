"""Arrays that move between host and devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxobs.facts.events import Event

DIRECTIONS = ("device_to_host", "host_to_device")
"""Directions of a transfer."""


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """Transfers of one line in one direction."""

    site: str
    """`file:line` in the user's code; `<unknown>` if a library does it on its own thread."""
    direction: str
    """Direction of the transfers, one of `DIRECTIONS`."""
    count: int
    """Arrays that were moved. One whose values an earlier read left on the host is not moved again."""
    bytes: int
    """Bytes of these arrays; of an array that is put on several devices whole, as many times."""
    seconds: float = 0.0
    """Time that these transfers blocked the program, without those that had to wait for a computation."""
    waits: int = 0
    """Arrays that were still being computed when they were read."""
    wait_seconds: float = 0.0
    """Time that these arrays blocked the program: for the computation, and for the copy after it."""
    shape: tuple[int, ...] = ()
    """Shape of the latest array."""
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(_Figures, Event):
    """Transfers between host and devices by one line so far: recorded for a new line, when it has grown tenfold, and at
    the end."""

    kind: ClassVar[str] = "transfer"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferState(_Figures):
    """A line of the program that moves arrays between host and devices, in one direction."""

    since: float
    """Time of the first transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackState:
    """An operator of PyTorch that torch_xla ran on the CPU: its arguments are read back, and its results sent again."""

    operator: str
    """Name of the operator: `aten::median`."""
    count: int
    """How often it ran."""
    since: float
    """Time at which it was first seen."""
    where: str | None = None
    """`file:line` of the user's that calls it; None where the line was not found."""
