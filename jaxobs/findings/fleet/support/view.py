"""The view that one process has of its job at a moment: the evidence of findings across processes."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxobs.findings.fleet.support.digest import Digest, Listed, Program

MOST_NAMED = 16
"""Processes that a sentence names; of more it gives the number."""
REST_STEPS, REST_VIEWS = 5, 2
"""Steps and views for which a process that makes steps may be seen without a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """This process, and what others have told. Process 0 hears of all, the others of process 0."""

    time: float
    own: Digest
    count: int
    """Processes in the job."""
    interval: float = 5.0
    """Seconds between two views."""
    others: Mapping[int, Digest] = field(default_factory=dict)
    silent: Mapping[int, float] = field(default_factory=dict)
    """Seconds since a process last said something, where that is long ago."""
    programs: Sequence[Program] = ()
    """Programs of this process that span several."""
    differing: Mapping[int, Listed | None] = field(default_factory=dict)
    """The programs of the processes that had others; None where they could not be read."""
    stuck_after: float | None = None
    """Seconds without a step after which this process is stuck; None where that cannot be said."""
    threads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Lines at which its threads are, `file:line in function`, where it is stuck."""
    report: str | None = None
    """The text file with them."""

    @property
    def all(self) -> dict[int, Digest]:
        """The digests of all processes that are known, with this one's."""
        return {self.own.process: self.own, **self.others}


def goes_on(digest: Digest, view: View) -> bool:
    """Returns whether a process has made steps lately."""
    return digest.usual is not None and digest.idle <= REST_STEPS * digest.usual + REST_VIEWS * view.interval


def named(processes: Sequence[int]) -> str:
    """`Process 3`, `Processes 1, 2 and 5`, `Processes 1, 2, ... (200)`."""
    if len(processes) == 1:
        return f"Process {processes[0]}"
    shown = [str(each) for each in processes[:MOST_NAMED]]
    if len(processes) > MOST_NAMED:
        return f"Processes {', '.join(shown)}, ... ({len(processes):,})"
    return f"Processes {', '.join(shown[:-1])} and {shown[-1]}"


def median(values: Sequence[float]) -> float:
    """The lower median: with two processes, the faster one is what is usual."""
    return statistics.median_low(values)


def seconds(value: float) -> str:
    """`12 ms`, `1.25 s`."""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"
