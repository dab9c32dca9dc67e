"""Merges the profiles of the traces of several hosts that ran one job."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from jaxobs.facts.profiles import CollectiveTime, FunctionTime, IdleTime, OperationTime, Profile


def merged(profiles: Mapping[str, Profile]) -> Profile:
    """Devices side by side, named by their host where there are several; everything else added up.

    The window is the longest one: the hosts' clocks don't agree well enough to find moments that all of them saw.
    """
    each = list(profiles.values())
    if len(each) == 1:
        return each[0]
    window = max((one.window_seconds for one in each), default=0.0)
    steps = [one.steps for one in each if one.steps is not None]
    exchanges = [one.collectives for one in each if one.collectives is not None]
    return Profile(
        window_seconds=window,
        steps=max(steps, default=None),
        devices=tuple(
            dataclasses.replace(device, device=f"{host}/{device.device}")
            for host, one in profiles.items()
            for device in one.devices
        ),
        functions=_functions([row for one in each for row in one.functions]),
        operations=_operations([row for one in each for row in one.operations]),
        idle=_idle([row for one in each for row in one.idle]),
        collectives=CollectiveTime(
            seconds=sum(one.seconds for one in exchanges),
            exposed_seconds=sum(one.exposed_seconds for one in exchanges),
        ) if exchanges else None,
    )  # fmt: skip


def _functions(rows: Sequence[FunctionTime]) -> tuple[FunctionTime, ...]:
    found: dict[str, FunctionTime] = {}
    for row in rows:
        known = found.get(row.function)
        calls = [each.calls for each in (known, row) if each is not None and each.calls is not None]
        found[row.function] = FunctionTime(
            function=row.function,
            device_seconds=row.device_seconds + (known.device_seconds if known is not None else 0.0),
            calls=max(calls, default=None),
        )
    return tuple(sorted(found.values(), key=lambda row: (-row.device_seconds, row.function)))


def _operations(rows: Sequence[OperationTime]) -> tuple[OperationTime, ...]:
    together: dict[tuple[str | None, ...], list[OperationTime]] = {}
    for row in rows:
        key = row.operation, row.function, row.category, row.scope, row.source, row.bound
        together.setdefault(key, []).append(row)
    everything = sum(row.device_seconds for row in rows)
    found = []
    for same in together.values():
        seconds = sum(row.device_seconds for row in same)
        found.append(
            dataclasses.replace(
                same[0],
                device_seconds=seconds,
                share=seconds / everything if everything else 0.0,
                count=sum(row.count for row in same),
                flops=_added(row.flops for row in same),
                bytes=_added(row.bytes for row in same),
                roofline_ratio=_mean_ratio(same),
            )
        )
    return tuple(sorted(found, key=lambda row: (-row.device_seconds, row.operation)))


def _added(figures: Iterable[float | None]) -> float | None:
    known = [each for each in figures if each is not None]
    return sum(known) if known else None


def _mean_ratio(rows: Sequence[OperationTime]) -> float | None:
    """By their time; None if it isn't known of one."""
    seconds = sum(row.device_seconds for row in rows)
    if not seconds or any(row.roofline_ratio is None for row in rows):
        return None
    return sum((row.roofline_ratio or 0.0) * row.device_seconds for row in rows) / seconds


def _idle(rows: Sequence[IdleTime]) -> tuple[IdleTime, ...]:
    seconds: dict[str, float] = {}
    for row in rows:
        seconds[row.reason] = seconds.get(row.reason, 0.0) + row.seconds
    found = [IdleTime(reason=reason, seconds=time) for reason, time in seconds.items()]
    return tuple(sorted(found, key=lambda row: (-row.seconds, row.reason)))
