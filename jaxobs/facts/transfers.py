"""Arrays that move between host and devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxobs.facts.events import Event

DIRECTIONS = ("device_to_host", "host_to_device")
"""Where a transfer goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Event):
    """What one line has moved between host and devices so far: recorded for a new line, when it has grown tenfold, and
    at the end."""

    kind: ClassVar[str] = "transfer"

    site: str
    """As in `TransferState`, like all that follows."""
    direction: str
    count: int
    bytes: int
    seconds: float = 0.0
    waits: int = 0
    wait_seconds: float = 0.0
    shape: tuple[int, ...] = ()
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferState:
    """One line of the program that moves arrays between host and devices, in one direction."""

    site: str
    """`file:line` in the user's code; `<unknown>` if a library does it on its own thread."""
    direction: str
    """One of `DIRECTIONS`."""
    since: float
    """Time of the first."""
    count: int
    """Arrays that were moved. One whose values an earlier read left on the host is not moved again."""
    bytes: int
    """What they hold; of an array that is put on several devices whole, as many times."""
    seconds: float = 0.0
    """Time that these transfers blocked the program, without those that had to wait for a computation."""
    waits: int = 0
    """Arrays that were still being computed when they were read."""
    wait_seconds: float = 0.0
    """Time that these blocked the program: for the computation, and for the copy after it."""
    shape: tuple[int, ...] = ()
    """Of the latest."""
    dtype: str = ""
