"""libtpu's monitoring SDK: which figures it gives, and which device of JAX each of them belongs to.

`libtpu.sdk.tpumonitoring.get_metric(name).data()` answers with a list of texts, one for each chip, core or link of this
host, in the order of their numbers, and with an empty one where it cannot tell. What is in a text is reported by
`description()` of libtpu 0.0.51, which the names and formats below follow, and by Google's "TPU Monitoring Library",
https://docs.cloud.google.com/tpu/docs/tpu-monitoring-library. Two things it does not tell and its answers showed:

- it holds the interpreter while it answers: 0.2 s for the first question, then less than a millisecond each. Where
  Google's metadata service does not answer and `TPU_SKIP_MDS_QUERY` is not set, the first took 640 s. So the service is
  asked before, by us, who wait without holding anything;
- a name that it does not know is answered with an empty list.

A list is taken to be in the order of JAX's local devices, sorted by the number of their chip. One whose length does not
fit the devices is left out: no figure beats a wrong one.
"""

from __future__ import annotations

import http.client
import itertools
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxobs.facts.accelerators import AcceleratorState

METADATA = ("metadata.google.internal", 80, "/computeMetadata/v1/instance/attributes/tpu-env")
"""Host, port and path of what libtpu reads at its first question, and tries again for minutes."""
METADATA_SECONDS = 2.0

METRICS = (
    "duty_cycle_pct",
    "tensorcore_util",
    "hbm_util",
    "hbm_capacity_usage",
    "hbm_capacity_total",
    "tpu_throttle_score",
    "ici_link_health",
)
"""Metrics of the SDK that are asked for."""
MOST_LINKS = 64

_THROTTLE = re.compile(r"^\s*\d+\s*-\s*(\d+)\s*$")
_LINK = re.compile(r"^\s*((.+)\.ici\d+[^:]*):\s*(\d+)\s*$")


class Unavailable(Exception):  # noqa: N818 - a state of the machine, not a mistake
    """The SDK cannot be used here; the text says why."""


@dataclass(frozen=True)
class TpuDevice:
    """A TPU device as JAX identifies it."""

    name: str
    kind: str
    chip: Any
    """Equal for the cores of a chip that JAX shows as devices of their own."""
    order: tuple[int, int]
    """Number of the chip on its host, and of the core on its chip."""


class Library:
    """The SDK, loaded."""

    def __init__(self) -> None:
        """Loads libtpu, so only for a process that uses TPUs; raises `Unavailable` if it has no monitoring."""
        if not os.environ.get("TPU_SKIP_MDS_QUERY") and not _metadata_answers():
            raise Unavailable(
                "Google's metadata service does not answer; libtpu would retry for minutes, with the program stopped. "
                "Where the host has none, set TPU_SKIP_MDS_QUERY=1"
            )
        try:
            import libtpu
        except ImportError as error:
            raise Unavailable(f"`import libtpu`: {error}") from None
        self.version: str | None = getattr(libtpu, "__version__", None)
        try:
            from libtpu import sdk
        except ImportError as error:
            raise Unavailable(f"libtpu {self.version or ''}: {error}") from None
        # The first releases called it `monitoring`.
        self._api: Any = getattr(sdk, "tpumonitoring", None) or getattr(sdk, "monitoring", None)
        if self._api is None:
            raise Unavailable(f"libtpu {self.version or ''} has no `sdk.tpumonitoring`")

    def read(self) -> dict[str, list[str]]:
        """Returns the answers by metric, without empty ones; raises `Unavailable` if every question failed."""
        found: dict[str, list[str]] = {}
        error: Exception | None = None
        failed = 0
        for name in METRICS:
            try:
                data = self._api.get_metric(name).data
                values = data() if callable(data) else data
                if values:
                    found[name] = [str(each) for each in values]
            except Exception as raised:
                error, failed = raised, failed + 1
        if failed == len(METRICS):
            raise Unavailable(f"{type(error).__name__}: {error}")
        return found


