"""Live arrays, each buffer counted once: per device, and grouped by shape, type, sharding and kind of memory.

JAX lists an array twice once its shards were looked at: `x.addressable_shards[0].data` is an array of its own over the
same buffer, and reading a sharded array's values makes one for each device. Two rules tell them:

- a shard of an array on several devices has the very traceback object that its array has, which JAX creates for each
  call that makes arrays; it is left out while its array is in the list;
- arrays of one call on one device that have the same address are one. Only arrays that are ready are asked for it: to
  ask would wait for the others. Those count as they are.

Arrays of which an execution failed have no buffer and do not count, if they are large.

Limit: the single arrays that `jax.make_array_from_single_device_arrays` was given count, like the result, for
as long as the program keeps both.
"""

import functools
import math
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jaxobs import internals
from jaxobs.facts.memory import ArrayGroup
from jaxobs.internals.source_files import is_jax, is_plumbing, shown

STRETCH = 0.001
"""Seconds for which the walk keeps the interpreter to itself."""
LARGE = 2**20
"""Bytes of a shard from which on an array is asked whether its execution failed, which takes 2 µs."""
NEWEST = 16
"""Arrays of each kind whose call site can be reported: those that were made last."""
MOST_SITES = 8
_PIECE = 128
_MOST_TEXT = 200

Key = tuple[tuple[int, ...], str, str, str | None]
"""Properties that all arrays of a group share: shape, type, sharding as text, kind of memory."""


@dataclass(slots=True)
class _Alike:
    """Arrays of one sharding, shape and type.

    Of single arrays the addresses and the numbers of their tracebacks, in two lists: a tuple for each array would set
    off Python's garbage collection, which stops the program for longer than all the rest.
    """

    sharding: Any
    shape: tuple[int, ...]
    dtype: Any
    single: bool
    large: bool = False
    number: int = 0
    addresses: list[int | None] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    traces: set[int] = field(default_factory=set)
    makers: deque[Any] = field(default_factory=lambda: deque(maxlen=NEWEST))
    """JAX's tracebacks of where the newest of them were made."""

    def part(self) -> tuple[int, ...]:
        return tuple(self.sharding.shard_shape(self.shape))


@dataclass(frozen=True, slots=True)
class Row:
    """Arrays of one sharding, shape and type, as `Live` keeps them."""

    sharding: Any
    shape: tuple[int, ...]
    dtype: Any
    number: int
    nbytes: int
    """Bytes of one shard."""
    makers: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Live:
    """The live arrays of a backend: what is alike together, its devices, and its bytes on each of them."""

    rows: tuple[Row, ...]

    @functools.cached_property
    def per_device(self) -> dict[Any, dict[str, tuple[int, int]]]:
        """Number and bytes of the shards on each device by kind of memory."""
        found: dict[Any, dict[str, tuple[int, int]]] = {}
        for row in self.rows:
            for device in row.sharding.addressable_devices:
                kinds = found.setdefault(device, {})
                kind = memory_kind(row.sharding, device) or ""
                count, size = kinds.get(kind, (0, 0))
                kinds[kind] = (count + row.number, size + row.number * row.nbytes)
        return found

    @functools.cached_property
    def _alike(self) -> dict[Key, tuple[int, dict[str, int], list[Any]]]:
        """Number of arrays, bytes by device and tracebacks of the newest arrays, by group."""
        found: dict[Key, tuple[int, dict[str, int], list[Any]]] = {}
        for row in self.rows:
            devices = sorted(row.sharding.addressable_devices, key=lambda device: device.id)
            kind = memory_kind(row.sharding, devices[0]) if devices else None
            key = (row.shape, str(row.dtype), _text(row.sharding, devices), kind)
            count, by_device, makers = found.get(key, (0, {}, []))
            for device in devices:
                name = internals.device_name(device)
                by_device[name] = by_device.get(name, 0) + row.number * row.nbytes
            found[key] = (count + row.number, by_device, [*makers, *row.makers])
        return found

    def groups(self, *, sites: bool = False) -> list[ArrayGroup]:
        """The groups, the largest first; with `sites`, where the newest arrays of each were made."""
        made = [
            ArrayGroup(
                shape=key[0], dtype=key[1], sharding=key[2], memory_kind=key[3], count=count,
                bytes_per_device=by_device, call_sites=self.call_sites(key) if sites else {},
            )
            for key, (count, by_device, _) in self._alike.items()
        ]  # fmt: skip
        return sorted(made, key=lambda group: (-group.bytes, group.shape, group.dtype, group.sharding))

    def call_sites(self, key: Key) -> dict[str, int]:
        """Lines of the user's code that made the newest arrays of a group, and how many of these, the most first."""
        _, _, makers = self._alike.get(key, (0, {}, []))
        found = Counter(site for each in makers if (site := _site(each)) is not None)
        return dict(found.most_common(MOST_SITES))


def groups(client: Any) -> list[ArrayGroup]:
    """The live arrays of a backend by shape, type, sharding and kind of memory, the largest group first.

    Deleted and donated arrays do not count, and a buffer counts once. Keeps no array alive. Takes about 2 µs an array,
    and offers the interpreter to other threads every millisecond.
    """
    return read(client).groups()


