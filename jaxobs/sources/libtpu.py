"""TPUs as libtpu sees them: duty cycle, matrix units, memory, throttling, links. Sampled, never on demand.

Nothing is loaded until the program has woken a backend with TPUs. All is asked on a thread of its own that ends with
the answer, so that a call that hangs keeps nobody; but libtpu holds the interpreter while it answers, and no thread
helps against that. So a reading is paid for with a pause of 200 times its length, and the first that takes more than a
second is the last.
"""

import time
from typing import Any

from jaxobs import internals
from jaxobs.base.guard import internal_error
from jaxobs.base.questions import Question, no_more_threads
from jaxobs.drivers import tpu_monitoring
from jaxobs.drivers.tpu_monitoring import TpuDevice
from jaxobs.sources.support.source import Source

WAIT_SECONDS = 0.1
"""Seconds that a tick waits; what comes later is reported at the next."""
HANG_SECONDS = 5.0
"""libtpu that has not answered for so long is taken for hanging."""
SLOW_SECONDS = 1.0
"""A reading that takes longer is the last."""
PAUSE = 200
"""Factor on the time of a reading for which libtpu is left alone after it."""

Reading = tuple[dict[str, list[str]], float]


class TpuMonitoring(Source):
    """The source: samples in, the states of all TPUs out."""

    def _begin(self) -> None:
        self._library: tpu_monitoring.Library | None = None
        self._question: Question[Reading] | None = None
        self._due = 0.0
        self._over = False

    def after_fork(self) -> None:
        """libtpu's threads are the parent's, and whoever calls it in a child may wait for them for good."""
        self._begin()
        self._over = True

    def sample(self) -> None:
        """Asks for everything, and reports what was answered in time."""
        if self._over or not self._store.settings.tpu_monitoring:
            return
        devices = _devices()
        if not devices:
            return
        with no_more_threads():
            if self._question is None:
                if time.monotonic() < self._due:
                    return
                self._question = Question(self._read, "jaxobs-libtpu")
            if self._question.answered(time.monotonic() + WAIT_SECONDS):
                self._take(devices, self._question)
            elif time.monotonic() - self._question.asked > HANG_SECONDS:
                trouble = f"libtpu has not answered for {HANG_SECONDS:g} seconds."
                self._tell(tpu_monitoring.silent(devices, self._version(), trouble))

    def _read(self) -> Reading:
        """On the question's thread: the answers, and the seconds that they took."""
        started = time.perf_counter()
        if self._library is None:
            self._library = tpu_monitoring.Library()
        return self._library.read(), time.perf_counter() - started

    def _take(self, devices: list[TpuDevice], question: Question[Reading]) -> None:
        self._question = None
        if question.answer is None:
            self._failed(devices, question.error)
            return
        data, seconds = question.answer
        self._store.describe(capabilities={"libtpu": True})
        self._due = time.monotonic() + PAUSE * seconds
        if seconds > SLOW_SECONDS:
            self._over = True
            self._store.note(
                f"libtpu took {seconds:.1f} s to answer while holding the GIL. jaxobs does not query it again, and "
                "there are no `accelerator_*` metrics. If your host has no metadata service, set TPU_SKIP_MDS_QUERY=1."
            )
            self._tell([])
        else:
            self._tell(tpu_monitoring.states(devices, data, self._version()))

    def _failed(self, devices: list[TpuDevice], error: Exception | None) -> None:
        if self._library is not None:  # loaded, and all questions failed: the devices may come back
            self._due = time.monotonic() + HANG_SECONDS
            self._tell(tpu_monitoring.silent(devices, self._version(), f"libtpu could not be read: {error}"))
            return
        self._over = True
        self._store.describe(capabilities={"libtpu": False})
        if isinstance(error, tpu_monitoring.Unavailable):
            self._store.note(f"libtpu's monitoring cannot be used ({error}): no `accelerator_*` metrics.")
        elif error is not None:
            internal_error("libtpu", error)

    def _version(self) -> str | None:
        return None if self._library is None else self._library.version

    def _tell(self, states: list[Any]) -> None:
        self._store.set_accelerators(tuple(states), driver="libtpu")


def _devices() -> list[TpuDevice]:
    """The TPUs of this process; none before the program has woken them."""
    return [
        _described(device)
        for client in internals.clients()
        if client.platform == "tpu"
        for device in client.local_devices()
    ]


def _described(device: Any) -> TpuDevice:
    number = getattr(device, "local_hardware_id", None)
    coordinates = getattr(device, "coords", None)
    number = device.id if number is None else number
    return TpuDevice(
        name=internals.device_name(device),
        kind=device.device_kind,
        chip=number if coordinates is None else tuple(coordinates),
        order=(number, getattr(device, "core_on_chip", None) or 0),
    )


source = TpuMonitoring
