"""Helpers for tests: bounds and baselines of compilations, checks of gradients and repeatability, fakes of devices.

Nothing here is imported before it is asked for: the pytest plugin lives in this package, and every pytest of the
environment loads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxobs.testing.compiles import BlindError, TooManyCompilesError, max_compiles
    from jaxobs.testing.devices import FakeArray, FakeClient, FakeDevice, backends
    from jaxobs.testing.fake_nvml import FakeNvml
    from jaxobs.testing.gradients import GradientMismatchError, assert_gradients_match
    from jaxobs.testing.repeatable import NotRepeatableError, assert_repeatable

__all__ = [
    "BlindError",
    "FakeArray",
    "FakeClient",
    "FakeDevice",
    "FakeNvml",
    "GradientMismatchError",
    "NotRepeatableError",
    "TooManyCompilesError",
    "assert_gradients_match",
    "assert_repeatable",
    "backends",
    "max_compiles",
]

_MODULES = {
    "compiles": ("BlindError", "TooManyCompilesError", "max_compiles"),
    "devices": ("FakeArray", "FakeClient", "FakeDevice", "backends"),
    "fake_nvml": ("FakeNvml",),
    "gradients": ("GradientMismatchError", "assert_gradients_match"),
    "repeatable": ("NotRepeatableError", "assert_repeatable"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
