"""Arrays that move between host and device, seen on the thread that moves them.

To the host: whoever reads an array's values (`float(x)`, `print(x)`, `np.asarray(x)`, `jax.device_get(x)`) comes by the
property `_value` of JAX's array. It looks first whether an earlier read left the values on the host (`_npy_value`).

- From Python 3.12 on the interpreter says when the code of `_value` begins and returns (`code_events`).
- Python 3.11 has no such thing. There the property `_npy_value` is replaced, while transfers are watched, by one that
  says when it was asked in vain and when it is set: both calls are over before anything of JAX can raise, so that no
  traceback has a frame of ours.

To the device: `batched_device_put` calls a listener that JAX has for its own tests (`util.test_event`) when it begins
and ends; its arguments are read from its frame. Calls that C++ dispatches, of jitted functions and of operations, do
not come by it: of those a hook of JAX's tells, with their arguments (`post_hook`). Single numbers are not counted on
this way: JAX sends them with calls and operations by the thousand.

JAX's CPU backend has no memory of its own. There what would be moved on any other counts, as far as it is seen:
`np.asarray(x)` reads it in place, in C++. In a process with an accelerator the arrays of the CPU backend are on the
host already, and do not count.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.internals import code_events, jax_test_events, post_hook
from jaxobs.internals.backends import default_platform

TO_HOST, TO_DEVICE = "device_to_host", "host_to_device"

_MOST_NESTED = 32
_PUT = "batched_device_put"
_HOST_MEMORY = ("pinned_host", "unpinned_host")


@dataclass(frozen=True, slots=True)
class Moved:
    """An array that was moved."""

    direction: str
    bytes: int
    shape: tuple[int, ...]
    dtype: str
    seconds: float
    """Time that the caller was held for it."""
    waited: bool = False
    """Whether the array was still being computed when asked for: then the time is that of the computation too."""


class _Thread(threading.local):
    """Transfer under way on a thread."""

    read: tuple[int, float, bool] | None = None
    """The read that began last: number of the array, when, and whether it has to be waited for."""

    def __init__(self) -> None:
        self.puts: list[tuple[int, float, BaseException | None]] = []
        """Puts that have begun: number of the frame, when, and the exception that was being handled."""


this_thread = _Thread()


@functools.cache
def _value_code() -> CodeType | None:
    """The code that reads an array's values."""
    from jax._src.array import ArrayImpl

    fits = isinstance(vars(ArrayImpl).get("_npy_value"), property)
    return _code(getattr(ArrayImpl._value, "fget", None), "self") if fits else None


@functools.cache
def _put_code() -> CodeType | None:
    """The code that puts arrays on devices, if it is known and has the variables that we read."""
    from jax._src.interpreters import pxla

    code = _code(getattr(pxla, _PUT, None), "aval", "xs", "devices")
    return code if jax_test_events.reports(code) else None


def _code(fun: Any, *variables: str) -> CodeType | None:
    code = getattr(inspect.unwrap(fun), "__code__", None) if callable(fun) else None
    return code if code is not None and set(variables) <= set(code.co_varnames) else None


def sees_transfers() -> tuple[bool, bool]:
    """Returns whether this JAX lets us see what moves to the host, and to the devices. Wakes nothing."""
    return _value_code() is not None, _put_code() is not None and post_hook.can_hook()


