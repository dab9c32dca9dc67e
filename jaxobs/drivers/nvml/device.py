"""A device, or a MIG instance: its questions one by one."""

import dataclasses
import os
import time
from collections import Counter
from typing import Any

from jaxobs.drivers.cuda_devices import Identity
from jaxobs.facts.accelerators import AcceleratorProcess, AcceleratorState

MOST_PROCESSES = 64

_GONE = (
    "NVML_ERROR_UNINITIALIZED",
    "NVML_ERROR_DRIVER_NOT_LOADED",
    "NVML_ERROR_TIMEOUT",
    "NVML_ERROR_GPU_IS_LOST",
    "NVML_ERROR_RESET_REQUIRED",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    "NVML_ERROR_GPU_NOT_FOUND",
)
"""Errors after which no other question is worth asking."""
_NEVER = ("NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_FUNCTION_NOT_FOUND", "NVML_ERROR_INVALID_ARGUMENT")
"""Errors that the same question will meet again."""

_REASONS = {
    0x001: "gpu_idle",
    0x002: "application_clocks",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clocks",
}
"""`nvmlClocksEventReason*`."""

MOST_XIDS = 32
"""Codes that are counted separately; NVIDIA lists about 170, of which a device sees a few."""
_MOST_EVENTS = 256
"""Xid events taken at a time."""

_PCIE = {"NVML_FI_DEV_PCIE_COUNT_TX_BYTES": "transmit", "NVML_FI_DEV_PCIE_COUNT_RX_BYTES": "receive"}
_NVLINK = {
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX": ("transmit", 1024),
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX": ("receive", 1024),
    "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES": ("transmit", 1),
    "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES": ("receive", 1),
}
"""Counts by link, and their unit in bytes; some generations know the first pair, some the second."""
_WIDE = {2: "ulVal", 3: "ullVal", 4: "sllVal"}
"""Types of 64 bits. A byte count of 32 bits would wrap within a second, and is not a count."""


