"""Finds the function of a recorded signature in the modules that the user named, and in what these have imported.

The log never says what is imported or loaded. A script is loaded under another name than `__main__`, so that it defines
its functions and does not run.
"""

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from jaxobs.base.errors import JaxobsError, SettingError
from jaxobs.reasons.known_values import Program
from jaxobs.reasons.naming import unwrapped

MAIN = "__jaxobs_main__"
"""Name under which a script is loaded."""


class NotFoundError(JaxobsError, LookupError):
    """A recorded function cannot be found from outside the program that defined it."""


class Finder:
    """Imports what the user named, and finds functions in it."""

    def __init__(self, modules: Sequence[str] = (), script: str | None = None) -> None:
        """Imports the modules and loads the script; raises `SettingError` if it cannot, or that would run."""
        self._script = None if script is None else _imported(script, _load_script)
        self._modules = [_imported(name, importlib.import_module) for name in modules]

    @property
    def main(self) -> str:
        """The name of the module that stands for `__main__`."""
        return (self._script or self._modules[0]).__name__

    def program(self, fun: Any) -> Program:
        """Returns the program whose values the arguments of one of its functions may name."""
        main = self._script or self._modules[0]
        return Program([main, *self._modules], main, fun)

    def find(self, signature: Mapping[str, Any]) -> list[Any]:
        """Returns the jitted functions under a recorded name; raises `NotFoundError` with the reason."""
        name, qualname = signature.get("module"), signature.get("qualname")
        if not isinstance(name, str) or not isinstance(qualname, str):
            raise NotFoundError("JAX did not say which function it was")
        if (unreachable := why_unreachable(name, qualname)) is not None:
            raise NotFoundError(unreachable)
        modules = self._modules_of(name)
        if not modules:
            raise NotFoundError(f"nothing that you named imports the module `{name:.120}`. Use --module {name:.120}")
        for module in modules:
            found = _jitted_in(module, qualname, name)
            if found:
                return found
        raise NotFoundError(_why_not(modules[0], qualname))

    def _modules_of(self, name: str) -> list[ModuleType]:
        """Returns the modules to look in: the module itself if it is imported, then what was named in its place."""
        if name == "__main__":
            return [self._script] if self._script is not None else self._modules
        found = sys.modules.get(name)
        return [*([found] if isinstance(found, ModuleType) else []), *self._modules]


def why_unreachable(module: str, qualname: str) -> str | None:
    """Returns why a function of that name cannot be reached from outside, whatever the module has; None if it may."""
    if "<locals>" in qualname:
        maker = qualname.partition(".<locals>")[0]
        return f"`{module}.{maker}` creates it when called: it cannot be reached from outside"
    if "<lambda>" in qualname:
        return f"it is a lambda that is not an attribute of `{module}`"
    return None


def _imported(name: str, load: Callable[[str], ModuleType]) -> ModuleType:
    try:
        return load(name)
    except JaxobsError:
        raise
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())[:200]
        raise SettingError(f"`{name}` cannot be imported: {type(error).__name__}: {text}") from error


def _load_script(path: str) -> ModuleType:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise SettingError(f"The script {path} cannot be read: {error.strerror}. Name it with --script FILE.") from None
    if not _is_guarded(source, path):
        raise SettingError(
            f'The script {path} has no `if __name__ == "__main__":`, so loading it would run it. Put the code that '
            "runs under it; or, if the script runs nothing, import it with --module."
        )
    spec = importlib.util.spec_from_file_location(MAIN, path)
    if spec is None or spec.loader is None:
        raise SettingError(f"The script {path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MAIN] = module
    sys.argv[:] = [path]
    if (beside := os.path.dirname(os.path.abspath(path))) not in sys.path:
        sys.path.insert(0, beside)
    spec.loader.exec_module(module)
    return module


def _is_guarded(source: bytes, path: str) -> bool:
    """Returns whether a script asks at its top whether it is `__main__`."""
    return any(
        isinstance(each, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(each.test))
        for each in ast.parse(source, path).body
    )


# -------------------------------------------------------------------------------------- what a module has


def _jitted_in(module: ModuleType, qualname: str, recorded_module: str) -> list[Any]:
    """Returns the function of that name if it is jitted; else everything in the module that is jitted from it."""
    named = _named(module, qualname)
    if _is_jitted(named):
        return [named]
    modules = {module.__name__, recorded_module}
    return [each for each in _attributes(module) if _is_jitted(each) and _is_of(each, qualname, modules)]


def _attributes(module: ModuleType) -> list[Any]:
    """Returns the attributes of the module and its classes, each once."""
    own = list(vars(module).values())
    for holder in list(own):
        if isinstance(holder, type) and holder.__module__ == module.__name__:
            own += map(_plain, vars(holder).values())
    return list({id(each): each for each in own}.values())


def _is_jitted(value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and callable(getattr(value, "lower", None))


def _is_of(jitted: Any, qualname: str, modules: set[str]) -> bool:
    fun = unwrapped(jitted)
    return getattr(fun, "__qualname__", None) == qualname and getattr(fun, "__module__", None) in modules


def _named(module: ModuleType, qualname: str) -> Any:
    """Returns the attribute of that name, None if there is none. Runs no `__getattr__` and no descriptor."""
    found: Any = module
    for part in qualname.split("."):
        if not isinstance(found, ModuleType | type):
            return None
        found = _plain(vars(found).get(part))
    return found


def _plain(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod) else value


def _why_not(module: ModuleType, qualname: str) -> str:
    script = os.path.basename(module.__file__ or "") if module.__name__ == MAIN else ""
    named = f"`{qualname:.120}` of {script}" if script else f"`{module.__name__}.{qualname:.120}`"
    if _named(module, qualname) is None:
        return f"{named} no longer exists"
    return f"{named} is not jitted there, nor is there an attribute that is jitted from it"
