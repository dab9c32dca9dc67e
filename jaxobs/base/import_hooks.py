"""Calls back once a module has been imported, without standing in the way of the import.

Importlib marks a spec as initializing while the module's code runs, and clears the mark when that is done. The spec of
an awaited module is therefore given a class in which clearing the mark calls back, and then its own class again. The
loader, the module and the frames of tracebacks are what they would be anyway.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from jaxobs.base import threads
from jaxobs.base.guard import guard, guarded

_MARK = "_initializing"

_lock = threads.RLock()
_awaited: dict[str, list[Callable[[], object]]] = {}


def when_imported(module_name: str, callback: Callable[[], object]) -> None:
    """Calls `callback` when the module is there: at once if its import has ended, else at the end of it.

    It is called once, on the thread that imports, before other threads can use the module; what it raises is counted
    and swallowed. An import that fails leaves it waiting for the next one. A forked child inherits nothing that waits.
    """
    with _lock:
        _awaited.setdefault(module_name, []).append(guard(f"when {module_name} was imported")(callback))
        if _finder not in sys.meta_path:
            # Left there for good: taking it out would make an import that is under way skip the next finder.
            sys.meta_path.insert(0, _finder)
    _look_at(module_name)


def _look_at(module_name: str) -> None:
    """Calls back for a module that is there, and watches one that is on its way."""
    module = sys.modules.get(module_name)
    # To touch a lazy module would load it.
    if module is None or type(module).__name__ == "_LazyModule":
        return
    spec = getattr(module, "__spec__", None)
    if getattr(spec, _MARK, False):
        _watch(spec)
    if not getattr(spec, _MARK, False):
        if isinstance(getattr(type(spec), _MARK, None), property):
            spec.__class__ = type(spec).__mro__[1]
        _call_back(module_name)


def _call_back(module_name: str) -> None:
    with _lock:
        callbacks = _awaited.pop(module_name, ())
    for callback in callbacks:
        callback()


def _call_back_if_there(module_name: str) -> None:
    """An import that failed has taken its module out again."""
    if module_name in _awaited and module_name in sys.modules:
        _call_back(module_name)


def _watch(spec: Any) -> None:
    with guarded("import_hooks.watch"):
        kind = type(spec)
        if _MARK not in vars(kind):
            if kind not in _watched_kinds:
                _watched_kinds[kind] = _watched(kind)
            spec.__class__ = _watched_kinds[kind]


_watched_kinds: dict[type[Any], type[Any]] = {}


def _watched(kind: type[Any]) -> type[Any]:
    """Returns a subclass of a spec's class that calls back when importlib clears its mark."""

    def initializing(spec: Any) -> bool:
        return bool(vars(spec).get(_MARK, False))

    def set_initializing(spec: Any, value: bool) -> None:
        ended = initializing(spec) and not value
        try:
            if ended:
                # Before the mark is cleared, so that other threads wait for the callbacks as they wait for the import.
                _call_back_if_there(spec.name)
        finally:
            vars(spec)[_MARK] = value
            if ended:
                spec.__class__ = kind
                # Who came between the two lines above saw the mark and left it to us.
                _call_back_if_there(spec.name)

    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind.__name__, (kind,), {**names, "__slots__": (), _MARK: property(initializing, set_initializing)})


class _Finder:
    """Finds awaited modules as the finders behind it do, and watches the spec that they give."""

    def __init__(self) -> None:
        self._asking = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _awaited or getattr(self._asking, "name", None) == name:
            return None
        for awaited in tuple(_awaited):
            # It may have come in past this finder: by one in front of it, lazily, or a moment before somebody waited.
            _look_at(awaited)
        if name not in _awaited or target is not None:
            return None
        before, self._asking.name = getattr(self._asking, "name", None), name
        try:
            spec = self._found_by_others(name, path)
        except Exception:
            # Importlib asks the same finders next: the error is raised then, with the traceback that it always had.
            return None
        finally:
            self._asking.name = before
        if spec is not None:
            _watch(spec)
        return spec

    def _found_by_others(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :]:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(name, path, None) if find_spec is not None else None
            if spec is not None:
                return spec
        return None


_finder: Any = _Finder()


def _forget() -> None:
    global _lock
    _lock = threads.RLock()
    _awaited.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