class Watch:
    """Calls `moved` for each array that was moved, with the frame that moved it, on the thread that does."""

    def __init__(self, moved: Callable[[Moved, FrameType], None]) -> None:
        self._moved = moved
        self._on = False
        self._property: Any = None
        """Replacement of `_npy_value`."""
        self._original: Any = None
        self._host_types: tuple[type, ...] = ()
        self._leaves: Callable[[Any], list[Any]] = list
        self._canonical: Callable[[Any], Any] = lambda value: value

    # ---------------------------------------------------------------------------------------- on and off

    def start(self) -> tuple[bool, bool]:
        """Watches; whether what moves to the host is seen, and what moves to the devices."""
        self._on = True
        reads, puts = False, False
        with guarded("transfers.start"):
            reads = self._watch_reads()
        with guarded("transfers.start"):
            puts = self._listen()
        return reads, puts

    def stop(self) -> None:
        """Watches no more, and puts back what was there before."""
        self._on = False
        code = _value_code()
        if code is not None:
            code_events.unwatch(code)
        if self._property is not None:
            from jax._src.array import ArrayImpl

            if vars(ArrayImpl).get("_npy_value") is self._property:
                ArrayImpl._npy_value = self._original
            self._property = None
        if _put_code() is not None:
            post_hook.take(self._ran)
            jax_test_events.unlisten(self._told)

    def keep(self) -> None:
        """Listens again where somebody has taken our place, as JAX's test utilities do."""
        if self._on:
            self._listen()

    def _watch_reads(self) -> bool:
        code = _value_code()
        if code is None:
            return False
        if code_events.MONITORS:
            return code_events.watch(code, self._reading, self._read)
        if self._property is None:
            self._replace(code)
        return True

    def _replace(self, code: CodeType) -> None:
        """Python 3.11: the property that keeps an array's values on the host says that it is asked, and set."""
        from jax._src.array import ArrayImpl

        original = self._original = vars(ArrayImpl)["_npy_value"]
        read, write = original.fget, original.fset

        def get(array: Any) -> Any:
            value = read(array)
            if value is None:
                frame = sys._getframe(1)
                if frame.f_code is code:
                    self._asked(array, frame)
            return value

        def put(array: Any, value: Any) -> None:
            write(array, value)
            if value is not None:
                frame = sys._getframe(1)
                if frame.f_code is code:
                    self._arrived(array, frame)

        self._property = property(get, put, doc=original.__doc__)
        ArrayImpl._npy_value = self._property

    def _listen(self) -> bool:
        code = _put_code()
        if code is None or not post_hook.can_hook():
            return False
        import jax

        self._host_types, self._leaves = _host_types(), jax.tree_util.tree_leaves
        self._canonical = jax.dtypes.canonicalize_dtype
        jax_test_events.listen(_PUT, code, self._told)
        return post_hook.put(self._ran)

    # ------------------------------------------------------------------------------------------- to the host

    def _reading(self, frame: FrameType) -> None:
        with guarded("transfers.reading"):
            array = frame.f_locals["self"]
            this_thread.read = None
            if not array.is_deleted() and array._npy_value is None:
                _begin(array)

    def _read(self, frame: FrameType, values: Any) -> None:
        if this_thread.read is not None:
            with guarded("transfers.read"):
                self._end(frame.f_locals["self"], frame)

    def _asked(self, array: Any, frame: FrameType) -> None:
        with guarded("transfers.asked"):
            _begin(array)
            if _is_view(array):
                self._end(array, frame)  # JAX keeps no view: nothing will be set

    def _arrived(self, array: Any, frame: FrameType) -> None:
        with guarded("transfers.arrived"):
            self._end(array, frame)

    def _end(self, array: Any, frame: FrameType) -> None:
        began, this_thread.read = this_thread.read, None
        if began is None or began[0] != id(array) or not self._on or _is_on_host(array):
            return
        seconds = perf_counter() - began[1]
        self._moved(Moved(TO_HOST, array.nbytes, array.shape, str(array.dtype), seconds, began[2]), frame)

    # ----------------------------------------------------------------------------------------- to the devices

    def _told(self, name: str, frame: FrameType) -> None:
        if self._on:
            with guarded("transfers.put"):
                self._putting(frame) if name == f"{_PUT}_start" else self._put(frame)

    def _putting(self, frame: FrameType) -> None:
        post_hook.repair()
        puts = this_thread.puts
        if len(puts) >= _MOST_NESTED:
            puts.clear()
        puts.append((id(frame), perf_counter(), sys.exc_info()[1]))

    def _put(self, frame: FrameType) -> None:
        puts = this_thread.puts
        if not puts:
            return
        number, began, before = puts.pop()
        if number != id(frame) or sys.exc_info()[1] is not before:  # it raised
            return
        local = frame.f_locals
        aval, devices = local["aval"], local["devices"]
        if _is_host_memory(devices[0].platform, getattr(local.get("sharding"), "memory_kind", None)):
            return
        sent = [each for each in local["xs"] if not isinstance(each, _array_type())]
        if aval.shape and sent:
            size = sum(math.prod(getattr(each, "shape", ())) for each in sent) * aval.dtype.itemsize
            seconds = perf_counter() - began
            self._moved(Moved(TO_DEVICE, size, tuple(aval.shape), str(aval.dtype), seconds), frame)

    def _ran(self, fun: Any, args: Any, kwargs: Any, output: Any) -> None:
        """A program was handed to the device by C++: NumPy arrays among its arguments were sent to it."""
        with guarded("transfers.ran"):
            kinds: Any = self._host_types
            for leaf in self._leaves((args, kwargs)):
                if isinstance(leaf, kinds) and leaf.ndim and self._on:
                    dtype = self._canonical(leaf.dtype)
                    size = leaf.size * dtype.itemsize
                    self._moved(Moved(TO_DEVICE, size, leaf.shape, str(dtype), 0.0), post_hook.caller(sys._getframe(1)))


# --------------------------------------------------------------------------------------------------- what is where


def _begin(array: Any) -> None:
    post_hook.repair()
    this_thread.read = (id(array), perf_counter(), not array.is_ready())


@functools.cache
def _array_type() -> Any:
    from jax._src.array import ArrayImpl

    return ArrayImpl


def _host_types() -> tuple[type, ...]:
    """NumPy arrays, and those that JAX wraps to remember a type."""
    import numpy as np

    literals = sys.modules.get("jax._src.literals")
    names = ("TypedNdArray", "LiteralArray")
    return (np.ndarray, *(kind for name in names if isinstance(kind := getattr(literals, name, None), type)))


def _is_view(array: Any) -> bool:
    """Returns whether its values are read in place: on the CPU, and whole on one device."""
    device = next(iter(array.sharding.device_set))
    return bool(device.platform == "cpu" and array.is_fully_replicated)


def _is_on_host(array: Any) -> bool:
    sharding = array.sharding
    return _is_host_memory(next(iter(sharding.device_set)).platform, sharding.memory_kind)


def _is_host_memory(platform: str, memory_kind: str | None) -> bool:
    """Returns whether what lies there is on the host, in a process that has other memory as well."""
    return default_platform() not in (None, "cpu") if platform == "cpu" else memory_kind in _HOST_MEMORY


_WAITS = {
    os.path.join("jax", "_src", *path.split("/")): frozenset(names)
    for path, *names in (
        ("array.py", "_value", "block_until_ready"), ("api.py", "block_until_ready", "device_get"),
        ("numpy/array_methods.py", "_item"),
    )
}  # fmt: skip


def waits_for_array(code: CodeType) -> bool:
    """Returns whether a thread whose innermost frame runs this waits for an array, or copies it to the host."""
    name = code.co_name
    return any(name in names and code.co_filename.endswith(file) for file, names in _WAITS.items())