def _metadata_answers() -> bool:
    host, port, path = METADATA
    connection = http.client.HTTPConnection(host, port, timeout=METADATA_SECONDS)
    try:
        connection.request("GET", path, headers={"Metadata-Flavor": "Google"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def states(
    devices: Sequence[TpuDevice], data: Mapping[str, Sequence[str]], version: str | None
) -> list[AcceleratorState]:
    """Returns the SDK's figures of each device, in the devices' order."""
    ordered = sorted(devices, key=lambda device: device.order)
    found: dict[str, dict[str, Any]] = {device.name: {} for device in ordered}

    def put(name: str, field: str, read: Callable[[str], float | None], spread: Any) -> None:
        for device, value in zip(ordered, spread(ordered, [read(text) for text in data.get(name, ())]), strict=False):
            if value is not None:
                found[device.name][field] = value

    put("duty_cycle_pct", "utilization", _percent, _each_chip)
    put("tensorcore_util", "tensorcore_utilization", _percent, _each_core)
    put("hbm_util", "memory_bandwidth_utilization", _percent, _each_chip)
    put("hbm_capacity_usage", "memory_used_bytes", _bytes, _each_device)
    put("hbm_capacity_total", "memory_total_bytes", _bytes, _each_device)
    put("tpu_throttle_score", "slowdown", _tenths, _each_chip)
    for device, links in zip(ordered, _links(ordered, data.get("ici_link_health", ())), strict=False):
        found[device.name]["link_faults"] = links
    return [_state(device, number, version, **found[device.name]) for number, device in enumerate(ordered)]


def silent(devices: Sequence[TpuDevice], version: str | None, trouble: str) -> list[AcceleratorState]:
    """Returns the states of the devices without asking the SDK."""
    ordered = sorted(devices, key=lambda device: device.order)
    return [_state(each, number, version, up=False, trouble=trouble) for number, each in enumerate(ordered)]


def _state(device: TpuDevice, number: int, version: str | None, **fields: Any) -> AcceleratorState:
    return AcceleratorState(
        time=time.time(), device=device.name, uuid="", index=number, model=device.kind, driver_version=version, **fields
    )


Values = Sequence[float | None]


def _each_device(devices: Sequence[TpuDevice], values: Values) -> Values:
    """As many as devices. Bytes of a chip whose cores are devices of their own belong to none of them alone."""
    return values if len(values) == len(devices) else ()


def _each_chip(devices: Sequence[TpuDevice], values: Values) -> Values:
    """As many as devices, or as chips: then each core has its chip's."""
    chips = list(dict.fromkeys(device.chip for device in devices))
    if len(values) == len(chips):
        return [values[chips.index(device.chip)] for device in devices]
    return _each_device(devices, values)


def _each_core(devices: Sequence[TpuDevice], values: Values) -> Values:
    """As many as devices, or several for each: the cores of a chip that is one device."""
    cores, rest = divmod(len(values), len(devices))
    if rest or not cores:
        return ()
    parts = [values[start : start + cores] for start in range(0, len(values), cores)]
    return [None if None in part else sum(each or 0.0 for each in part) / cores for part in parts]


def _links(devices: Sequence[TpuDevice], texts: Sequence[str]) -> list[dict[str, int]]:
    """Returns the links of each chip, with its first core; nothing if there are more or fewer chips than JAX has."""
    found = [match.groups() for text in texts[: MOST_LINKS * len(devices)] if (match := _LINK.match(text))]
    found.sort(key=lambda link: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", link[1])])
    by_chip = [list(links) for _, links in itertools.groupby(found, key=lambda link: link[1])]
    first = list({device.chip: device for device in reversed(devices)}.values())[::-1]
    if len(by_chip) != len(first):
        return []
    links = {
        device.name: {link: int(level) for link, _, level in links[:MOST_LINKS]}
        for device, links in zip(first, by_chip, strict=True)
    }
    return [links.get(device.name, {}) for device in devices]


def _percent(text: str) -> float | None:
    value = _number(text)
    return None if value is None else round(value / 100, 6)


def _bytes(text: str) -> int | None:
    value = _number(text)
    return None if value is None else int(value)


def _tenths(text: str) -> float | None:
    """`3-1`: device 3 is throttled by 10 %."""
    match = _THROTTLE.match(text)
    return None if match is None else int(match[1]) / 10


def _number(text: str) -> float | None:
    try:
        value = float(text.strip().strip("'\""))
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
