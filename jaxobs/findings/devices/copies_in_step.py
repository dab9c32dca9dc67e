"""`copies_in_step`: in the steps of a loop, devices move data around for much of their time instead of computing."""

from __future__ import annotations

from jaxobs.findings.cases import Case
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS, Profiled, described, in_samples
from jaxobs.findings.scene import Scene

NAME = "copies_in_step"
NEEDS = Scene

LEAST_SHARE = 0.3
_MOVES = ("copy", "transfer")


def _case(found: Profiled) -> Case | None:
    share = found.work_share(lambda each: sum(each.seconds.get(name, 0.0) for name in _MOVES))
    lost = found.lost_by_work(share)
    if share < LEAST_SHARE or lost < LEAST_SECONDS:
        return None
    moves = found.largest(lambda each: each.category in _MOVES)
    top = moves[0] if moves else None
    return found.case(
        share,
        lost=lost,
        summary=(
            f"In the steps of `{found.loop}`, {share:.0%} of the devices' work is copying and moving arrays"
            f"{f': the largest part is `{top.scope or top.operation}`' if top is not None else ''}."
        ),
        advice=(
            "Look for transposes and reshapes that change the layout, concatenations that could be written in place, "
            "arguments that could be donated (`donate_argnums`), and arrays that are kept on the host."
        ),
        where=top.source if top is not None else None,
        evidence=list(map(described, moves)),
    )


find = in_samples(_case)
