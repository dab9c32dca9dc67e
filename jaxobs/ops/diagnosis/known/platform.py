"""Functions for what a scheduler or a host brings about."""

from collections.abc import Mapping

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import END, LINE, PROGRESS, START, Evidence, Observation, is_before
from jaxobs.ops.diagnosis.knowledge import Functions
from jaxobs.ops.diagnosis.known import known


def _was_tried_again(evidence: Evidence, sign: Observation) -> bool:
    """Whether the program makes steps behind it: volumes and registries often answer the next time."""
    return any(
        (each.source, each.process) == (sign.source, sign.process) and each.place > sign.place
        for each in evidence.of_kind(PROGRESS)
    )  # fmt: skip


def _was_survived(evidence: Evidence, sign: Observation) -> bool:
    """Whether the job starts again behind a line of a log, and comes further or serves; or ends as it should."""
    if sign.kind != LINE:
        return counters.is_elsewhere(evidence, sign)
    certain = any(each.shows(sign) for each in known()["preemption"].signs if not each.weak)
    if not certain and _ended_well(evidence, sign):
        return True
    own = [each for each in evidence.of_kind(PROGRESS, START) if each.source == sign.source]
    again = min((each.place for each in own if each.kind == START and each.place > sign.place), default=None)
    reached = max((each.value or 0.0 for each in own if each.place < sign.place), default=0.0)
    return again is not None and any(
        each.kind == PROGRESS and each.place > again and (each.value is None or each.value > reached) for each in own
    )


def _ended_well(evidence: Evidence, sign: Observation) -> bool:
    """Whether the event log of the process has its end by itself: it handled the signal, whoever sent it."""
    return any(
        each.name.startswith("exit:normal") and each.process == sign.process and is_before(each, sign) is not True
        for each in evidence.of_kind(END)
    )


FUNCTIONS: Mapping[str, Functions] = {
    "container_not_started": {"ordinary": _was_tried_again},
    "host_failed": {"ordinary": counters.is_elsewhere},
    "preemption": {"ordinary": _was_survived},
}
