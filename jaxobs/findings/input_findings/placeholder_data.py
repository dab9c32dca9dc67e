"""`placeholder_data`: what the program is fed with looks like no real data."""

from __future__ import annotations

from jaxobs.facts.inputs import InputState
from jaxobs.findings.input_findings import Telling

NAME = "placeholder_data"
ABOUT = "The first batches look constant, repeating or random: throughput measured on them says nothing about training."
TOLD_WHEN = (
    "in the first eight batches of a `jaxobs.data`, the largest array in the host's memory holds a single value or "
    "values that no test can distinguish from chance, or the batches repeat"
)


class PlaceholderData:
    """The receipt, once it is complete."""

    def __init__(self) -> None:
        self._since: float | None = None

    def see(self, state: InputState, now: float) -> Telling | None:
        """What it looks like."""
        receipt = state.receipt
        if receipt is None or receipt.looks is None or receipt.reason is None:
            return None
        self._since = now if self._since is None else self._since
        return Telling(
            since=self._since,
            summary=f"Input `{state.name}` looks like placeholder data. {receipt.reason}",
            advice=(
                "If it replaces real data, do not take what is measured on it for the speed or the result of "
                "training: loading, decoding and compression cost nothing here. If it is intended (noise, or one batch "
                "over and over), no action is needed."
            ),
            evidence=tuple(
                f"`{leaf.path or state.name}` {leaf.dtype}{list(leaf.shape)}: {leaf.detail}"
                for leaf in receipt.leaves
                if leaf.looks is not None
            ),
            data={"input": state.name, "looks": receipt.looks, "fingerprint": receipt.fingerprint},
        )


watch = PlaceholderData
