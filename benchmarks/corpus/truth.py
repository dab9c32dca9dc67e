"""Count of what JAX really compiled.

The truth comes from elsewhere than JAX's events: the two functions through which every executable passes
(`compile_or_get_cached`, and under it the compiler itself) are counted as they are called, by name of the program.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

executables: Counter[str] = Counter()
compiled: Counter[str] = Counter()
hold: dict[str, threading.Event] = {}
"""Programs that the compiler shall keep until the event is set."""
held = threading.Event()

_inside = threading.local()


def program_name(module: Any) -> str:
    """`f` for the lowered program of `jit(f)` or `pmap(f)`."""
    name = str(module.operation.attributes["sym_name"]).strip('"')
    return name.removeprefix("jit_").removeprefix("pmap_")


def count_truth() -> None:
    """Counts executables and true compilations from now on, by the name of the program."""
    from jax._src import compiler

    whole = compiler.compile_or_get_cached

    def compile_or_get_cached(backend: Any, computation: Any, *args: Any, **kwargs: Any) -> Any:
        executable = whole(backend, computation, *args, **kwargs)
        executables[program_name(computation)] += 1
        return executable

    compiler.compile_or_get_cached = compile_or_get_cached
    for name in ("backend_compile", "backend_compile_and_load"):
        if hasattr(compiler, name):
            setattr(compiler, name, counted_compiler(getattr(compiler, name)))


def counted_compiler(original: Callable[..., Any]) -> Callable[..., Any]:
    """The compiler's entry, counted once also where one entry calls the other, and held on demand."""

    @functools.wraps(original)
    def entry(backend: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "entry", False):
            return original(backend, module, *args, **kwargs)
        _inside.entry = True
        try:
            name = program_name(module)
            if name in hold:
                held.set()
                hold[name].wait(120)
            executable = original(backend, module, *args, **kwargs)
            compiled[name] += 1
            return executable
        finally:
            _inside.entry = False

    return entry
