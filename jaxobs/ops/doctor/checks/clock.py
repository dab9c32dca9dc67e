"""The clock: whether it is set, and kept in step with others."""

import ctypes
import ctypes.util
import time
from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok

EARLIEST = 1_790_000_000.0
"""September 2026, in Unix seconds: no jaxobs was there before."""
_UNSYNCHRONISED = 0x40
"""`STA_UNSYNC` of adjtimex(2)."""


def check(machine: Machine) -> Iterator[Finding]:
    """By the kernel's own flag, where it says so."""
    if machine.now < EARLIEST:
        yield Finding(
            severity="critical", title="The clock is wrong", entity="clock",
            evidence=time.strftime("it says %Y-%m-%d %H:%M:%S UTC", time.gmtime(machine.now)),
            why="TLS certificates and tokens are refused; buckets cannot be reached.", fix="timedatectl set-ntp true",
        )  # fmt: skip
        return
    synchronized = is_synchronized()
    if synchronized is None:
        yield ok("The clock is set", "the kernel does not say whether it is synchronized")
    elif not synchronized:
        yield Finding(
            severity="warning" if machine.is_distributed else "info", title="The clock is not synchronized",
            entity="clock", evidence="adjtimex: STA_UNSYNC", fix="timedatectl set-ntp true, or start chronyd",
            why="Times of several hosts cannot be compared.",
        )  # fmt: skip
    else:
        yield ok("The clock is synchronized", "adjtimex")


def is_synchronized() -> bool | None:
    """Returns what the kernel says of its clock; None where it says nothing."""
    name = ctypes.util.find_library("c")
    if name is None:
        return None
    try:
        adjtimex = ctypes.CDLL(name).adjtimex
    except (OSError, AttributeError):
        return None
    buffer = (ctypes.c_byte * 512)()  # all zero: modes 0 only reads
    state = adjtimex(ctypes.byref(buffer))
    if state < 0:
        return None
    status = ctypes.c_int.from_buffer(buffer, 5 * ctypes.sizeof(ctypes.c_long)).value
    return not status & _UNSYNCHRONISED
