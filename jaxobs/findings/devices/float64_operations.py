"""`float64_operations`: a program that is given narrower numbers computes in float64 for much of its time."""

from __future__ import annotations

from jaxobs.findings.cases import Case
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS, Profiled, described, in_samples
from jaxobs.findings.scene import Scene

NAME = "float64_operations"
NEEDS = Scene

LEAST_SHARE = 0.25


def _case(found: Profiled) -> Case | None:
    share = found.work_share(lambda each: each.widened_seconds)
    lost = found.lost_by_work(share)
    if share < LEAST_SHARE or lost < LEAST_SECONDS:
        return None
    wide = found.largest(lambda each: each.widened)
    return found.case(
        share,
        lost=lost,
        summary=(
            f"In the steps of `{found.loop}`, {share:.0%} of the devices' work is in float64, and most of what the "
            f"program is given is narrower."
        ),
        advice=(
            "Look for what brings float64 in at that line: a NumPy array or scalar without a dtype, the first value "
            "of a `lax.scan`, `jnp.zeros` or `jnp.arange` while `jax_enable_x64` is on. Give it the dtype of the rest."
        ),
        where=wide[0].source if wide else None,
        evidence=list(map(described, wide)),
    )


find = in_samples(_case)
