"""Accelerators as their driver sees them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

THROTTLE_REASONS = (
    "sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown",
    "sync_boost",
)  # fmt: skip
"""Why a busy accelerator runs slower than it could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorProcess:
    """A process that has memory on an accelerator."""

    pid: int
    """As the driver counts them: in a container this may differ from the pid that the process knows."""
    bytes: int | None
    """None if the driver does not report it."""
    ours: bool | None
    """True for this process; None if our pid is not among them, and any of them could be this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorState:
    """An accelerator as its driver sees it, whichever process uses it. What the driver does not report is `None` or
    absent."""

    time: float
    """Time of the reading."""
    device: str
    """JAX's name, `gpu:0`, if the device is identified; otherwise `nvml:<index>`, and `nvml:<index>/<instance>`."""
    uuid: str
    """Empty for a TPU, which has none."""
    index: int
    """The driver's number of the device."""
    model: str | None = None
    pci_bus_id: str | None = None
    driver_version: str | None = None
    parent: str | None = None
    """UUID of the device that a MIG instance belongs to; None for a whole device."""
    up: bool = True
    """False if the device did not answer: all figures except counts of past events are then absent."""
    trouble: str | None = None
    """Why it did not answer."""
    utilization: float | None = None
    """Share of the driver's sample period in which a program ran on it."""
    tensorcore_utilization: float | None = None
    """Utilization of a TPU's matrix units; if several cores are one device, their mean."""
    memory_controller_utilization: float | None = None
    """Share of the driver's sample period in which its memory was read or written."""
    memory_bandwidth_utilization: float | None = None
    """Share of a TPU's memory bandwidth that is used."""
    memory_used_bytes: int | None = None
    """Memory used by all processes; without what the driver reserves, if the driver distinguishes these."""
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    energy_joules: float | None = None
    """Since the driver was loaded."""
    temperature_celsius: int | None = None
    sm_clock_hertz: int | None = None
    memory_clock_hertz: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    """Why its clocks are not higher, now; `THROTTLE_REASONS` are those that slow a busy device down."""
    slowdown: float | None = None
    """How much a TPU is throttled, in tenths."""
    ecc_errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """`corrected` and `uncorrected`, each `volatile` (since the driver was loaded) and `aggregate` (lifetime)."""
    xid_errors: Mapping[str, int] | None = None
    """Errors that the driver reported while jaxobs was running, by Xid code."""
    pcie_bytes: Mapping[str, int] = field(default_factory=dict)
    """`transmit` and `receive`, as the device counts them."""
    nvlink_bytes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By link, `transmit` and `receive`; empty while a link that used to count does not."""
    nvlink_links: int | None = None
    """Number of working links."""
    link_faults: Mapping[str, int] = field(default_factory=dict)
    """State of each link between a TPU's chips, from 0 (healthy) to 10 (unusable)."""
    processes: tuple[AcceleratorProcess, ...] | None = None
