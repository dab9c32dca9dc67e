"""Counters and metrics that PyTorch/XLA keeps of itself, as `torch_xla.debug.metrics` reports them.

torch_xla is found where the program has imported it, and never imported. To read a counter takes 0.3 µs; a metric
copies its latest samples. Neither evaluates a tensor.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast

COMPILED, LAUNCHED_AGAIN = "UncachedCompile", "CachedCompile"
LOADED, NOT_FOUND, NOT_READ = "PersistentCacheHit", "PersistentCacheMiss", "PersistentCacheDeserializeFailure"
"""Results of a look-up in the persistent cache: loaded, not there, and there but not to be loaded by this runtime."""
READ_ONE = "aten::_local_scalar_dense"
"""The counter of `.item()` and what calls it, which is not an operator that ran on the CPU."""


class Native(Protocol):
    """The functions of torch_xla's extension module `_XLAC` that are used here."""

    def _xla_counter_names(self) -> Sequence[str]: ...
    def _xla_counter_value(self, name: str, /) -> int | None: ...
    def _xla_metric_data(self, name: str, /) -> tuple[int, float, Sequence[tuple[float, float]]] | None: ...


def native() -> Native | None:
    """Returns the extension module; None where the program has not imported torch_xla, or this release has no such."""
    found = getattr(sys.modules.get("torch_xla"), "_XLAC", None)
    has_all = all(hasattr(found, name) for name in vars(Native) if name.startswith("_xla_"))
    return cast("Native", found) if has_all else None


def versions() -> dict[str, str]:
    """Returns the versions of torch and torch_xla; none where torch_xla is not imported."""
    if "torch_xla" not in sys.modules:
        return {}
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "torch_xla")}
    return {name: str(version) for name, version in found.items() if version is not None}


def persistent_cache(of: Native) -> tuple[bool, str | None]:
    """Returns whether graphs are looked up in a persistent cache, and its directory.

    torch_xla opens it with the first graph, and keeps one in memory if there is no directory.
    """
    directory = os.environ.get("XLA_PERSISTENT_CACHE_PATH") or None
    opened: Any = getattr(of, "_xla_computation_cache_is_initialized", None)
    looked = any(of._xla_counter_value(name) for name in (LOADED, NOT_FOUND, NOT_READ))
    if opened is not None and opened() and of._xla_counter_value(COMPILED) and not looked:
        return False, None  # the variable was set too late
    return directory is not None, directory


class Growth:
    """Counts since somebody asked."""

    def __init__(self, of: Native) -> None:
        self._of = of
        self._counts: dict[str, int] = {}
        self._sums: dict[str, tuple[int, float]] = {}

    def cleared(self) -> None:
        """The program has cleared all counters, all metrics or both."""
        self._counts = {
            name: min(count, self._of._xla_counter_value(name) or 0) for name, count in self._counts.items()
        }
        self._sums = {name: each for name, each in self._sums.items() if self._of._xla_metric_data(name) is not None}

    def restored(self, name: str, count: int) -> None:
        """A counter was raised from Python, to what it was before it was cleared."""
        self._counts[name] = self._counts.get(name, 0) + count

    def take(self, name: str) -> int:
        """Returns by how much a counter has grown since the last call."""
        now, before = self._of._xla_counter_value(name) or 0, self._counts.get(name, 0)
        self._counts[name] = now
        return max(0, now - before)

    def take_sum(self, name: str) -> tuple[int, float]:
        """Returns how many samples a metric has taken since the last call, and their sum: bytes, or nanoseconds."""
        count, total = (self._of._xla_metric_data(name) or (0, 0.0))[:2]
        before = self._sums.get(name, (0, 0.0))
        self._sums[name] = count, total
        return max(0, count - before[0]), max(0.0, total - before[1])

    def take_samples(self, name: str) -> list[float]:
        """Returns the samples of a metric since the last call, as far as it has kept them."""
        count = self.take_sum(name)[0]
        samples = (self._of._xla_metric_data(name) or (0, 0.0, ()))[2]
        return [value for _, value in samples[-count:]] if count else []

    def last(self, name: str) -> float | None:
        """Returns the latest sample of a metric; None without one."""
        samples = (self._of._xla_metric_data(name) or (0, 0.0, ()))[2]
        return samples[-1][1] if samples else None

    def fallbacks(self) -> Iterator[tuple[str, int]]:
        """Takes the operators that ran on the CPU, because it has no lowering of them, and how often each did."""
        for name in self._of._xla_counter_names():
            if name.startswith("aten::") and name != READ_ONE and (more := self.take(name)):
                yield name, more
