"""`array_leak`: arrays on the devices accumulate."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from jaxobs.facts.memory import ArrayGroup
from jaxobs.findings import growth
from jaxobs.findings.cases import Case
from jaxobs.findings.growth import Run
from jaxobs.findings.leaks import EARLY, HOST, MOST_FLOORS, Growing, Sample, clock, pace
from jaxobs.recorder.oom_texts import human

NAME = "array_leak"

LEAST_BYTES = 2**20
LEAST_SMALL = 256
"""Arrays that together are smaller than that are reported when there are so many more of them, ..."""
SMALL_RISES = 2 * growth.LEAST_RISES
"""... and after twice the time: losses that are kept for an epoch are not a harm."""
TOTAL_RISES = growth.LEAST_RISES + 6
"""Rises of all arrays together: some more than for a group, which must be reported first, ..."""
MOST_TOTAL_RISES = 2 * TOTAL_RISES
"""... and so many where few groups hold most of the growth: the run of each began later than that of all."""
MOST_GROUPS = 500
"""Groups that are followed: the largest."""
MOST_MEMBERS = 8
FAR = 7 * 86400.0
"""Seconds until a device is full of which nothing is said."""
MANY = "arrays of several shapes"
"""Subject of growth that no single shape explains."""
_SAME_START = 3
_EXPLAINED = 0.5
_NEARLY = 0.02

_TOTAL = "total"


class ArrayLeaks:
    """The number of arrays in each group, and the bytes of all."""

    def __init__(self) -> None:
        self._least: dict[Hashable, int] = {}
        """Bytes of each group when it was smallest."""

    def series(self, sample: Sample) -> Iterable[tuple[Hashable, float]]:
        """Groups by number of arrays, and the bytes of all together."""
        for group in sample.groups[:MOST_GROUPS]:
            self._least[group.key] = min(self._least.pop(group.key, group.bytes), group.bytes)
            yield group.key, group.count
        while len(self._least) > MOST_FLOORS:
            del self._least[next(iter(self._least))]
        yield _TOTAL, sum(group.bytes for group in sample.groups)

    def _grown_by_few(self, sample: Sample) -> int:
        """Bytes that the few groups which grew most have grown by."""
        groups = sample.groups[:MOST_GROUPS]
        grown = sorted((group.bytes - self._least.get(group.key, group.bytes) for group in groups), reverse=True)
        return sum(grown[:MOST_MEMBERS])

    def matters(self, key: Hashable, run: Run, sample: Sample, cases: Sequence[Growing]) -> bool:
        """A group by its arrays' bytes, or its number; the total only for what no group explains."""
        if key == _TOTAL:
            few = self._grown_by_few(sample) >= _EXPLAINED * run.grown
            if growth.LEAST_RISES <= run.rises < (MOST_TOTAL_RISES if few else TOTAL_RISES):
                return False
            told = sum(grown_bytes(case, sample) for case in cases if case.kind == NAME)
            return run.grown >= LEAST_BYTES and told < _EXPLAINED * run.grown
        group = _group(key, sample)
        if group is None:
            return False
        if run.grown * _each(group) >= LEAST_BYTES:
            return True
        if any(case.kind == NAME and case.run.function == run.function is not None for case in cases):
            return False  # small ones that are kept with large ones
        return run.grown >= LEAST_SMALL and (run.rises >= SMALL_RISES or run.rises < growth.LEAST_RISES)

    def full_in(self, run: Run, key: Hashable, sample: Sample) -> float:
        """Goes by the device that is full first."""
        group = _group(key, sample)
        groups, grown = (sample.groups, run.grown) if group is None else ([group], run.grown * _each(group))
        full = _full_in(run, grown, groups, sample)
        return full[1] if full else math.inf

    def belongs(self, key: Hashable, run: Run, case: Growing, sample: Sample) -> bool:
        """Returns whether it goes with the same calls, and the same line or, if none is known, the same start."""
        if key == _TOTAL or _TOTAL in case.runs:
            return False
        if case.run.function != run.function:
            return False
        line = _top(sample.call_sites(_key(key)))
        if line != _top(sample.call_sites(_key(next(iter(case.runs))))):
            return False
        # Of one line it is one leak, however late a part of it was seen to grow.
        return line is not None or abs(case.run.since.sample - run.since.sample) <= _SAME_START

    def subject(self, key: Hashable) -> str:
        """`float32[32,128] on gpu:0`, `float32[32,128] P('data') over data=8`."""
        if key == _TOTAL:
            return MANY
        shape, dtype, sharding, _ = _key(key)
        where = sharding if " " in sharding else f"on {sharding}"
        return f"{dtype}[{','.join(map(str, shape))}] {where}"

    def tell(self, case: Growing, sample: Sample) -> Case:
        """Which, how many a call, since when, from where, and when the device will be full."""
        run, grown = case.run, grown_bytes(case, sample)
        sites: Counter[str] = Counter()
        groups = {group.key: group for group in sample.groups}
        members = [groups[_key(key)] for key in case.runs if key != _TOTAL and key in groups]
        for group in (members or sample.groups)[:MOST_MEMBERS]:
            sites.update(sample.call_sites(group.key))
        number = sum(run.grown for key, run in case.runs.items() if key != _TOTAL)
        where = f", created at {_top(sites)}" if sites else ""
        if members:
            others = f" and {len(members) - 1} other kinds" if len(members) > 1 else ""
            what = f"{number:,.0f} more arrays {self.subject(members[0].key)}{others} are alive"
            speed = f"{pace(run, number, _number)}, {human(grown)} in total"
        else:
            what, speed = f"Arrays of several shapes hold {human(grown)} more", pace(run, grown, human)
        full = _full_in(run, grown, members or sample.groups, sample)
        return Case(
            summary=(
                f"{what} than at {clock(run.since.time)}{where}: {speed}, and nothing was freed."
                + at_this_pace(full)
            ),
            advice=_advice(_top(sites)),
            where=_top(sites),
            bytes=round(grown),
            evidence=tuple(
                f"{human(group.bytes)} in {group.count:,} x {self.subject(group.key)}."
                for group in (members or sample.groups)[:MOST_MEMBERS]
            ),
            data={
                **({"shape": list(members[0].shape), "dtype": members[0].dtype, "sharding": members[0].sharding,
                    "memory_kind": members[0].memory_kind} if members else {}),
                "arrays": round(number), "bytes": round(grown), "calls": run.calls, "samples": run.rises,
                "arrays_per_call": number / run.calls if run.calls and members else None,
                "bytes_per_call": grown / run.calls if run.calls else None,
                "bytes_per_second": grown / run.seconds if run.seconds else None,
                "full_in_seconds": full[1] if full else None,
                "call_sites": dict(sites.most_common(MOST_MEMBERS)),
            },
        )  # fmt: skip


