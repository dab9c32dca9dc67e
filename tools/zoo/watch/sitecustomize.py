"""A stopwatch inside a program of the zoo, which knows nothing of jaxobs.

Python imports this at its start. The program's comments `#: step`, `#: eval` and so on become calls of `zoo_mark`; what
JAX compiled comes from JAX's own events.
"""

import atexit
import builtins
import importlib
import importlib.abc
import json
import os
import sys
import threading
import time

_EVENTS = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")
_marks: list[tuple[float, str]] = []
_past: list[tuple[float, float, str]] = []
_compiling: list[tuple[float, float]] = []
_marked = {threading.get_ident()}  # the main thread, and others that the program's marks are in
_programs = 0


def _age() -> float:
    """Seconds since this process began, as Linux tells it."""
    with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
        began = int(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return float(uptime.read().split()[0]) - began


def _mark(category: str) -> None:
    """A category begins, and ends at the next mark."""
    _marked.add(threading.get_ident())
    _marks.append((time.perf_counter(), category))


def _ended(*spans: tuple[str, float]) -> None:
    """Categories of which a library's own stopwatch tells when they have ended, the latest first."""
    end = time.perf_counter()
    for category, seconds in spans:
        _past.append((end - seconds, end, category))
        end -= seconds


def _heard(event: str, duration: float, **_: object) -> None:
    global _programs
    if not event.endswith(_EVENTS):
        return
    if event.endswith(_EVENTS[-1]):
        _programs += 1
    if threading.get_ident() in _marked:
        now = time.perf_counter()
        _compiling.append((now - duration, now))


class _WhenJaxIsImported(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name == "jax._src.dispatch":
            sys.meta_path.remove(self)
            monitoring = importlib.import_module("jax._src.monitoring")
            monitoring.register_event_duration_secs_listener(_heard)
        return


def _write(path: str, pid: int) -> None:
    if os.getpid() != pid:
        return
    told = {
        "began": _began,
        "ended": time.perf_counter(),
        "marks": _marks,
        "past": _past,
        "compiling": _compiling,
        "programs": _programs,
    }
    with open(path, "w") as file:
        json.dump(told, file)


_path = os.environ.pop("ZOO_STOPWATCH", None)
if _path is not None:
    _began = time.perf_counter() - _age()
    builtins.zoo_mark = _mark  # type: ignore[attr-defined]
    builtins.zoo_ended = _ended  # type: ignore[attr-defined]
    sys.meta_path.insert(0, _WhenJaxIsImported())
    atexit.register(_write, _path, os.getpid())
