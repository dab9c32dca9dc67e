"""`input_bound`: the program waits for its input more than it does anything else."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.findings.cases import Case
from jaxobs.findings.input.support.waits import Waits
from jaxobs.state.input_waits import INPUT_BOUND

NAME = "input_bound"
NEEDS = Waits
ABOUT = "The program waits for its input most of the time, while the devices are idle."

LEAST_SECONDS = 30.0
"""A cold file cache or a shuffle buffer that fills is over by then."""

TOLD_WHEN = (
    f"the wait for `jaxobs.data` was {INPUT_BOUND:.0%} or more of the interval between batches for {LEAST_SECONDS:g} "
    "s, after the warm-up"
)


def find(waits: Waits) -> Iterator[Case]:
    """Yields a case for each input that has been the bottleneck for long."""
    for state in waits.states:
        since, waited = waits.since.get(state.name, (waits.time, 0.0))
        lost, lasted = state.wait_seconds - waited, waits.time - since
        if lasted < LEAST_SECONDS or state.share is None:
            continue
        yield Case(
            key=f"{NAME} {state.name}",
            subject=state.name,
            since=since,
            count=state.batches,
            seconds=lost,
            summary=f"Input `{state.name}`: {state.summary} It waited {lost:,.0f} s of the last {lasted:,.0f} s.",
            advice=(
                "Load ahead and in parallel: more workers or read threads, a prefetch buffer, decoding and "
                "augmentation off the training thread. If input is still the bottleneck then, store the data "
                "decoded, or closer to the host."
            ),
            data={
                "input": state.name,
                "share": state.share,
                "mean_wait_seconds": state.mean_wait_seconds,
                "mean_interval_seconds": state.mean_interval_seconds,
            },
        )