class Device:
    """A device, or a MIG instance. Not for two threads at once."""

    def __init__(self, api: Any, handle: Any, identity: Identity, driver: str) -> None:
        self.identity = identity
        self._api = api
        self._handle = handle
        self._plain = AcceleratorState(
            time=0.0, device=identity.name, uuid=identity.uuid, index=identity.index, model=identity.model,
            pci_bus_id=identity.pci_bus_id, driver_version=driver, parent=identity.parent,
        )  # fmt: skip
        self._gone = {getattr(api, name) for name in _GONE if hasattr(api, name)}
        self._hopeless = {getattr(api, name) for name in _NEVER if hasattr(api, name)}
        self._never: set[tuple[Any, ...]] = set()
        self._lost = False
        self._traffic = _Traffic(api)
        self._xids = _Xids(api)

    def read(self) -> AcceleratorState:
        """Returns the device's state as the driver reports it now; raises nothing that NVML raises."""
        now, trouble, measured = time.time(), None, {}
        try:
            if self._lost:
                self._find_again()
            if self.identity.parent is None:  # a lost device's last words come first
                self._xids.take(self._handle)
            measured = self._ask_about_memory()
            if self.identity.parent is None:
                measured |= self._ask_about_the_board()
        except self._api.NVMLError as error:
            trouble, measured = str(error), {}
        self._lost = trouble is not None
        return dataclasses.replace(
            self._plain, time=now, up=trouble is None, trouble=trouble, xid_errors=self._xids.counts(), **measured
        )

    def silent(self, trouble: str) -> AcceleratorState:
        """Returns the state of a device that is not asked, with the trouble as the reason."""
        return dataclasses.replace(self._plain, time=time.time(), up=False, trouble=trouble)

    def _find_again(self) -> None:
        """After a reset the old handle is worth nothing, and the device may support what it did not before."""
        self._handle = self._api.nvmlDeviceGetHandleByUUID(self.identity.uuid)
        self._never.clear()
        self._traffic = _Traffic(self._api)
        self._xids.listen_again()

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Returns the answer of one function of NVML; None where there is none."""
        question = (name, *arguments)
        function = getattr(self._api, name, None)
        if function is None or question in self._never:
            return None
        try:
            return function(self._handle, *arguments)
        except self._api.NVMLError as error:
            if error.value in self._gone:
                raise
            if error.value in self._hopeless:
                self._never.add(question)
            return None

    def _ask_about_memory(self) -> dict[str, Any]:
        memory = self._ask("nvmlDeviceGetMemoryInfo", self._api.nvmlMemory_v2) or self._ask("nvmlDeviceGetMemoryInfo")
        return {
            "memory_used_bytes": None if memory is None else memory.used,
            "memory_total_bytes": None if memory is None else memory.total,
            "ecc_errors": self._ecc_errors(),
            "processes": self._processes(),
        }

    def _ask_about_the_board(self) -> dict[str, Any]:
        api = self._api
        share = self._ask("nvmlDeviceGetUtilizationRates")
        return {
            "utilization": None if share is None else share.gpu / 100,
            "memory_controller_utilization": None if share is None else share.memory / 100,
            "power_watts": _scaled(self._ask("nvmlDeviceGetPowerUsage"), 1e-3),
            "power_limit_watts": _scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "energy_joules": _scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption"), 1e-3),
            "temperature_celsius": _scaled(self._ask("nvmlDeviceGetTemperature", api.NVML_TEMPERATURE_GPU), 1),
            "sm_clock_hertz": _scaled(self._ask("nvmlDeviceGetClockInfo", api.NVML_CLOCK_SM), 1_000_000),
            "memory_clock_hertz": _scaled(self._ask("nvmlDeviceGetClockInfo", api.NVML_CLOCK_MEM), 1_000_000),
            "throttle_reasons": self._throttle_reasons(),
            **self._traffic.read(self._handle),
        }

    def _throttle_reasons(self) -> tuple[str, ...] | None:
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:  # a driver before 535
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        if bits is None:
            return None
        return tuple(name for bit, name in _REASONS.items() if bits & bit)

    def _ecc_errors(self) -> dict[str, dict[str, int]]:
        api = self._api
        found: dict[str, dict[str, int]] = {}
        for error, kind in (
            ("corrected", api.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            ("uncorrected", api.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        ):
            for counter, period in (("volatile", api.NVML_VOLATILE_ECC), ("aggregate", api.NVML_AGGREGATE_ECC)):
                count = self._ask("nvmlDeviceGetTotalEccErrors", kind, period)
                if count is not None:
                    found.setdefault(error, {})[counter] = count
        return found

    def _processes(self) -> tuple[AcceleratorProcess, ...] | None:
        # By version: the unversioned function of pynvml raises an error of its own where the driver is older.
        found = self._ask("nvmlDeviceGetComputeRunningProcesses_v3")
        if found is None:
            found = self._ask("nvmlDeviceGetComputeRunningProcesses_v2")
        if found is None:
            return None
        own = os.getpid()
        known = any(each.pid == own for each in found)
        return tuple(
            AcceleratorProcess(pid=each.pid, bytes=each.usedGpuMemory, ours=each.pid == own if known else None)
            for each in found[:MOST_PROCESSES]
        )


def _scaled(value: int | None, unit: float) -> Any:
    """In base units; the driver says "not available" by all bits set as well."""
    return None if value is None or value in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF) else value * unit


class _Traffic:
    """Bytes over PCI Express and NVLink: counts of a device, found out at the first reading.

    NVML offers rates over 20 ms as well: every few seconds they say nothing of what lay in between, and asking for one
    takes those 20 ms.
    """

    def __init__(self, api: Any) -> None:
        self._api = api
        self._fields: list[tuple[int, int]] | None = None

    def read(self, handle: Any) -> dict[str, Any]:
        """Counts of bytes, in one question for all; after the first time only for those that were answered."""
        api = self._api
        if self._fields is None:
            links = range(getattr(api, "NVML_NVLINK_MAX_LINKS", 18))
            wanted = [(getattr(api, name, None), 0) for name in _PCIE]
            wanted += [(getattr(api, name, None), link) for name in _NVLINK for link in links]
            answers = self._values(handle, [(field, link) for field, link in wanted if field is not None])
            if answers is not None:
                self._fields = list(answers)
        else:
            answers = self._values(handle, self._fields)
        if answers is None:
            answers = {}
        pcie: dict[str, int] = {}
        nvlink: dict[str, dict[str, int]] = {}
        for name, direction in _PCIE.items():
            if (value := answers.get((getattr(api, name, -1), 0))) is not None:
                pcie[direction] = value
        for name, (direction, unit) in _NVLINK.items():
            for (field, link), value in answers.items():
                if field == getattr(api, name, -1):
                    nvlink.setdefault(str(link), {}).setdefault(direction, value * unit)
        known = self._links()
        return {
            "pcie_bytes": pcie,
            # A sum over fewer links than before would look as if it had begun anew.
            "nvlink_bytes": nvlink if known <= answers.keys() else {},
            "nvlink_links": len(nvlink) if known else None,
        }

    def _links(self) -> set[tuple[int, int]]:
        """Returns the fields of NVLink that counted at the first reading."""
        fields = {getattr(self._api, name, -1) for name in _NVLINK}
        return {each for each in self._fields or () if each[0] in fields}

    def _values(self, handle: Any, wanted: list[tuple[int, int]]) -> dict[tuple[int, int], int] | None:
        """Returns the answers there are, of 64 bits; None where the question failed as a whole."""
        if not wanted:
            return {}
        try:
            values = self._api.nvmlDeviceGetFieldValues(handle, wanted)
        except self._api.NVMLError:
            return None
        return {
            question: int(getattr(value.value, _WIDE[value.valueType]))
            for question, value in zip(wanted, values, strict=True)
            if value.nvmlReturn == self._api.NVML_SUCCESS and value.valueType in _WIDE
        }


class _Xids:
    """Counts of the Xids that the driver has reported of one device since jaxobs listens."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._events: Any = None
        self._refused = False
        self._counts: Counter[str] | None = None

    def counts(self) -> dict[str, int] | None:
        """By code; None where the driver reports none of this device."""
        return None if self._counts is None else dict(self._counts)

    def listen_again(self) -> None:
        """The device has another handle now; what was counted stays."""
        self._events, self._refused = None, False

    def take(self, handle: Any) -> None:
        """Counts what was reported since the last time; never waits."""
        if self._events is None and not self._refused:
            self._listen(handle)
        if self._events is None or self._counts is None:
            return
        for _ in range(_MOST_EVENTS):
            try:
                event = self._api.nvmlEventSetWait_v2(self._events, 0)
            except self._api.NVMLError:  # a timeout: there are no more
                return
            code = str(event.eventData)
            self._counts[code if code in self._counts or len(self._counts) < MOST_XIDS else "other"] += 1

    def _listen(self, handle: Any) -> None:
        api = self._api
        self._refused = True
        try:
            if api.nvmlDeviceGetSupportedEventTypes(handle) & api.nvmlEventTypeXidCriticalError:
                events = api.nvmlEventSetCreate()
                api.nvmlDeviceRegisterEvents(handle, api.nvmlEventTypeXidCriticalError, events)
                self._events, self._refused = events, False
                self._counts = Counter() if self._counts is None else self._counts
        except api.NVMLError:
            return
