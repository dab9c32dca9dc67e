"""libtpu's monitoring SDK without a TPU: a package `libtpu` that answers as it is told.

libtpu = FakeLibtpu(duty_cycle_pct=["87.50", "3.00"], hbm_capacity_usage=["1073741824", "0"])
with libtpu, backends(FakeClient([FakeDevice(0, platform="tpu"), FakeDevice(1, platform="tpu")], platform="tpu")):
    ...                                                       # whoever imports libtpu here gets this one
    libtpu.metrics["duty_cycle_pct"] = RuntimeError("gone")   # and now the question fails

What is not named is an empty list, which is how libtpu says that it cannot tell.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

_NAMES = ("libtpu", "libtpu.sdk")

Answer = list[str] | Exception | Callable[[], list[str]]


class _Metric:
    def __init__(self, data: list[str]) -> None:
        self._data = data

    def data(self) -> list[str]:
        """The values, as texts."""
        return self._data

    def description(self) -> str:
        return "A fake."


class FakeLibtpu:
    """The package and its answers. As a context: what `import libtpu` finds in this process."""

    def __init__(self, *, version: str = "0.0.51", module: str | None = "tpumonitoring", **metrics: Answer) -> None:
        """Answers by metric: a list of texts, an error that is raised, or a function that is called for it.

        Args:
          module: name of the monitoring in `libtpu.sdk`; None for a release without.
        """
        self.metrics = metrics
        self.asked: list[str] = []
        """Names of the metrics that were asked for, in order."""
        self._before: dict[str, types.ModuleType | None] = {}
        self._package = types.ModuleType("libtpu")
        self._package.__version__ = version  # type: ignore[attr-defined]
        sdk: Any = types.ModuleType("libtpu.sdk")
        self._package.sdk = sdk  # type: ignore[attr-defined]
        if module is not None:
            monitoring: Any = types.ModuleType(f"libtpu.sdk.{module}")
            monitoring.list_supported_metrics = lambda: sorted(self.metrics)
            monitoring.get_metric = self._get_metric
            setattr(sdk, module, monitoring)

    def _get_metric(self, name: str) -> _Metric:
        self.asked.append(name)
        answer = self.metrics.get(name, [])
        if isinstance(answer, Exception):
            raise answer
        return _Metric(answer() if callable(answer) else answer)

    def __enter__(self) -> FakeLibtpu:
        self._before = {name: sys.modules.get(name) for name in _NAMES}
        sys.modules["libtpu"] = self._package
        sys.modules["libtpu.sdk"] = self._package.sdk
        return self

    def __exit__(self, *error: object) -> None:
        for name, module in self._before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
