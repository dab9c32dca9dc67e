# ruff: noqa: N802  (the names are those of NVML)
"""NVIDIA's management library without NVIDIA: the real `pynvml` talks to it, in this process.

nvml = FakeNvml()
nvml.device(0, uuid="GPU-aaaa", name="Fake H100", power=350_000, memory__used=2**30, memory__total=80 * 2**30)
with nvml:
    ...                          # whoever imports pynvml here sees one device
    nvml.device(0, lost=15)      # and now it has fallen off the bus
    nvml.device(0, lost=None, hang=1, power="error 999")

What is not named is "not supported", as on a real device. `error N` is answered with that NVML error, `lost=N` answers
everything about the device with it, and `hang` answers nothing for as long as it is set. Two underscores stand for a
dot.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

_INVALID, _NOT_SUPPORTED, _NOT_FOUND, _TOO_SMALL, _TIMEOUT = 2, 3, 6, 7, 10
_MOST_INSTANCES = 7
_XID = 8
"""`nvmlEventTypeXidCriticalError`."""

_ANSWERS = {
    "nvmlDeviceGetCurrentClocksThrottleReasons": ("number", "throttle"),
    "nvmlDeviceGetEnforcedPowerLimit": ("number", "power.limit"), "nvmlDeviceGetMemoryInfo": ("figures", "memory"),
    "nvmlDeviceGetMigMode": ("number", "mig"), "nvmlDeviceGetName": ("text", "name"),
    "nvmlDeviceGetPowerUsage": ("number", "power"), "nvmlDeviceGetTemperature": ("number", "temperature"),
    "nvmlDeviceGetTotalEnergyConsumption": ("number", "energy"), "nvmlDeviceGetUUID": ("text", "uuid"),
    "nvmlDeviceGetUtilizationRates": ("figures", "utilization"),
}  # fmt: skip
_FIGURES = {"memory": ("total", "used"), "utilization": ("gpu", "memory")}


class _Refused(Exception):  # noqa: N818 - an answer of the library
    def __init__(self, code: int) -> None:
        self.code = code


class FakeNvml:
    """A driver without devices, until `device` adds some. As a context: what `pynvml` talks to in this process."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {"driver": "570.86.10", "count": "0"}
        self._library = _Library(self._values)
        self._before: tuple[Any, dict[str, Any]] | None = None

    def set(self, **values: Any) -> None:
        """Sets answers of the whole library: `init="error 9"`, `driver`. None takes one away."""
        self._put("", values)

    def device(self, index: int | str, **values: Any) -> None:
        """Sets answers of a device, or of a MIG instance (`"0/1"`), in NVML's units, and adds the device if needed."""
        if isinstance(index, int):
            self._values["count"] = str(max(int(self._values["count"]), index + 1))
        self._put(f"{index}.", values)

    def field(self, index: int | str, field: int, value: Any, *, scope: int = 0) -> None:
        """Sets a field value of a device, by NVML's number; the scope of NVLink fields is the link."""
        self._put(f"{index}.", {f"field.{field}.{scope}": value})

    def _put(self, prefix: str, values: dict[str, Any]) -> None:
        for name, value in values.items():
            key = prefix + name.replace("__", ".")
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = str(value)

    def __enter__(self) -> FakeNvml:
        import pynvml

        self._before = pynvml.nvmlLib, dict(pynvml._nvmlGetFunctionPointer_cache)
        # pynvml keeps the first library that it loads, and its functions: put ours in their place.
        pynvml.nvmlLib = self._library
        pynvml._nvmlGetFunctionPointer_cache.clear()
        return self

    def __exit__(self, *error: object) -> None:
        import pynvml

        assert self._before is not None
        pynvml.nvmlLib = self._before[0]
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml._nvmlGetFunctionPointer_cache.update(self._before[1])


