"""NVIDIA's management library, through `pynvml`: which devices there are, and what each says of itself.

A device answers question by question, and any of them may fail: what it does not support is left out and not asked
again, what fails once is left out once, and an error that means that it is gone is all that is reported of it until it
answers again. A call may hang in the driver for good: call from a thread that nobody has to wait for.
Units, and since when a count counts: NVML API reference guide, "Device Queries" and "Field Value Enums".
"""

from collections.abc import Callable
from typing import Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.drivers.cuda_devices import Identity
from jaxobs.drivers.nvml.device import Device as Device


class Unavailable(Exception):  # noqa: N818 - a state of the machine, not a mistake
    """NVML cannot be used here; the text says why."""


def open_devices() -> list[Device]:
    """Returns the driver's devices and MIG instances by number; raises `MissingExtraError`, `Unavailable`."""
    try:
        import pynvml as api
    except ImportError:
        raise MissingExtraError("The driver's view of the devices", "nvidia-ml-py", "nvidia") from None
    try:
        api.nvmlInit()
        driver = _text(api.nvmlSystemGetDriverVersion())
        return [device for index in range(api.nvmlDeviceGetCount()) for device in _devices(api, index, driver)]
    except api.NVMLError as error:
        raise Unavailable(str(error)) from None


def close() -> None:
    """Gives back what `open_devices` took."""
    import pynvml as api

    try:
        api.nvmlShutdown()
    except api.NVMLError:
        return


def _devices(api: Any, index: int, driver: str) -> list[Device]:
    """Returns a device, and the MIG instances that it is divided into; nothing where it cannot even be named."""
    try:
        handle = api.nvmlDeviceGetHandleByIndex(index)
        uuid = _text(api.nvmlDeviceGetUUID(handle))
    except api.NVMLError:
        return []
    whole = Identity(
        uuid=uuid,
        index=index,
        divided=_or_none(api, lambda: api.nvmlDeviceGetMigMode(handle)[0]) == 1,
        model=_or_none(api, lambda: _text(api.nvmlDeviceGetName(handle))),
        pci_bus_id=_or_none(api, lambda: _text(api.nvmlDeviceGetPciInfo(handle).busId)),
    )
    found = [Device(api, handle, whole, driver)]
    if whole.divided:
        for number in range(_or_none(api, lambda: api.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0):
            try:
                inside = api.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
                uuid = _text(api.nvmlDeviceGetUUID(inside))
            except api.NVMLError:
                continue
            model = _or_none(api, lambda inside=inside: _text(api.nvmlDeviceGetName(inside)))  # type: ignore[misc]
            part = Identity(
                uuid=uuid, index=index, instance=number, parent=whole.uuid, model=model, pci_bus_id=whole.pci_bus_id
            )
            found.append(Device(api, inside, part, driver))
    return found


def _or_none(api: Any, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except api.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
