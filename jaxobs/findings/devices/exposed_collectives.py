"""`exposed_collectives`: devices do nothing but exchange data with others, or wait for them, in much of their time."""

from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS, Profiled, in_samples

NAME = "exposed_collectives"
NEEDS = Scene

LEAST_SHARE = 0.3


def _case(found: Profiled) -> Case | None:
    share = found.exposed_share()
    lost = found.lost_seconds(share)
    if found.on_cpus or share < LEAST_SHARE or lost < LEAST_SECONDS:
        return None
    top = next((each for each in found.samples[-1].operations if each.category == "collective"), None)
    return found.case(
        share,
        lost=lost,
        summary=(
            f"In the steps of `{found.loop}`, the devices do nothing but exchange data with others, or wait for them, "
            f"{share:.0%} of the time."
        ),
        advice=(
            "Check whether one process is slower than the others: all wait for the last one. If not, exchange less or "
            "overlap it: larger batches between exchanges, another sharding, or XLA's latency-hiding scheduler."
        ),
        where=top.source if top is not None else None,
        evidence=[
            f"The largest exchange is `{top.operation}`, at `{top.scope}`." if top is not None and top.scope else ""
        ],
    )


find = in_samples(_case)
