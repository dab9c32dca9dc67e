"""Inputs of loops, and the time waited for them."""

from dataclasses import dataclass

INPUT_VERDICTS = ("input", "compute", "mixed")
"""Which side is the bottleneck of a loop: the input if most of the interval is spent waiting for it, the rest if almost
none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputState:
    """An input that goes through `jaxobs.data`, over all its epochs."""

    name: str
    batches: int
    """Batches that the input gave, on whichever thread."""
    wait_seconds: float
    """Time that the program's thread waited for batches."""
    elsewhere_batches: int = 0
    """Batches that were taken on another thread, as a prefetcher does: nobody is known to have waited for them."""
    elsewhere_seconds: float = 0.0
    """Time that other threads waited for batches."""
    intervals: int = 0
    """Latest intervals between batches that the next three figures are of; 0 until the warm-up is over."""
    mean_wait_seconds: float | None = None
    mean_interval_seconds: float | None = None
    """From one batch to the next: the wait, and what the program does with the batch."""
    share: float | None = None
    """Part of the interval that the program waits for input."""
    looks: int = 0
    """Number of the latest looks whether the devices still had work when a batch came."""
    hidden: float | None = None
    """Share of these looks in which they had work: the wait cost them nothing. None if no look was possible."""
    verdict: str | None = None
    """The side that is the bottleneck, one of `INPUT_VERDICTS`; None until it is known, and if batches are read on
    another thread."""
    summary: str = ""
    """A sentence for a person about the verdict, with the figures, or why it is unknown."""
