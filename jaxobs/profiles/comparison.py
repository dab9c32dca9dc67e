"""Compares two profiles: what got slower, by function, scope, operation and line of the source."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxobs.facts.profiles import OperationTime, Profile
from jaxobs.profiles import stacks


@dataclass(frozen=True, slots=True)
class Change:
    """A row: seconds of device time in each profile. None where a profile has no such row."""

    name: str
    before: float | None
    after: float | None
    category: str | None = None
    """The category of an operation."""

    @property
    def seconds(self) -> float:
        """By how much it got slower."""
        return (self.after or 0.0) - (self.before or 0.0)


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """Two profiles. What got slower most comes first, what got faster most last."""

    per: str
    """The divisor: `step`; else `call`, of the functions that both profiles have; else `trace`, by nothing."""
    window: Change
    device: Change
    """Time of all operations."""
    idle: tuple[Change, ...]
    functions: tuple[Change, ...]
    scopes: tuple[Change, ...]
    operations: tuple[Change, ...]
    """By function and operation. Where XLA numbers them otherwise, they are matched by category, scope and line."""
    sources: tuple[Change, ...]


def compare(before: Profile, after: Profile) -> ProfileComparison:
    """Returns the changes, for one step where both profiles have steps."""
    per, divisors = _divisors(before, after)
    both = before, after = _alike(before), _alike(after)

    def rows(read: Callable[[Profile], Iterable[tuple[str | None, float]]]) -> tuple[Change, ...]:
        sums = [_sums(read(profile), divisor) for profile, divisor in zip(both, divisors, strict=True)]
        return _sorted(
            Change(name, sums[0].get(name), sums[1].get(name)) for name in dict.fromkeys([*sums[0], *sums[1]])
        )

    totals = [sum(each.device_seconds for each in profile.operations) for profile in both]
    return ProfileComparison(
        per=per,
        window=Change("window", before.window_seconds / divisors[0], after.window_seconds / divisors[1]),
        device=Change("device", totals[0] / divisors[0], totals[1] / divisors[1]),
        idle=rows(lambda profile: ((each.reason, each.seconds) for each in profile.idle)),
        functions=rows(lambda profile: ((each.function, each.device_seconds) for each in profile.functions)),
        scopes=rows(lambda profile: ((each.scope, each.device_seconds) for each in profile.operations)),
        operations=_operations(before.operations, after.operations, divisors),
        sources=rows(lambda profile: ((each.source, each.device_seconds) for each in profile.operations)),
    )


def _alike(profile: Profile) -> Profile:
    """Returns a profile without the scope `jit(main)` that JAX put around the whole of a function until 0.7."""
    rows = [(row, [] if row.scope is None else stacks.parts(row.scope)) for row in profile.operations]
    return replace(profile, operations=tuple(
        replace(row, scope="/".join((parts[0], *parts[2:]))) if parts[1:2] == ["jit(main)"] else row
        for row, parts in rows
    ))  # fmt: skip


def _divisors(before: Profile, after: Profile) -> tuple[str, tuple[float, float]]:
    if before.steps and after.steps:
        return "step", (before.steps, after.steps)
    calls = [{each.function: each.calls for each in one.functions if each.calls} for one in (before, after)]
    shared = calls[0].keys() & calls[1].keys()
    longest = next((each.function for each in before.functions if each.function in shared), None)
    if longest is not None:
        return "call", (calls[0][longest] or 1, calls[1][longest] or 1)
    return "trace", (1, 1)


def _sums(rows: Iterable[tuple[str | None, float]], divisor: float) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for name, seconds in rows:
        if name is not None:
            found[name] += seconds / divisor
    return found


def _operations(
    before: Sequence[OperationTime], after: Sequence[OperationTime], divisors: tuple[float, float]
) -> tuple[Change, ...]:
    """By name where what it does and where it comes from is the same, else by these, else by the scope's last part."""
    left, right, changes = list(before), list(after), list[Change]()
    for key in (_named, _placed, _ended):
        a, b = _by(left, key), _by(right, key)
        changes += [_change(a[each], b[each], divisors) for each in a if each in b]
        left = [row for each, those in a.items() if each not in b for row in those]
        right = [row for each, those in b.items() if each not in a for row in those]
    changes += [_change(those, [], divisors) for those in _by(left, _placed).values()]
    return _sorted([*changes, *(_change([], those, divisors) for those in _by(right, _placed).values())])


def _named(row: OperationTime) -> tuple[str | None, ...]:
    return row.function, row.operation, row.category, row.scope


def _placed(row: OperationTime) -> tuple[str | None, ...]:
    """Returns category and scope of an operation; its name if it has no scope."""
    return (row.function, row.category, row.scope) if row.scope is not None else _named(row)


def _ended(row: OperationTime) -> tuple[str | None, ...]:
    """Returns category and operation of JAX, whose scopes have other names in each version of JAX."""
    return _named(row) if row.scope is None else (row.function, row.category, row.scope.rpartition("/")[2])


def _by(
    rows: Iterable[OperationTime], key: Callable[[OperationTime], tuple[str | None, ...]]
) -> Mapping[tuple[str | None, ...], list[OperationTime]]:
    found: dict[tuple[str | None, ...], list[OperationTime]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def _change(before: Sequence[OperationTime], after: Sequence[OperationTime], divisors: tuple[float, float]) -> Change:
    names = [", ".join(dict.fromkeys(each.operation for each in rows)) for rows in (before, after) if rows]
    first = (*after, *before)[0]
    name = " -> ".join(dict.fromkeys(names))
    named = f"{first.function}: {name}" if first.function is not None else name
    times = [
        sum(each.device_seconds for each in rows) / divisor if rows else None
        for rows, divisor in zip((before, after), divisors, strict=True)
    ]
    return Change(f"{named}  {first.scope}" if first.scope else named, times[0], times[1], first.category)


def _sorted(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda each: (-each.seconds, each.name)))
