"""One allocation is larger than the whole device: a wrong shape, not pressure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

_WANTED = re.compile(
    r"(?:(?:failed|trying|Attempting|[Uu]nable) to allocate|[Oo]ut of memory allocating|Requires) "
    r"(?P<number>[\d.]+) ?(?P<unit>[KMGTPE]?)"
)
_TOTAL = re.compile(r"Free memory/Total memory: \d+/(\d+)")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
LARGEST_DEVICE = 2**40
"""Bytes: no device of today has so much."""


def _too_large(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    return [each for each in signs if "absurd_request" in each.name or _is_absurd(each)]


def _is_absurd(one: Observation) -> bool:
    text = f"{one.text}\n{one.data.get('next', '')}"
    wanted, total = _WANTED.search(text), _TOTAL.search(text)
    if wanted is None:
        return False
    size = float(wanted["number"].rstrip(".")) * 1024.0 ** _UNITS[wanted["unit"]]
    return bool(size > (float(total.group(1)) if total else LARGEST_DEVICE))


KNOWN = Knowledge(
    title="One allocation is larger than the whole device",
    impact=ENDED,
    signs=(
        Line(r"(?:failed to allocate|trying to allocate|Attempting to allocate|[Oo]ut of memory allocating) [\d.]+"),
        Line(
            r"Unable to allocate [\d.]+ [KMGTPE]iB for an array|"
            r"enough memory\. Requires [\d.]+[KMGTPE]"
        ),
        Event(r"out_of_memory:\w+:absurd_request.*"),
    ),
    narrow=_too_large,
    fix=("Check the shapes of the operation that is named: a broadcast or an outer product that was not meant."),
    runbook="JaxOutOfMemory",
)
