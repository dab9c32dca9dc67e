"""Which of the driver's devices is which of JAX's: CUDA's way of numbering what a process may see.

JAX knows a device by CUDA's number (`local_hardware_id`). CUDA numbers what `CUDA_VISIBLE_DEVICES` lists, in that
order: indices, UUIDs or their beginnings, MIG instances. Without it, it numbers all devices, the fastest first unless
`CUDA_DEVICE_ORDER` is `PCI_BUS_ID`; the driver always numbers by PCI bus. The rules are those of "CUDA environment
variables" in NVIDIA's CUDA programming guide. What they leave open is not guessed: it stays without a match.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A device, or a MIG instance, as the driver identifies it."""

    uuid: str
    index: int
    instance: int | None = None
    """Number of the MIG instance in its device; None for a whole device."""
    parent: str | None = None
    """UUID of the instance's device."""
    divided: bool = False
    """Whether MIG is on: CUDA then shows the instances, not the device."""
    model: str | None = None
    pci_bus_id: str | None = None

    @property
    def name(self) -> str:
        """Name of the device if it is not known which device of JAX it is: `nvml:0`, `nvml:0/1`."""
        return f"nvml:{self.index}" + ("" if self.instance is None else f"/{self.instance}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxDevice:
    """A device as JAX identifies it."""

    name: str
    kind: str
    ordinal: int | None = None
    """CUDA's number of the device in this process."""
    pci_bus_id: str | None = None


def match(devices: Sequence[JaxDevice], found: Sequence[Identity], environment: Mapping[str, str]) -> dict[str, str]:
    """JAX's names of the driver's devices, by UUID: by PCI bus, else by number, else where a model is there once."""
    ordered = visible(found, environment)
    names: dict[str, str] = {}
    for device in devices:
        each = _on_bus(device, found)
        if each is None and device.ordinal is not None and device.ordinal < len(ordered):
            each = ordered[device.ordinal]
        if each is None:
            each = _only(device, devices, found)
        if each is not None and names.setdefault(each.uuid, device.name) != device.name:
            return {}  # two of JAX's for one of the driver's: we do not understand this machine
    return names


def visible(found: Sequence[Identity], environment: Mapping[str, str]) -> list[Identity | None]:
    """Returns the devices in CUDA's order; None for one that cannot be reported."""
    numbered = _numbered(found, environment.get("CUDA_DEVICE_ORDER", ""))
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return numbered
    chosen: list[Identity | None] = []
    for entry in listed.split(","):
        entry = entry.strip()
        if entry.isdecimal() and int(entry) < len(numbered):
            chosen.append(numbered[int(entry)])
        elif (each := _by_uuid(entry, found)) is not None:
            chosen.append(each)
        else:
            break  # CUDA reads no further
    known = [each.uuid for each in chosen if each is not None]
    return chosen if len(set(known)) == len(known) else []  # CUDA shows nothing where one is listed twice


def _numbered(found: Sequence[Identity], order: str) -> list[Identity | None]:
    """Returns the devices by CUDA's numbers: the whole devices, an only instance instead of its device."""
    instances = [each for each in found if each.instance is not None]
    whole = [each for each in found if each.instance is None]
    if any(each.divided for each in whole):
        return [instances[0]] if len(whole) == len(instances) == 1 else [None] * len(whole)
    if order != "PCI_BUS_ID" and len({each.model for each in whole}) > 1:
        return [None] * len(whole)
    return list(whole)


def _by_uuid(entry: str, found: Sequence[Identity]) -> Identity | None:
    """Returns the device of a UUID, or of the beginning of one if no other begins so."""
    if not entry.startswith(("GPU-", "MIG-")):
        return None
    beginning = [each for each in found if each.uuid.startswith(entry)]
    if len(beginning) != 1:
        return None
    if beginning[0].divided:
        inside = [each for each in found if each.parent == beginning[0].uuid]
        return inside[0] if len(inside) == 1 else None
    return beginning[0]


def _on_bus(device: JaxDevice, found: Sequence[Identity]) -> Identity | None:
    if device.pci_bus_id is None:
        return None
    bus = _bus(device.pci_bus_id)
    same = [each for each in found if each.pci_bus_id and _bus(each.pci_bus_id) == bus and not each.divided]
    return same[0] if len(same) == 1 else None


def _bus(text: str) -> tuple[int, ...]:
    """Returns the address as numbers: the driver writes a domain of eight digits, others one of four."""
    try:
        return tuple(int(part, 16) for part in text.replace(".", ":").split(":"))
    except ValueError:
        return ()


def _only(device: JaxDevice, devices: Sequence[JaxDevice], found: Sequence[Identity]) -> Identity | None:
    same = [each for each in found if each.model == device.kind and not each.divided]
    alike = [each for each in devices if each.kind == device.kind]
    return same[0] if len(same) == len(alike) == 1 and same[0].model else None
