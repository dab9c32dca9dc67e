"""A device, or a MIG instance: its questions one by one."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

from jaxobs.drivers.cuda_devices import Identity
from jaxobs.drivers.nvml.traffic import Traffic
from jaxobs.drivers.nvml.xids import Xids
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


class Device:
    """A device, or a MIG instance. Not for two threads at once."""

    def __init__(self, api: Any, handle: Any, identity: Identity, driver: str) -> None:
        self.identity = identity
        self._api = api
        self._handle = handle
        self._plain = AcceleratorState(
            time=0.0,
            device=identity.name,
            uuid=identity.uuid,
            index=identity.index,
            model=identity.model,
            pci_bus_id=identity.pci_bus_id,
            driver_version=driver,
            parent=identity.parent,
        )
        self._gone = {getattr(api, name) for name in _GONE if hasattr(api, name)}
        self._hopeless = {getattr(api, name) for name in _NEVER if hasattr(api, name)}
        self._never: set[tuple[Any, ...]] = set()
        self._lost = False
        self._traffic = Traffic(api)
        self._xids = Xids(api)

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
        self._traffic = Traffic(self._api)
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