def read(client: Any) -> Live:
    """Walks the live arrays of a backend once."""
    found = _walk(client.live_arrays())
    parents: dict[tuple[Any, ...], set[int]] = {}
    for group in found:
        if not group.single:
            parents.setdefault((group.part(), group.dtype, group.sharding.memory_kind), set()).update(
                group.traces - {0}
            )
    rows = []
    for group in found:
        part = group.part()
        nbytes = math.prod(part) * group.dtype.itemsize
        number = group.number
        if group.single:
            number = _buffers(group, parents.get((part, group.dtype, group.sharding.memory_kind), set()), nbytes > 0)
        if number:
            rows.append(Row(group.sharding, group.shape, group.dtype, number, nbytes, tuple(group.makers)))
    return Live(tuple(rows))


def _buffers(each: _Alike, parents: set[int], shared: bool) -> int:
    """How many buffers arrays on one device have that no other array shares."""
    own, seen, unknown = set(), set(), 0
    for address, trace in zip(each.addresses, each.numbers, strict=True):
        if trace in parents:
            seen.add(address)
        elif address is None or not shared:
            unknown += 1
        else:
            own.add(address)
    return len(own - seen) + unknown


def _walk(arrays: list[Any]) -> Iterable[_Alike]:
    """Groups arrays that are alike; takes the arrays out of the list."""
    found: dict[tuple[Any, ...], _Alike] = {}
    since, left = -math.inf, 0
    # Unique, whatever is deleted later: those in the list are there together. 0 where JAX keeps no tracebacks.
    traces: list[Any] = []
    numbers: list[int] = []
    times: Counter[int] = Counter()
    for start in range(0, len(arrays), _PIECE):
        since = _offer(since)
        piece = [getattr(array, "traceback", None) for array in arrays[start : start + _PIECE]]
        named = [0 if trace is None else id(trace) for trace in piece]
        traces += piece
        numbers += named
        times.update(named)
    while arrays:
        left -= 1
        if left <= 0:
            left = _PIECE
            since = _offer(since)
        # One by one: what the program lets go of meanwhile is not kept alive for longer than needed.
        # The oldest first: JAX lists the newest first.
        array, number, trace = arrays.pop(), numbers.pop(), traces.pop()
        try:
            if array.is_deleted():
                continue
            sharding, shape, dtype = array.sharding, array.shape, array.dtype
            devices = sharding.device_set
            single = len(devices) == 1
            # To compare shardings takes 5 µs; those on one device are an object of its own for each array.
            where = (*devices, sharding.memory_kind) if single else sharding
            key = (where, shape, dtype)
            each = found.get(key)
            if each is None:
                each = found[key] = _Alike(sharding, shape, dtype, single)
                each.large = math.prod(each.part()) * dtype.itemsize >= LARGE
            if each.large and _failed(array):
                continue
            if single:
                each.addresses.append(_address(array) if number == 0 or times[number] > 1 else None)
                each.numbers.append(number)
            else:
                each.traces.add(number)
                each.number += 1
            each.makers.append(trace)
        except RuntimeError:  # deleted by another thread while we looked at it
            continue
    return found.values()


def _offer(since: float) -> float:
    """Offers the interpreter to other threads, if it was kept for a stretch; returns since when it is kept now."""
    if time.perf_counter() - since > STRETCH:
        time.sleep(0)
        return time.perf_counter()
    return since


def _site(traceback: Any) -> str | None:
    """`file:line` of the innermost frame in the user's code; None where JAX keeps no tracebacks."""
    for frame in () if traceback is None else traceback.frames:
        if not is_jax(frame.file_name) and not is_plumbing(frame.file_name):
            return f"{shown(frame.file_name)}:{frame.line_num}"
    return None


def _failed(array: Any) -> bool:
    """Whether what should have made the array failed: there is no buffer, for lack of memory as the case may be."""
    try:
        if array.is_ready():
            array.block_until_ready()
    except RuntimeError:
        return True
    return False


def _address(array: Any) -> int | None:
    """Returns the address of an array's buffer on one device; None if only waiting would tell."""
    try:
        if not array.is_ready():
            return None
        array.block_until_ready()  # raises what the execution failed with: asked for its address, XLA ends the process
        return int(array.unsafe_buffer_pointer())
    except (RuntimeError, NotImplementedError, ValueError):  # an execution that failed, a backend without addresses
        return None


def memory_kind(sharding: Any, device: Any) -> str | None:
    """Kind of memory that an array lies in; the device's own where its sharding names none."""
    kind = sharding.memory_kind
    return own_memory(device) if kind is None else str(kind)


def own_memory(device: Any) -> str | None:
    """Kind of a device's own memory; None where JAX does not tell."""
    try:
        return str(device.default_memory().kind)
    except internals.UNTOLD:
        return None


def _text(sharding: Any, devices: list[Any]) -> str:
    if len(sharding.device_set) == 1:
        return f"{devices[0].platform}:{devices[0].id}" if devices else type(sharding).__name__
    mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
    axes = getattr(mesh, "shape", None)
    if spec is None or not axes:
        return f"{type(sharding).__name__} over {len(sharding.device_set)} devices"
    places = ", ".join(repr(tuple(each) if isinstance(each, list | tuple) else each) for each in spec)
    over = ", ".join(f"{name}={size}" for name, size in axes.items())
    return f"P({places}) over {over}"[:_MOST_TEXT]
