"""Xids: the errors of a device that the driver reports as events, counted by code."""

from __future__ import annotations

from collections import Counter
from typing import Any

MOST_XIDS = 32
"""Codes that are told apart; NVIDIA lists about 170, of which a device sees a few."""
_MOST_EVENTS = 256
"""Xid events taken at a time."""


class Xids:
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
