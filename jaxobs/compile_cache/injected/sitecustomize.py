"""Found by each Python that `jaxobs cache verify` starts, or that its command starts: waits for JAX, then observes.

Python imports `sitecustomize` before the program. This one steps aside at once for the one that it hides, if any. A
process that never imports JAX gets nothing but a finder; what fails here is written down and never raised.
"""

import contextlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_VARIABLE = "_JAXOBS_VERIFY_FOLDER"
_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.abspath(os.path.join(_HERE, "..", ".."))


class _JaxFinder:
    """Finds nothing, and is asked before JAX is imported."""

    def __init__(self) -> None:
        self._asked = False

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "jax" or self._asked:
            return None
        self._asked = True
        _observe()
        # jaxobs has put a finder in front of this one meanwhile, which importlib does not ask any more.
        finders = [*sys.meta_path]
        for finder in finders[: finders.index(self)] if self in finders else ():
            spec = finder.find_spec(name, None, target)
            if spec is not None:
                return spec
        return None


def _observe() -> None:
    folder = os.environ.get(_VARIABLE)
    if not folder:
        return
    try:
        _make_importable()
        from jaxobs.compile_cache import observer

        observer.start(folder)
    except Exception as error:
        with contextlib.suppress(OSError), open(os.path.join(folder, f"{os.getpid()}.error"), "w") as file:
            file.write(f"{type(error).__name__}: {error}")


def _make_importable() -> None:
    """The jaxobs that this file belongs to, also where the program's Python has none; nothing next to it."""
    if "jaxobs" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "jaxobs", os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no jaxobs in {_PACKAGE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["jaxobs"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop("jaxobs", None)
        raise


def _step_aside() -> None:
    """Takes this folder off the path, and runs the `sitecustomize` that would have been found without it."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if "jax" in sys.modules:
    _observe()
else:
    sys.meta_path.insert(0, _JaxFinder())
_step_aside()