class _Library:
    """The library as `ctypes.CDLL` shows it: functions that fill what they are pointed to, and return a code."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self._xids_told: Counter[int] = Counter()
        self._watched: list[int] = []
        """The index of the device of each event set."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Returns a plain function: pynvml sets attributes on some of them."""
        if name == "nvmlErrorString":
            return lambda code: f"fake error {code}".encode()
        if name in _ANSWERS:
            kind, key = _ANSWERS[name]
            return _returning_codes(functools.partial(getattr(self, f"_answer_{kind}"), key))
        if not name.startswith("nvml"):
            raise AttributeError(name)
        return _returning_codes(getattr(self, f"_{name}"))

    def _find(self, key: str, default: str | None = None) -> str:
        value = self._values.get(key, default)
        if value is None:
            raise _Refused(_NOT_SUPPORTED)
        if value.startswith("error "):
            raise _Refused(int(value.split()[1]))
        return value

    def _generation(self, index: int) -> int:
        return int(self._values.get(f"{index}.generation", 0))

    def _handle(self, index: int, instance: int = 0) -> int:
        """Returns a handle, by bytes: 1 + index, 1 + number of the MIG instance, generation."""
        return (index + 1) | instance << 8 | self._generation(index) << 16

    def _ask(self, handle: Any, what: str) -> str:
        number = _number(handle)
        index, instance = (number & 0xFF) - 1, number >> 8 & 0xFF
        device = f"{index}/{instance - 1}" if instance else str(index)
        while f"{device}.hang" in self._values:
            time.sleep(0.005)
        if f"{device}.lost" in self._values:
            raise _Refused(int(self._values[f"{device}.lost"]))
        if number >> 16 != self._generation(index):  # reset since: handles from before are worth nothing
            raise _Refused(_INVALID)
        return self._find(f"{device}.{what}")

    def _answer_number(self, key: str, device: Any, *values: Any) -> None:
        for value in values:
            if hasattr(value, "_obj"):  # a reference, and no choice of what is asked for
                value._obj.value = int(self._ask(device, key))

    def _answer_text(self, key: str, device: Any, text: Any, size: Any) -> None:
        text.value = self._ask(device, key).encode()

    def _answer_figures(self, key: str, device: Any, figures: Any) -> None:
        for name in _FIGURES[key]:
            setattr(figures._obj, name, int(self._ask(device, f"{key}.{name}")))

    def _nvmlInitWithFlags(self, flags: Any) -> None:
        self._find("init", "")

    def _nvmlShutdown(self) -> None:
        pass

    def _nvmlSystemGetDriverVersion(self, version: Any, size: Any) -> None:
        version.value = self._find("driver").encode()

    def _nvmlDeviceGetCount_v2(self, count: Any) -> None:
        _set(count, self._find("count"))

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, device: Any) -> None:
        self._find(f"{index.value}.handle", "")
        _point(device, self._handle(index.value))

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, number: Any, instance: Any) -> None:
        _point(instance, _number(device) | (number.value + 1) << 8)
        try:
            self._ask(instance._obj, "uuid")
        except _Refused:
            raise _Refused(_NOT_FOUND) from None

    def _nvmlDeviceGetHandleByUUID(self, uuid: Any, device: Any) -> None:
        for index in range(int(self._find("count"))):
            for instance in range(_MOST_INSTANCES + 1):
                _point(device, self._handle(index, instance))
                try:
                    if self._ask(device._obj, "uuid") == uuid.value.decode():
                        return
                except _Refused:
                    continue
        raise _Refused(_NOT_FOUND)

    def _nvmlDeviceGetPciInfo_v3(self, device: Any, pci: Any) -> None:
        pci._obj.busId = self._ask(device, "pci").encode()

    def _nvmlDeviceGetMaxMigDeviceCount(self, device: Any, count: Any) -> None:
        count._obj.value = _MOST_INSTANCES

    def _nvmlDeviceGetMemoryInfo_v2(self, device: Any, memory: Any) -> None:
        self._find("memory_v2", "")
        self._answer_figures("memory", device, memory)

    def _nvmlDeviceGetClockInfo(self, device: Any, clock: Any, megahertz: Any) -> None:
        _set(megahertz, self._ask(device, {1: "clock.sm", 2: "clock.memory"}[clock.value]))

    def _nvmlDeviceGetCurrentClocksEventReasons(self, device: Any, bits: Any) -> None:
        self._find("event_reasons", "")  # a driver before 535 has only the older name
        _set(bits, self._ask(device, "throttle"))

    def _nvmlDeviceGetTotalEccErrors(self, device: Any, error: Any, counter: Any, count: Any) -> None:
        kind, period = ("corrected", "uncorrected")[error.value], ("volatile", "aggregate")[counter.value]
        _set(count, self._ask(device, f"ecc.{kind}.{period}"))

    def _nvmlDeviceGetFieldValues(self, device: Any, count: Any, values: Any) -> None:
        try:
            self._ask(device, "fields")  # an error here refuses them all
        except _Refused as refused:
            if refused.code != _NOT_SUPPORTED:
                raise
        for value in values._obj:
            key = f"field.{value.fieldId}.{value.scopeId}"
            try:
                value.value.ullVal = int(self._ask(device, key))
                value.nvmlReturn = 0
            except _Refused as refused:
                value.nvmlReturn = refused.code
            try:
                value.valueType = int(self._ask(device, f"{key}.type"))
            except _Refused:
                value.valueType = 3  # unsigned, of 64 bits

    def _nvmlEventSetCreate(self, events: Any) -> None:
        self._watched.append(-1)
        _point(events, len(self._watched))

    def _nvmlEventSetFree(self, events: Any) -> None:
        self._watched[_number(events) - 1] = -1

    def _nvmlDeviceGetSupportedEventTypes(self, device: Any, types: Any) -> None:
        self._ask(device, "xid")
        types._obj.value = _XID

    def _nvmlDeviceRegisterEvents(self, device: Any, types: Any, events: Any) -> None:
        self._watched[_number(events) - 1] = (_number(device) & 0xFF) - 1

    def _nvmlEventSetWait_v2(self, events: Any, event: Any, milliseconds: Any) -> None:
        index = self._watched[_number(events) - 1]
        # The codes so far, or `none`; a lost device has reported them before.
        codes = [int(code) for code in self._find(f"{index}.xid").split() if code != "none"]
        told = self._xids_told[index]
        if told >= len(codes):
            raise _Refused(_TIMEOUT)
        self._xids_told[index] += 1
        event._obj.eventType, event._obj.eventData = _XID, codes[told]

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, device: Any, count: Any, processes: Any) -> None:
        # `4711:1024 4712:2048`, or `none`; a size of `-` is one that the driver does not report.
        found = [one.split(":") for one in self._ask(device, "processes").split() if ":" in one]
        room, count._obj.value = count._obj.value, len(found)
        if len(found) > room:
            raise _Refused(_TOO_SMALL)
        for place, (pid, size) in enumerate(found):
            processes[place].pid = int(pid)
            processes[place].usedGpuMemory = 2**64 - 1 if size == "-" else int(size)


def _returning_codes(function: Callable[..., None]) -> Callable[..., int]:
    def call(*arguments: Any) -> int:
        try:
            function(*arguments)
        except _Refused as refused:
            return refused.code
        return 0

    return call


def _set(reference: Any, value: str) -> None:
    reference._obj.value = int(value)


def _number(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def _point(reference: Any, number: int) -> None:
    """Writes a number instead of a pointer, as the library's handles are not addresses."""
    ctypes.memmove(reference, ctypes.byref(ctypes.c_void_p(number)), ctypes.sizeof(ctypes.c_void_p))
