"""`input_bound`: the program waits for its input more than it does anything else."""

from __future__ import annotations

from jaxobs.facts.inputs import InputState
from jaxobs.findings.input_findings import Telling
from jaxobs.state.input_waits import INPUT_BOUND

NAME = "input_bound"
ABOUT = "The program waits for its input most of the time, while the devices are idle."

LEAST_SECONDS = 30.0
"""A cold file cache or a shuffle buffer that fills is over by then."""

TOLD_WHEN = (
    f"the wait for `jaxobs.data` was {INPUT_BOUND:.0%} or more of the interval between batches for {LEAST_SECONDS:g} "
    "s, after the warm-up"
)


class InputBound:
    """Since when the input is the bottleneck, and what was waited before."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._waited = 0.0

    def see(self, state: InputState, now: float) -> Telling | None:
        """The share and the figures, once it lasted."""
        if state.verdict != "input":
            self._since = None
            return None
        if self._since is None:
            self._since, self._waited = now, state.wait_seconds
        if now - self._since < LEAST_SECONDS or state.share is None:
            return None
        lost, lasted = state.wait_seconds - self._waited, now - self._since
        return Telling(
            since=self._since,
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


watch = InputBound
