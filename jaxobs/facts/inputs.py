"""What goes into a loop, and the time waited for it."""

from __future__ import annotations

from dataclasses import dataclass

INPUT_VERDICTS = ("input", "compute", "mixed")
"""Which side is the bottleneck of a loop: the input if most of the interval is spent waiting for it, the rest if almost
none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputState:
    """One input that goes through `jaxobs.data`, over all its epochs."""

    name: str
    batches: int
    """All that it gave, on whichever thread."""
    wait_seconds: float
    """Time that the program's thread waited for batches."""
    elsewhere_batches: int = 0
    """Of the batches, those taken on another thread, as a prefetcher does: nobody is known to have waited for them."""
    elsewhere_seconds: float = 0.0
    """Time that other threads waited for them."""
    intervals: int = 0
    """Latest intervals between batches that the following three are of; 0 until the warm-up is over."""
    mean_wait_seconds: float | None = None
    mean_interval_seconds: float | None = None
    """From one batch to the next: the wait, and what the program does with the batch."""
    share: float | None = None
    """Part of the interval that is waited for input."""
    looks: int = 0
    """How often it was looked whether the devices still had work when a batch came; the latest."""
    hidden: float | None = None
    """Share of these looks in which they had: the wait cost them nothing. None where none was possible."""
    verdict: str | None = None
    """One of `INPUT_VERDICTS`; None until it is known, and if batches are read on another thread."""
    summary: str = ""
    """The same as a sentence for a person, with the figures, or why it is unknown."""
