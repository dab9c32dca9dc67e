"""Bytes over PCI Express and NVLink: counts of the device, not the rates over 20 ms that NVML offers as well.

A rate over 20 ms every few seconds says nothing of what lay in between, and asking for it takes those 20 ms.
"""

from __future__ import annotations

from typing import Any

_PCIE = {"NVML_FI_DEV_PCIE_COUNT_TX_BYTES": "transmit", "NVML_FI_DEV_PCIE_COUNT_RX_BYTES": "receive"}
_NVLINK = {
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX": ("transmit", 1024),
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX": ("receive", 1024),
    "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES": ("transmit", 1),
    "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES": ("receive", 1),
}
"""Counts by link, and their unit in bytes; some generations know the first pair, some the second."""
_WIDE = {2: "ulVal", 3: "ullVal", 4: "sllVal"}
"""Types of 64 bits. A byte count of 32 bits would wrap within a second, and is no count."""


class Traffic:
    """The counts that a device keeps, found out at the first reading."""

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
