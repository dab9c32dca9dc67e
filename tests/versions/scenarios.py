"""Scenarios, and the report that sets what jaxobs counted beside the truth."""

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.corpus.truth import compiled, executables

USER_FUNCTIONS: set[str] = set()
UNNAMED = {"_unnamed_wrapped_function_", "_unknown", "_fun", "call_wrapped"}
"""Names that one version or another has for the program of a partial or a `pmap`."""


def user(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function as the user's: its programs are no eager operations."""
    USER_FUNCTIONS.add(fun.__name__)
    return fun


checks: list[dict[str, Any]] = []
scenarios: list[Callable[[], None]] = []


def check(what: str, expected: Any, seen: Any) -> None:
    where = sys._getframe(1).f_code.co_name
    checks.append({"scenario": where, "what": what, "expected": expected, "seen": seen, "ok": expected == seen})


def scenario(fun: Callable[[], None]) -> Callable[[], None]:
    """Registers a scenario, which afterwards compares all counts with the truth."""

    def run() -> None:
        with compared(fun.__name__):
            fun()

    scenarios.append(run)
    return fun


@contextlib.contextmanager
def compared(name: str) -> Iterator[None]:
    """Checks that counts by function, of eager operations and of true compilations equal the truth."""
    true_before, seen_before, compiled_before = executables.copy(), seen(), compiled.total()
    truly_seen_before = truly_compiled()
    yield
    true, found = executables - true_before, seen() - seen_before
    by_user = Counter({function: n for function, n in true.items() if function in USER_FUNCTIONS})
    unnamed = sum(n for function, n in true.items() if function in UNNAMED)
    eager = true.total() - by_user.total() - unnamed
    for what, expected, got in (
        ("eager operations", eager, found.pop("<eager>", 0)),
        ("by function", dict(sorted(by_user.items())), dict(sorted(found.items()))),
        ("true compilations", compiled.total() - compiled_before, truly_compiled() - truly_seen_before),
    ):
        if what == "by function" and unnamed:
            expected, got = by_user.total() + unnamed, found.total()
        checks.append({"scenario": name, "what": what, "expected": expected, "seen": got, "ok": expected == got})


def seen() -> Counter[str]:
    """Returns the executables that jaxobs counted, by the function's own name."""
    import jaxobs

    found: Counter[str] = Counter()
    for function in jaxobs.snapshot().functions:
        if function.compiled:
            found[function.name.rsplit(".", 1)[-1]] += function.compiled
    return found


def truly_compiled() -> int:
    """Returns what jaxobs counted as compiled and not loaded from the persistent cache."""
    import jaxobs

    functions = jaxobs.snapshot().functions
    return sum(n for f in functions for by in f.compilations.values() for cache, n in by.items() if cache != "hit")


def causes(name: str) -> dict[str, int]:
    """Causes that jaxobs gave for the function of that name."""
    import jaxobs

    found: Counter[str] = Counter()
    for function in jaxobs.snapshot().functions:
        if function.name.rsplit(".", 1)[-1] == name:
            for cause, by_cache in function.compilations.items():
                found[cause] += sum(by_cache.values())
    return dict(sorted(found.items()))
