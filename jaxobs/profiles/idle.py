"""Why devices had nothing to do: what the host did then, as far as the trace tells.

The host's threads record what JAX and XLA do, and each Python call where the trace has Python's. Where it has none,
a program's own work between two steps is `dispatch`, whatever it was.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from jaxobs.profiles import intervals
from jaxobs.profiles.intervals import Interval
from jaxobs.profiles.tracks import HostEvent, Trace

_DISPATCHES = re.compile(r"PjitFunction\(|ExecuteReplicated|LoadedExecutable::Execute|CpuExecutable::Execute")
"""Names of events that only a thread has which calls compiled functions."""
_CALL = "PjitFunction("
_ON_CALLERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE))
    for reason, pattern in (
        (
            "compile",
            r"backend_compile|lower_sharding_computation|compile_or_get_cached|trace_to_jaxpr|_trace_for_jit"
            r"|lower_jaxpr|lower_mlir|\$mlir\.py|\$compiler\.py|Client::Compile|DeserializeLoadedExecutable",
        ),
        ("checkpoint", r"checkpoint|orbax|tensorstore|safetensors|\$serialization\.py|\$_npyio_impl\.py:\d+ _?save"),
        ("garbage_collection", r"^\$gc collect"),
        (
            "input",
            r"^\$.*(__next__|builtins next$|get_next|next_batch|load_batch|batches|data_?(loader|set|_iter|source)"
            r"|\.py:\d+ \w*loader|prefetch|input_(pipeline|fn))|^jaxobs: input",
        ),
        ("waiting", r"barrier|sync_global_devices|process_allgather"),
    )
)
_ON_ANY = re.compile(
    r"^(DevicePut|H2D|D2H|BatchedDevicePut|batched_copy_array|TransferTo|TransferFrom)|CopyToHost|ToLiteral"
    r"|BufferFromHost|^\$.*(device_put|device_get)$|^\$array\.py:\d+ (_value|__array__)$"
)
"""Transfers: a pool of XLA's threads makes them while the caller waits."""
_GARBAGE = re.compile(r"^\$.* _xla_gc_callback$")
"""JAX has itself called before and after each collection."""
_WAIT = re.compile(r"^\$.* block_until_ready$")

ORDER = ("compile", "checkpoint", "garbage_collection", "input", "transfer", "waiting")
"""Which of several reasons counts: the one that explains the others."""

Gap = tuple[float, float, str]
"""From, to, and one of `facts.profiles.IDLE_REASONS`."""


def gaps(
    trace: Trace, busy: Mapping[str, Sequence[Interval]], known: Mapping[str, Sequence[Interval]] | None = None
) -> dict[str, list[Gap]]:
    """Returns each device's idle intervals with reasons, from when it was `busy` and what is `known` of the host."""
    did, sees_host = host_times(trace)
    for reason, spans in (known or {}).items():
        did[reason] = intervals.union([*did.get(reason, []), *spans])
    if did.get("transfer"):
        waits = _waits_for(did["transfer"], trace, intervals.merged(list(busy.values())))
        did["transfer"] = intervals.union([*did["transfer"], *waits])
    everyone = intervals.merged(list(busy.values())) if len(busy) > 1 else []
    found = {}
    for device, own in busy.items():
        made: list[Gap] = []
        left = intervals.without([trace.window], own)
        for reason in ORDER:
            left = _take(left, did.get(reason, []), reason, made)
        # Nobody else's time is in its own gaps, so that of all is that of the others.
        left = _take(left, everyone, "waiting", made)
        _take(left, left, "dispatch" if sees_host else "unknown", made)
        found[device] = sorted(made)
    return found


def seconds_by_reason(found: Mapping[str, Sequence[Gap]]) -> list[tuple[str, float]]:
    """Nanoseconds of all devices by reason, the most first."""
    sums: dict[str, float] = {}
    for gaps_of_device in found.values():
        for start, end, reason in gaps_of_device:
            sums[reason] = sums.get(reason, 0.0) + end - start
    return sorted(sums.items(), key=lambda each: (-each[1], each[0]))


def _take(left: list[Interval], spans: Sequence[Interval], reason: str, made: list[Gap]) -> list[Interval]:
    if not left or not spans:
        return left
    made += [(start, end, reason) for start, end in intervals.common(left, spans)]
    return intervals.without(left, spans)


def host_times(trace: Trace) -> tuple[dict[str, list[Interval]], bool]:
    """Returns by reason what the host did that may keep a device idle, and whether the trace saw the host at all."""
    spans: dict[str, list[Interval]] = {}
    of_name: dict[tuple[bool, str], str | None] = {}
    sees_host = False
    for events in trace.host.values():
        calls = any(_DISPATCHES.search(name) for name in {each.name for each in events})
        sees_host |= calls
        for event in events:
            key = calls, event.name
            if key not in of_name:
                of_name[key] = _reason(event.name, calls=calls)
            reason = of_name[key]
            if reason is not None:
                spans.setdefault(reason, []).append((event.start, event.end))
        if calls:
            spans.setdefault("garbage_collection", []).extend(_collections(events))
    did = {reason: intervals.union(each) for reason, each in spans.items()}
    if did.get("compile"):
        did["compile"] = intervals.union([*did["compile"], *_compiling_calls(trace, did["compile"])])
    return did, sees_host


def _reason(name: str, *, calls: bool) -> str | None:
    if calls:
        for reason, pattern in _ON_CALLERS:
            if pattern.search(name):
                return reason
    return "transfer" if _ON_ANY.search(name) else None


def _compiling_calls(trace: Trace, compiling: Sequence[Interval]) -> Iterable[Interval]:
    """Calls in which something compiled: what they do besides is tracing."""
    starts = [start for start, _ in compiling]
    for events in trace.host.values():
        for event in events:
            if event.name.startswith(_CALL):
                at = bisect_left(starts, event.start)
                if at < len(starts) and compiling[at][1] <= event.end:
                    yield event.start, event.end


def _waits_for(transfers: Sequence[Interval], trace: Trace, busy: Sequence[Interval]) -> Iterable[Interval]:
    """Waits for arrays in which something was transferred and no device computed.

    A transfer that begins late, since its thread was given no core, is recorded from its late beginning only.
    """

    def overlap(spans: Sequence[Interval], starts: Sequence[float], event: HostEvent) -> bool:
        at = bisect_left(starts, event.end) - 1
        return at >= 0 and spans[at][1] > event.start

    moved, computed = ([start for start, _ in spans] for spans in (transfers, busy))
    for events in trace.host.values():
        for event in events:
            if _WAIT.search(event.name) and overlap(transfers, moved, event) and not overlap(busy, computed, event):
                yield event.start, event.end


def _collections(events: Sequence[HostEvent]) -> Iterable[Interval]:
    """From the call before a collection to the one after it."""
    marks = sorted(each for each in events if _GARBAGE.match(each.name))
    for before, after in zip(marks[::2], marks[1::2], strict=False):
        yield before.start, after.end
