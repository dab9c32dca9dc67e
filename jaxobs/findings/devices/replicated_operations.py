"""`replicated_operations`: all devices of a program compute the same products, instead of a part each."""

from __future__ import annotations

from jaxobs.facts.profiles import PRODUCTS
from jaxobs.findings.cases import Case
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS, Profiled, described, in_samples
from jaxobs.findings.scene import Scene

NAME = "replicated_operations"
NEEDS = Scene

LEAST_SHARE = 0.25


def _case(found: Profiled) -> Case | None:
    share = found.work_share(lambda each: each.replicated_seconds)
    lost = found.lost_by_work(share)
    if share < LEAST_SHARE or lost < LEAST_SECONDS:
        return None
    same = found.largest(lambda each: each.replicated and each.category in PRODUCTS)
    return found.case(
        share,
        lost=lost,
        summary=(
            f"In the steps of `{found.loop}`, {share:.0%} of the devices' work is products that every device computes "
            f"in full."
        ),
        advice=(
            "Shard one of the operands: put the batch on the devices with a sharding over the mesh, or constrain the "
            "arrays at that line with `jax.lax.with_sharding_constraint`."
        ),
        where=same[0].source if same else None,
        evidence=list(map(described, same)),
    )


find = in_samples(_case)
