"""Functions for faults by which memory is short."""

import itertools
import re
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import ALERT, FORMER, LAST, LINE, METRIC, Evidence, Observation
from jaxobs.ops.diagnosis.full_devices import ROW, full_before, is_row
from jaxobs.ops.diagnosis.knowledge import HOST_MEMORY, Functions

_WANTED = re.compile(
    r"(?:(?:failed|trying|Attempting|[Uu]nable) to allocate|[Oo]ut of memory allocating|Requires) "
    r"(?P<number>[\d.]+) ?(?P<unit>[KMGTPE]?)"
)
_TOTAL = re.compile(r"Free memory/Total memory: \d+/(\d+)")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_LARGEST_DEVICE = 2**40
"""Bytes: no device of today has so much."""


def _too_large(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    return [each for each in signs if "absurd_request" in each.name or _is_absurd(each)]


def _is_absurd(one: Observation) -> bool:
    text = f"{one.text}\n{one.data.get('next', '')}"
    wanted, total = _WANTED.search(text), _TOTAL.search(text)
    if wanted is None:
        return False
    size = float(wanted["number"].rstrip(".")) * 1024.0 ** _UNITS[wanted["unit"]]
    return bool(size > (float(total.group(1)) if total else _LARGEST_DEVICE))


_SHORT = re.compile(
    r"[Oo]ut of memory|OUT_OF_MEMORY|RESOURCE_EXHAUSTED|ALLOC_FAILED|resource allocation failed|"
    r"CU\w+_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)|[Ff]ailed to (?:create|initialize)|[Cc]ould not create"
)


def _missed(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A device that is full is a fault only for a program that then lacks memory."""
    missed = {
        each.source for each in evidence.of_kind(LINE) if _SHORT.search(each.text) and full_before(evidence, each)
    }
    return [each for each in signs if not is_row(each) or each.source in missed]


def _of_a_device(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """On the CPU, a counter does not tell the memory of the device from that of the host."""
    return [
        each for each in signs if each.kind not in (ALERT, METRIC) or not each.data.get("device", "").startswith("cpu")
    ]


_RUN = "jax_run_info"


def _was_not_killed(evidence: Evidence, sign: Observation) -> bool:
    """Whether the process that used so much memory goes on, or the one after it does not say that it was killed."""
    return sign.name == HOST_MEMORY and (
        FORMER not in sign.data or not any(counters.samples(evidence, sign, _RUN, last_exit="killed|out_of_memory"))
    )


_ROSE = re.compile(r"\[rose from [^\]]+\]$")
_KILLED = re.compile(r"\bKilled\b|\bkilled\b|SIGKILL|[Ss]ignal:? 9\b|(?:exit|status|code)\w*\W{0,4}137\b")


def _until_killed(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Memory that a program logs, and that rises, is a fault only if somebody then killed the program."""
    ends = [each for each in evidence.of_kind(LINE, LAST) if _KILLED.search(each.text)]
    return [
        each for each in signs
        if not _ROSE.search(each.text)
        or any(end.source == each.source and end.place > each.place for end in ends)
    ]  # fmt: skip


_LIVE_BYTES = "jax_live_array_bytes"
_PARTS = 6
_LEAST_POINTS = 30
_LEAST_GROWTH = 0.2
"""Growth over a history as a share of its beginning: the lowest value of each part is above that before."""
_LEAST_PACE = 0.5
"""Growth of the second half against the first: what fills up slows down."""


def _does_not_pile_up(_: Evidence, sign: Observation) -> bool:
    """Whether the bytes of live arrays rest, come and go, or have no history."""
    if sign.name != _LIVE_BYTES:
        return False
    values = [value for _, value in sign.history]
    if len(values) < _LEAST_POINTS:
        return True
    size = len(values) / _PARTS
    lows = [min(values[int(part * size) : int((part + 1) * size)]) for part in range(_PARTS)]
    early, late = lows[_PARTS // 2] - lows[0], lows[-1] - lows[_PARTS // 2 - 1]
    rising = all(after > before for before, after in itertools.pairwise(lows))
    return not rising or late < _LEAST_PACE * early or lows[-1] - lows[0] < _LEAST_GROWTH * lows[0]


FUNCTIONS: Mapping[str, Functions] = {
    "absurd_allocation": {"narrow": _too_large},
    "accelerator_memory_taken": {"narrow": _missed},
    "device_out_of_memory": {"narrow": _of_a_device},
    "host_out_of_memory": {
        "narrow": _until_killed,
        "ordinary": lambda evidence, sign: counters.is_elsewhere(evidence, sign) or _was_not_killed(evidence, sign),
    },
    "memory_leak": {"ordinary": _does_not_pile_up},
}
PARTS: Mapping[str, str] = {"row": ROW}
