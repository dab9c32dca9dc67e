"""The devices as their driver sees them: utilization, power, errors, traffic, who uses them. Sampled, never on demand.

Nothing is loaded until the program has woken a backend with NVIDIA GPUs. Every device is asked on a thread of its own
that ends with the answer: one that hangs in the driver keeps neither the others nor the tick, and is not asked again
before it has answered.
"""

import dataclasses
import os
import time
from typing import Any

from jaxobs import internals
from jaxobs.base.errors import MissingExtraError
from jaxobs.base.guard import internal_error
from jaxobs.base.questions import Question, no_more_threads
from jaxobs.drivers import cuda_devices, nvml
from jaxobs.drivers.cuda_devices import JaxDevice
from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.sources.support.source import Source

WAIT_SECONDS = 0.1
"""Seconds that a tick waits for all devices together; what comes later is reported at the next tick."""
HANG_SECONDS = 5.0
"""A device that has not answered for so long is taken for hanging."""

_THREAD = "jaxobs-nvml"
_XID_HELP = "What it means: NVIDIA's catalogue of Xid errors, https://docs.nvidia.com/deploy/xid-errors/."


class _Watched:
    """A device, the question that is open, and its latest answer."""

    def __init__(self, device: nvml.Device) -> None:
        self.device = device
        self.state: AcceleratorState | None = None
        self._open: Question[AcceleratorState] | None = None

    def ask(self) -> None:
        if self._open is None:
            self._open = Question(self.device.read, _THREAD)

    def listen(self, until: float) -> None:
        if self._open is None:
            return
        if self._open.answered(until):
            if self._open.error is not None:
                internal_error("nvml", self._open.error)
            self.state = self._open.answer or self.device.silent("jaxobs could not read it.")
            self._open = None
        elif time.monotonic() - self._open.asked > HANG_SECONDS:
            self.state = self.device.silent(f"It has not answered for {HANG_SECONDS:g} seconds.")


class Accelerators(Source):
    """The source: samples in, the states of all devices out."""

    def _begin(self) -> None:
        # NVML's handles and our threads stay the parent's; a child opens its own when it uses a GPU.
        self._opening: Question[list[nvml.Device]] | None = None
        self._watched: list[_Watched] = []
        self._names: dict[str, str] = {}
        self._matched: tuple[JaxDevice, ...] = ()
        self._complete = False

    def stop(self) -> None:
        """Gives the library back, unless a device hangs in it."""
        watched, self._watched = self._watched, []
        if watched:
            with no_more_threads():
                Question(nvml.close, _THREAD).answered(time.monotonic() + WAIT_SECONDS)

    def sample(self) -> None:
        """Asks every device, and reports what was answered in time."""
        devices = _jax_devices()
        if not devices:
            return
        until = time.monotonic() + WAIT_SECONDS
        with no_more_threads():
            if self._opening is None:
                self._opening = Question(nvml.open_devices, _THREAD)
            if not self._watched and not self._opened(until):
                return
            self._match(devices)
            shown = [each for each in self._watched if self._is_shown(each.device)]
            for each in shown:
                each.ask()
            for each in shown:
                each.listen(until)
            self._tell([each.state for each in shown if each.state is not None])

    def _opened(self, until: float) -> bool:
        """Returns whether there are devices; says once why there are none."""
        assert self._opening is not None
        if not self._opening.answered(until):
            return False
        self._watched = [_Watched(device) for device in self._opening.answer or ()]
        self._store.describe(capabilities={"nvml": bool(self._watched)})
        error = self._opening.error
        if isinstance(error, MissingExtraError):
            self._store.note(str(error))
        elif isinstance(error, nvml.Unavailable):
            self._store.note(f"NVML cannot be used ({error}): no `accelerator_*` metrics.")
        elif error is not None:
            internal_error("nvml", error)
            self._opening.error = None
        return bool(self._watched)

    def _match(self, devices: tuple[JaxDevice, ...]) -> None:
        if devices != self._matched:
            self._matched = devices
            found = [each.device.identity for each in self._watched]
            self._names = cuda_devices.match(devices, found, os.environ)
            self._complete = len(self._names) == len(devices)

    def _is_shown(self, device: nvml.Device) -> bool:
        """Returns whether a device is this process's to report, or it is not known whose it is."""
        parents = {each.device.identity.parent for each in self._watched if each.device.identity.uuid in self._names}
        return not self._complete or device.identity.uuid in self._names or device.identity.uuid in parents

    def _tell(self, states: list[AcceleratorState]) -> None:
        named = tuple(dataclasses.replace(s, device=self._names.get(s.uuid, s.device)) for s in states)
        self._store.set_accelerators(named)
        for state in named:
            for code in state.xid_errors or ():
                self._store.note(f"The driver reported Xid {code} on {state.device}. {_XID_HELP}")


def _jax_devices() -> tuple[JaxDevice, ...]:
    """The NVIDIA GPUs that this process can address; none before the program has woken them."""
    return tuple(
        _described(device)
        for client in internals.clients()
        if client.platform in ("gpu", "cuda") and "rocm" not in str(client.platform_version).lower()
        for device in client.local_devices()
    )


def _described(device: Any) -> JaxDevice:
    return JaxDevice(
        name=f"{device.platform}:{device.id}",
        kind=device.device_kind,
        ordinal=getattr(device, "local_hardware_id", None),
        pci_bus_id=getattr(device, "pci_bus_id", None),
    )


source = Accelerators
