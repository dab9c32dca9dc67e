"""`host_memory_leak`: the process grows on the host, next to what lies on the devices."""

import math
from collections.abc import Hashable, Iterable, Sequence

from jaxobs.findings import growth
from jaxobs.findings.cases import Case
from jaxobs.findings.growth import Run
from jaxobs.findings.leaks import EARLY, HOST, Growing, Sample, clock, pace
from jaxobs.findings.memory import array_leak, executable_leak
from jaxobs.recorder.oom_texts import human

NAME = "host_memory_leak"

LEAST_BYTES = 64 * 2**20
"""Allocators, imports and jaxobs itself stay below that, and most compiled programs."""
LEAST_SHARE = 0.05
"""Growth as a share of what the process took when it began."""
LEAST_SECONDS = 10.0
"""Seconds of growth if the program ends after fewer rises: imports and checkpoints also take memory several times."""
LEAST_RISES = growth.LEAST_RISES + 6
"""Some more than for arrays and programs: where these leak, the process grows as well, and they must be reported."""
EARLY_RISES = LEAST_RISES // 2
"""Rises after which growth that will soon fill the host is reported."""
COMPILED_OFTEN = 2
"""Rises for each compiled program below which it is the programs that the process keeps."""
_ALIKE = 0.15
_LEAST_RETURNED = 64 * 2**10
_STEP = 2**20


class HostLeaks:
    """Resident memory of the process, by the MiB."""

    def series(self, sample: Sample) -> Iterable[tuple[Hashable, float | None]]:
        """Yields the resident memory."""
        yield "resident", None if sample.resident is None else sample.resident // _STEP * _STEP

    def matters(self, key: Hashable, run: Run, sample: Sample, cases: Sequence[Growing]) -> bool:
        """Decides by the size, unless CPU arrays or compiled programs leak, which take host memory too."""
        if run.rises < LEAST_RISES and (run.rises >= growth.LEAST_RISES or run.seconds < LEAST_SECONDS):
            return False
        if any(_takes_host_memory(each, sample) for each in cases):
            return False
        compiled = sum(each.time >= run.since.time for each in sample.compilations())
        if compiled * COMPILED_OFTEN >= run.rises and run.grown < compiled * LEAST_BYTES:
            return False
        return run.grown >= max(LEAST_BYTES, LEAST_SHARE * run.since.value)

    def full_in(self, run: Run, key: Hashable, sample: Sample) -> float:
        """Waits for some more samples than arrays do: a process takes memory when it begins."""
        left = sample.left.get(HOST)
        known = left is not None and run.seconds >= EARLY and run.rises >= EARLY_RISES
        return left * run.seconds / run.grown if left is not None and known else math.inf

    def belongs(self, key: Hashable, run: Run, case: Growing, sample: Sample) -> bool:
        """There is only one series."""
        return True

    def subject(self, key: Hashable) -> str:
        """Always the same."""
        return "host memory"

    def tell(self, case: Growing, sample: Sample) -> Case:
        """Tells how much, since when, and whose results it could be."""
        run, full = case.run, self.full_in(case.run, "", sample)
        function, returned = _returned(run, sample)
        compiled = sum(each.time >= run.since.time for each in sample.compilations())
        whose = f" A call of `{function}` returns that much: results may be fetched and kept." if function else ""
        return Case(
            summary=(
                f"The process holds {human(run.grown)} more host memory than at {clock(run.since.time)}: "
                f"{pace(run, run.grown, human)}, and nothing was freed.{whose}"
                f"{array_leak.at_this_pace((HOST, full) if full < math.inf else None)}"
            ),
            advice=(
                "Find what is kept on the host from each step: NumPy copies (`jax.device_get`, `np.asarray`), batches, "
                "logs. A device array that was read keeps its host copy for as long as it lives."
            ),
            bytes=round(run.grown),
            evidence=(
                f"{human(run.since.value)} at {clock(run.since.time)}, {human(run.last.value)} now.",
                f"Meanwhile, {compiled:,} programs were compiled, which also take host memory." if compiled else "",
            ),
            data={
                "bytes": round(run.grown),
                "resident_bytes": sample.resident,
                "calls": run.calls,
                "compilations": compiled,
                "bytes_per_call": run.per_call,
                "bytes_per_second": run.grown / run.seconds if run.seconds else None,
                "full_in_seconds": full if full < math.inf else None,
                "returned_bytes": returned,
            },
        )


def _takes_host_memory(case: Growing, sample: Sample) -> bool:
    """On the CPU backend an array takes more of the process than its size, by the allocator's holes."""
    if case.kind != array_leak.NAME:
        return case.kind == executable_leak.NAME
    return any(
        device.startswith("cpu:")
        for group in sample.groups
        if group.key in case.runs or case.subject == array_leak.MANY
        for device in group.bytes_per_device
    )


def _returned(run: Run, sample: Sample) -> tuple[str | None, int | None]:
    """The function that returns as many bytes a call as the process grew by, and how many; None where there is none."""
    fits = []
    for function, size in sample.outputs().items():
        calls = run.last.calls.get(function, 0) - run.since.calls.get(function, 0)
        if size >= _LEAST_RETURNED and calls:
            off = abs(run.grown / calls / size - 1)
            if off <= _ALIKE:
                fits.append((off, function, size))
    return min(fits)[1:] if fits else (None, None)


leak = HostLeaks
