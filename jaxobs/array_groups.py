"""Live arrays, each buffer counted once: per device, and grouped by shape, type, sharding and kind of memory.

JAX lists an array twice once its shards were looked at: `x.addressable_shards[0].data` is an array of its own over the
same buffer, and reading a sharded array's values makes one for each device. Two rules tell them:

- a shard of an array on several devices has the very traceback object that its array has, which JAX makes anew for each
  call that makes arrays; it is left out while its array is in the list;
- arrays of one call on one device that have the same address are one. Only arrays that are ready are asked for it: to
  ask would wait for the others. Those count as they are.

Arrays of which an execution failed have no buffer and do not count, if they are large.

Limit: the single arrays that `jax.make_array_from_single_device_arrays` was given count beside what it made of them for
as long as the program keeps both.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jaxobs import internals
from jaxobs.facts import ArrayGroup

STRETCH = 0.001
"""Seconds for which the walk keeps the interpreter to itself."""
LARGE = 2**20
"""Bytes of a shard from which on an array is asked whether its execution failed, which takes 2 µs."""
_PIECE = 128
_MOST_TEXT = 200


@dataclass(slots=True)
class _Alike:
    """Arrays of one sharding, shape and type. Their shards, of each: address and number of the traceback."""

    sharding: Any
    shape: tuple[int, ...]
    dtype: Any
    single: bool
    large: bool = False
    number: int = 0
    shards: list[tuple[int | None, int]] = field(default_factory=list)
    traces: set[int] = field(default_factory=set)

    def part(self) -> tuple[int, ...]:
        return tuple(self.sharding.shard_shape(self.shape))


@dataclass(frozen=True)
class Live:
    """The live arrays of a backend: what is alike together, its devices, and its bytes on each of them."""

    rows: tuple[tuple[Any, tuple[int, ...], Any, int, int], ...]
    """Sharding, shape, dtype, number of arrays, and bytes of one shard."""

    @functools.cached_property
    def per_device(self) -> dict[Any, dict[str, tuple[int, int]]]:
        """Number and bytes of the shards on each device by kind of memory."""
        found: dict[Any, dict[str, tuple[int, int]]] = {}
        for sharding, _, _, number, nbytes in self.rows:
            for device in sharding.addressable_devices:
                kinds = found.setdefault(device, {})
                kind = memory_kind(sharding, device) or ""
                count, size = kinds.get(kind, (0, 0))
                kinds[kind] = (count + number, size + number * nbytes)
        return found

    def groups(self) -> list[ArrayGroup]:
        """The groups, the largest first."""
        found: dict[tuple[Any, ...], tuple[int, dict[str, int]]] = {}
        for sharding, shape, dtype, number, nbytes in self.rows:
            devices = sorted(sharding.addressable_devices, key=lambda device: device.id)
            kind = memory_kind(sharding, devices[0]) if devices else None
            key = (shape, str(dtype), _text(sharding, devices), kind)
            count, by_device = found.get(key, (0, {}))
            for device in devices:
                name = f"{device.platform}:{device.id}"
                by_device[name] = by_device.get(name, 0) + number * nbytes
            found[key] = (count + number, by_device)
        made = [
            ArrayGroup(
                shape=shape, dtype=dtype, sharding=text, memory_kind=kind, count=count, bytes_per_device=by_device
            )
            for (shape, dtype, text, kind), (count, by_device) in found.items()
        ]
        return sorted(made, key=lambda group: (-group.bytes, group.shape, group.dtype, group.sharding))


def groups(client: Any) -> list[ArrayGroup]:
    """The live arrays of a backend by shape, type, sharding and kind of memory, the largest group first.

    Deleted and donated arrays do not count, and a buffer counts once. Keeps no array alive. Takes about 2 µs an array,
    and offers the interpreter to other threads every millisecond.
    """
    return read(client).groups()


def read(client: Any) -> Live:
    """Walks the live arrays of a backend once."""
    found = _walk(client.live_arrays())
    parents: set[tuple[Any, ...]] = set()
    for each in found:
        if not each.single:
            part, kind = each.part(), each.sharding.memory_kind
            parents.update((trace, part, each.dtype, kind) for trace in each.traces if trace)
    rows = []
    for each in found:
        part = each.part()
        nbytes = math.prod(part) * each.dtype.itemsize
        if not each.single:
            rows.append((each.sharding, each.shape, each.dtype, each.number, nbytes))
            continue
        number = _buffers(each, part, parents, shared=nbytes > 0)
        if number:
            rows.append((each.sharding, each.shape, each.dtype, number, nbytes))
    return Live(tuple(rows))


def _buffers(each: _Alike, part: tuple[int, ...], parents: set[tuple[Any, ...]], *, shared: bool) -> int:
    """How many buffers arrays on one device have that are no other array's."""
    kind = each.sharding.memory_kind
    own, seen, unknown = set(), set(), 0
    for address, trace in each.shards:
        if parents and (trace, part, each.dtype, kind) in parents:
            seen.add(address)
        elif address is None or not shared:
            unknown += 1
        else:
            own.add(address)
    return len(own - seen) + unknown


def _walk(arrays: list[Any]) -> Iterable[_Alike]:
    """What is alike together; takes the arrays out of the list."""
    found: dict[tuple[Any, ...], _Alike] = {}
    # Unique, whatever is deleted later: those in the list are there together. 0 where JAX keeps no tracebacks.
    numbers = [0 if (trace := getattr(array, "traceback", None)) is None else id(trace) for array in arrays]
    shared = {number for number, times in Counter(numbers).items() if times > 1 or number == 0}
    since, left = time.perf_counter(), _PIECE
    while arrays:
        left -= 1
        if left <= 0:
            left = _PIECE
            if time.perf_counter() - since > STRETCH:
                time.sleep(0)
                since = time.perf_counter()
        # One by one: what the program lets go of meanwhile is not kept alive for longer than needed.
        array, number = arrays.pop(), numbers.pop()
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
                each.shards.append((_address(array) if number in shared else None, number))
            else:
                each.traces.add(number)
                each.number += 1
        except RuntimeError:  # deleted by another thread while we looked at it
            continue
    return found.values()


def _failed(array: Any) -> bool:
    """Whether what should have made the array failed: there is no buffer, for lack of memory as the case may be."""
    try:
        if array.is_ready():
            array.block_until_ready()
    except RuntimeError:
        return True
    return False


def _address(array: Any) -> int | None:
    """Where the buffer of an array on one device lies; None where that is not known without waiting."""
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
    places = ", ".join(_axis(each) for each in spec)
    over = ", ".join(f"{name}={size}" for name, size in axes.items())
    return f"P({places}) over {over}"[:_MOST_TEXT]


def _axis(place: Any) -> str:
    return repr(tuple(place) if isinstance(place, list | tuple) else place)
