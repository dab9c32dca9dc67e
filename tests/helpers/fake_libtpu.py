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

import pytest

Answer = list[str] | Exception | Callable[[], list[str]]


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
        package, sdk = types.ModuleType("libtpu"), types.ModuleType("libtpu.sdk")
        vars(package).update(__version__=version, sdk=sdk)
        if module is not None:
            monitoring = types.ModuleType(f"libtpu.sdk.{module}")
            vars(monitoring).update(list_supported_metrics=lambda: sorted(metrics), get_metric=self._get_metric)
            setattr(sdk, module, monitoring)
        self._found, self._patch = {"libtpu": package, "libtpu.sdk": sdk}, pytest.MonkeyPatch()

    def _get_metric(self, name: str) -> types.SimpleNamespace:
        self.asked.append(name)
        answer = self.metrics.get(name, [])
        if isinstance(answer, Exception):
            raise answer
        data = answer() if callable(answer) else answer
        return types.SimpleNamespace(data=lambda: data, description=lambda: "A fake.")

    def __enter__(self) -> FakeLibtpu:
        for name, module in self._found.items():
            self._patch.setitem(sys.modules, name, module)
        return self

    def __exit__(self, *error: object) -> None:
        self._patch.undo()
