"""Memory: the growth of the process's resident memory when jaxobs has reached all of its bounds."""

from __future__ import annotations

import ctypes
import gc
import os
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.full import LEAVES, full_store
from benchmarks.harness import Effort, Figure

if TYPE_CHECKING:
    from jaxobs.reasons.explanation import Explainer

LIMIT = 20.0


def run(effort: Effort) -> list[Figure]:
    """Megabytes for the store, for what explains compilations, and for the texts of the latest scrapes."""
    import jax  # noqa: F401
    import prometheus_client  # noqa: F401

    from jaxobs.exporters.forms.exposition import OPENMETRICS, TEXT, Renderer

    functions = _functions()
    _explainer(functions[:8])
    Renderer(full_store()).render(TEXT)
    kept: list[Any] = []

    def grown(make: Callable[[], Any]) -> float:
        """Megabytes by which the process grew for what `make` returns."""
        before = _resident()
        kept.append(make())
        return (_resident() - before) / 2**20

    store = grown(full_store)
    explainer = grown(lambda: _explainer(functions))
    renderer = Renderer(kept[0])

    def scrape() -> Renderer:
        renderer.render(TEXT)
        renderer.render(OPENMETRICS)
        return renderer

    scrapes = grown(scrape)
    patterns = grown(_patterns)
    return [
        Figure(name="events, functions and devices", value=store, unit="MB"),
        Figure(name="signatures of what was compiled", value=explainer, unit="MB"),
        Figure(name="texts of the latest scrapes", value=scrapes, unit="MB"),
        Figure(name="history for the findings", value=patterns, unit="MB"),
        Figure(name="all with every bound full", value=store + explainer + scrapes + patterns, unit="MB", limit=LIMIT),
    ]


def _functions() -> list[Any]:
    """As many functions as are remembered, each with code of its own: the program's memory, not ours."""
    from jaxobs.reasons.history import MOST_PROGRAMS

    def step(parameters: Any) -> Any:
        return parameters

    return [types.FunctionType(step.__code__.replace(co_name=f"step_{number}"), {}) for number in range(MOST_PROGRAMS)]


def _explainer(functions: list[Any]) -> Explainer:
    """Has explained every function once with a pytree of its own, and some of them again and again."""
    import jax

    from jaxobs.internals import Call
    from jaxobs.reasons.explanation import Explainer
    from jaxobs.reasons.signature import take

    explainer = Explainer()
    for size, chosen in enumerate([functions, *[functions[:8]] * 40], start=1):
        for number, function in enumerate(chosen):
            parameters = {
                f"layer_{number}_{leaf}": jax.ShapeDtypeStruct((size, number, leaf % 20), "float32")
                for leaf in range(LEAVES)
            }
            call = Call(function, function, (parameters,), {})
            explainer.explain(f"step_{number}", call, take(call))
    return explainer


def _patterns() -> Any:
    """Has seen more functions than it remembers, each compiled again and again for ever new shapes of 50 arguments."""
    from jaxobs.facts.compilations import Change, Compilation
    from jaxobs.findings.patterns import MOST_FUNCTIONS, Patterns

    patterns = Patterns()
    for size in range(40):
        for number in range(MOST_FUNCTIONS + 20):
            before, after = (f"float32[{each}]" for each in (size + number, size * number))
            event = Compilation(
                time=1.8e9 + size, sequence=size, function=f"module.step_{number}", cause="shape", reason="It grew.",
                changes=tuple(Change(f"batch['{leaf}']", "shape", before, after) for leaf in range(50)),
                phases={"trace": 0.1, "compile": 1.0}, call_site=f"train.py:{number}",
            )  # fmt: skip
            patterns.see(event)
    return patterns


def _resident() -> int:
    """Bytes of this process in memory, after all that can be given back was."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
