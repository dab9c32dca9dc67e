"""`far_from_roofline`: one operation takes most of the devices' time, and much longer than the device would need."""

import statistics

from jaxobs.facts.profiles import OperationTime
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS, Profiled, described, in_samples

NAME = "far_from_roofline"
NEEDS = Scene

LEAST_SHARE = 0.5
MOST_RATIO = 0.2


def _case(found: Profiled) -> Case | None:
    top = next(iter(found.largest(lambda each: each.roofline_ratio is not None)), None)
    if top is None:
        return None
    same = [_same(top, sample.operations) for sample in found.samples]
    share = statistics.median(0.0 if each is None else each.share for each in same)
    ratios = [each.roofline_ratio for each in same if each is not None and each.roofline_ratio is not None]
    ratio = statistics.median(ratios)
    lost = found.lost_by_work(share * (1 - ratio))
    if share < LEAST_SHARE or ratio > MOST_RATIO or lost < LEAST_SECONDS:
        return None
    return found.case(
        share,
        lost=lost,
        summary=(
            f"In the steps of `{found.loop}`, `{top.scope or top.operation}` takes {share:.0%} of the devices' work, "
            f"at {ratio:.0%} of what the device could do."
        ),
        advice=_ADVICE["compute" if top.bound == "compute" else "memory"],
        where=top.source,
        evidence=[described(top), f"It computes in `{top.dtype}`." if top.dtype else ""],
        ratio=ratio,
    )


_ADVICE = {
    "compute": (
        "Check its shapes: small dimensions, and those that 128 does not divide, leave the matrix units idle. Check "
        "its dtype and its precision: bfloat16 is several times faster than float32."
    ),
    "memory": (
        "Check how it reads memory: strided or transposed access, many small slices in a loop, or an array too small "
        "to keep the device busy. A larger batch, another layout or `jax.vmap` instead of a loop may help."
    ),
}


def _same(operation: OperationTime, operations: tuple[OperationTime, ...]) -> OperationTime | None:
    name = operation.operation, operation.function
    return next((each for each in operations if (each.operation, each.function) == name), None)


find = in_samples(_case)
