"""Functions for the faults of accelerators."""

from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import LINE, PROGRESS, START, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import Functions
from jaxobs.ops.monitoring import rules


def _is_of_a_child(evidence: Evidence, sign: Observation) -> bool:
    """Whether a process that trains writes it between its steps: a child of it, which needs no accelerator, says so."""
    if sign.kind != LINE or sign.name or "Not attempting to load" not in sign.text:
        return False
    before = [
        each
        for each in evidence.of_kind(PROGRESS, START)
        if (each.source, each.process) == (sign.source, sign.process) and each.place < sign.place
    ]
    return bool(before) and max(before, key=lambda each: each.place).kind == PROGRESS


_THROTTLED, _SLOWDOWN, _BUSY = "accelerator_throttled", "accelerator_slowdown_ratio", "accelerator_utilization_ratio"
_WINDOW = 900.0
"""Seconds up to now, as in the alert."""
_LEAST_SLOWDOWN = 0.05
"""Share of the window, by metric: short spells come with bursts of load. For throttling the alert has the same."""
_LEAST_BUSY = 0.1
"""An idle device slows nobody down."""


def _mean(sign: Observation) -> float:
    """Over the window, where there is a history; else its value."""
    latest = [value for at, value in sign.history if at > sign.history[-1][0] - _WINDOW]
    return sum(latest) / len(latest) if latest else sign.value or 0.0


def _is_short_spell(evidence: Evidence, sign: Observation) -> bool:
    """Whether a device is not slowed down, only for a small part of the time, or idle."""
    if sign.name not in (_THROTTLED, _SLOWDOWN):
        return False
    alert = rules.declared()["device_throttled"]
    if _mean(sign) < (alert.thresholds["share"].value if sign.name == _THROTTLED else _LEAST_SLOWDOWN):
        return True
    device = sign.data.get("device")
    busy = [_mean(each) for each in counters.samples(evidence, sign, _BUSY) if each.data.get("device") == device]
    return max(busy, default=1) < _LEAST_BUSY


def _since_spells(evidence: Evidence, sign: Observation) -> float | None:
    """Since when spells have followed each other within the window."""
    began = sign.history[-1][0] if sign.history else sign.time
    for at, value in reversed(sign.history):
        if began is not None and began - at > _WINDOW:
            break
        began = at if value else began
    return began


_LISTED = "cannot access '/dev/"
_MISSES = ("initialize backend", "TPU topology", "TPU initialization failed")


def _where_it_is_missed(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A script that finds no files of devices has looked for them; JAX has to miss them."""
    missed = {
        (each.source, each.process) for each in evidence.of_kind(LINE) if any(one in each.text for one in _MISSES)
    }
    return [each for each in signs if _LISTED not in each.text or (each.source, each.process) in missed]


FUNCTIONS: Mapping[str, Functions] = {
    "accelerator_in_use": {"ordinary": _is_of_a_child},
    "device_throttled": {"ordinary": _is_short_spell, "since": _since_spells},
    "no_accelerator": {"narrow": _where_it_is_missed},
}