def _advice(place: str | None) -> str:
    look = f"Find what keeps the arrays created at {place}" if place else "Find what they are appended to"
    return (
        f"{look}: a list, dictionary, closure or history (losses, metrics, outputs, states). Keep `float(x)` or "
        "`jax.device_get(x)` of what you need, or a `collections.deque(maxlen=...)`. If it is a buffer that fills up, "
        "this finding ends when the buffer is full."
    )


def _key(key: Any) -> tuple[tuple[int, ...], str, str, str | None]:
    shape, dtype, sharding, kind = key
    return shape, dtype, sharding, kind


def _group(key: Hashable, sample: Sample) -> ArrayGroup | None:
    return next((group for group in sample.groups if group.key == key), None)


def _each(group: ArrayGroup) -> float:
    return group.bytes / group.count if group.count else 0.0


def grown_bytes(case: Growing, sample: Sample) -> float:
    """Returns by how much a case grew."""
    if _TOTAL in case.runs:
        return case.grown
    groups = {group.key: group for group in sample.groups}
    return sum(run.grown * _each(groups[_key(key)]) for key, run in case.runs.items() if key in groups)


def _top(sites: Mapping[str, int]) -> str | None:
    """The line that most were made at; None if none is known."""
    return max(sites, key=lambda site: sites[site], default=None)


def _full_in(run: Run, grown: float, groups: Sequence[ArrayGroup], sample: Sample) -> tuple[str, float] | None:
    """Returns the device that is full first, and in how many seconds; None if that is unknown, or the run is short."""
    total = sum(group.bytes for group in groups)
    if run.seconds < EARLY or not total:
        return None
    found = []
    for device, left in sample.left.items():
        sizes = [item for group in groups for item in group.bytes_per_device.items()]
        on_cpu = device == HOST
        share = sum(size for name, size in sizes if name == device or (on_cpu and name.startswith("cpu:"))) / total
        if share:
            found.append((left / (grown * share / run.seconds), device))
    return (min(found)[1], min(found)[0]) if found else None


def at_this_pace(full: tuple[str, float] | None) -> str:
    """Returns a sentence on the device that will be full, and when; nothing is said of it for what is far off."""
    if full is None or full[1] > FAR:
        return ""
    return f" At this pace, {'the host' if full[0] == HOST else full[0]} will be full in {_span(full[1])}."


def _span(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} s"


def _number(value: float) -> str:
    whole = round(value)
    return f"{whole:,}" if whole and abs(value - whole) < _NEARLY * whole else f"{value:,.3g}"


leak = ArrayLeaks
