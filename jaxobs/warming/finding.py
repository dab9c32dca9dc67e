"""Finds the function of a recorded signature: imports its module, and looks for what is jitted under its name.

A script that was started is loaded under another name than `__main__`, so that it defines its functions and does not
run.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from jaxobs.errors import JaxobsError
from jaxobs.naming import unwrapped

MAIN = "__jaxobs_main__"
"""Name under which a script is loaded."""


class NotFoundError(JaxobsError, LookupError):
    """A recorded function cannot be found from outside the program that defined it."""


class Finder:
    """Finds functions, and remembers the modules that it imported for them."""

    def __init__(self, module: str | None = None, script: str | None = None) -> None:
        """
        Args:
          module: to look in, in place of what was started.
          script: to load, in place of what was started; even one that runs when it is loaded.
        """
        self._module = module
        self._script = script
        self._loaded: dict[str, ModuleType | JaxobsError] = {}

    def find(self, signature: Mapping[str, Any]) -> tuple[list[Any], str]:
        """The jitted functions under a recorded name, and the name of the module that they are in.

        Raises:
          NotFoundError: there is none; the message says why.
        """
        name, qualname = signature.get("module"), signature.get("qualname")
        if not isinstance(name, str) or not isinstance(qualname, str):
            raise NotFoundError("JAX did not tell which function it was")
        module = self._module_of(name, signature.get("started"))
        found = _jitted_in(module, qualname, name)
        if not found:
            raise NotFoundError(_why_not(module, qualname))
        return found, module.__name__

    def _module_of(self, name: str, started: Any) -> ModuleType:
        if name == "__main__":
            name = self._main(started)
        elif self._module is not None:
            name = self._module
        if name not in self._loaded:
            try:
                self._loaded[name] = self._load(name)
            except JaxobsError as error:
                self._loaded[name] = error
        found = self._loaded[name]
        if isinstance(found, JaxobsError):
            raise found
        return found

    def _main(self, started: Any) -> str:
        """What was started: a module, or the path of a script."""
        if self._script or self._module:
            return self._script or self._module or ""
        if not isinstance(started, str):
            raise NotFoundError(
                "the log does not tell which script was started. Say it with --script FILE or --module MODULE"
            )
        return started.removeprefix("-m ") if started.startswith("-m ") else started

    def _load(self, name: str) -> ModuleType:
        try:
            if name == self._script or os.sep in name:
                return _load_script(name, name == self._script)
            return importlib.import_module(name)
        except JaxobsError:
            raise
        except (Exception, SystemExit) as error:
            text = " ".join(str(error).split())[:200]
            raise NotFoundError(f"`{name}` cannot be imported: {type(error).__name__}: {text}") from error


def _load_script(path: str, even_if_it_runs: bool) -> ModuleType:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise NotFoundError(
            f"the script {path} cannot be read here ({error.strerror}). Say where it is with --script FILE"
        ) from None
    if not even_if_it_runs and not _is_guarded(source, path):
        raise NotFoundError(
            f'the script {path} has no `if __name__ == "__main__":`, so loading it would run it. Put what runs under '
            "it; or, if it runs nothing, say --script FILE"
        )
    spec = importlib.util.spec_from_file_location(MAIN, path)
    if spec is None or spec.loader is None:
        raise NotFoundError(f"the script {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MAIN] = module
    sys.argv[:] = [path]
    if (beside := os.path.dirname(os.path.abspath(path))) not in sys.path:
        sys.path.insert(0, beside)
    spec.loader.exec_module(module)
    return module


def _is_guarded(source: bytes, path: str) -> bool:
    """Whether a script asks at its top whether it is `__main__`."""
    return any(
        isinstance(each, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(each.test))
        for each in ast.parse(source, path).body
    )


# -------------------------------------------------------------------------------------- what a module has


def _jitted_in(module: ModuleType, qualname: str, recorded_module: str) -> list[Any]:
    """What stands under that name if it is jitted; else everything in the module that is jitted from it."""
    named: Any = module
    for part in qualname.split("."):
        named = getattr(named, part, None)
    if _is_jitted(named):
        return [named]
    modules = {module.__name__, recorded_module}
    return [each for each in _attributes(module) if _is_jitted(each) and _is_of(each, qualname, modules)]


def _attributes(module: ModuleType) -> list[Any]:
    """What the module and its classes have, each once."""
    own = list(vars(module).values())
    for each in list(own):
        if isinstance(each, type) and each.__module__ == module.__name__:
            own += vars(each).values()
    return list({id(each): each for each in own}.values())


def _is_jitted(value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and callable(getattr(value, "lower", None))


def _is_of(jitted: Any, qualname: str, modules: set[str]) -> bool:
    fun = unwrapped(jitted)
    return getattr(fun, "__qualname__", None) == qualname and getattr(fun, "__module__", None) in modules


def _why_not(module: ModuleType, qualname: str) -> str:
    def named(name: str) -> str:
        script = os.path.basename(module.__file__ or "") if module.__name__ == MAIN else ""
        return f"`{name}` of {script}" if script else f"`{module.__name__}.{name}`"

    if "<locals>" in qualname:
        return (
            f"{named(qualname.partition('.<locals>')[0])} makes it when it is called: it cannot be reached from outside"
        )
    if "<lambda>" in qualname:
        return f"it is a lambda that no attribute of `{module.__name__}` is"
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is None:
        return f"there is no {named(qualname)} any more"
    return f"{named(qualname)} is not jitted there, nor is there an attribute that is jitted from it"
