"""Owners of the code that a frame runs: JAX, a library, jaxobs, or the user."""

import dis
import functools
import os
import sys
import sysconfig
import types
from types import CodeType, FrameType, ModuleType
from typing import Any

from jaxobs.base.files import absolute


def _folders(*names: str) -> tuple[str, ...]:
    found = []
    for name in names:
        module = sys.modules.get(name)
        for path in getattr(module, "__path__", None) or []:
            found.append(path + os.sep)
    return tuple(found)


_jax_folders: tuple[str, ...] = ()
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PROGRAMS = tuple(os.path.join(_OWN_FOLDER, "ops", name, "") for name in ("demo", "gameday"))
"""Folders whose files count as a user's program."""
_INSTALLED = sysconfig.get_paths()
_MOST_FILES = 8192

_PACKAGE_FOLDERS = tuple({_INSTALLED[name] + os.sep for name in ("purelib", "platlib") if name in _INSTALLED})
_PACKAGE_NAMES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
"""Folders of packages: the user's own, the base interpreter's under a virtual environment, and unpacked archives'."""
_LIBRARY_FOLDERS = tuple(
    {
        path + os.sep
        for path in (*_INSTALLED.values(), os.path.dirname(os.__file__))
        if path and path not in (_INSTALLED.get("scripts"), _INSTALLED.get("data"))
    }
)

_GENERATED = ("<frozen ", "<attrs generated", "<@beartype", "<decorator-gen", "<__array_function__", "<makefun-gen")
"""Code without a file that a library has made: no line of anybody's. A notebook's cells have no file either."""
_PASSES_ON = tuple(
    each.replace("/", os.sep)
    for each in (
        "beartype/", "chex/_src/", "decorator.py", "equinox/_compile_utils.py", "equinox/_jit.py", "equinox/_module/",
        "flax/nnx/transforms/", "jaxtyping/", "numpy/", "wrapt/",
    )
)  # fmt: skip
"""Files of libraries that only hand a call on: the line before is the one that says something."""
_CALLS_JITTED = ("equinox/_jit.py".replace("/", os.sep), "flax/nnx/transforms/".replace("/", os.sep))
_LAUNCHERS = frozenset(
    {
        "IPython", "_pytest", "accelerate", "celery", "coverage", "debugpy", "execnet", "flask", "gunicorn",
        "hypercorn", "ipykernel", "ipykernel_launcher", "jupyter", "jaxobs", "pluggy", "pytest", "ray", "streamlit",
        "torch", "tornado", "traitlets", "uvicorn", "xdist",
    }
)  # fmt: skip
"""Installed programs that run the user's code, and are not the user's."""
_WAITING = frozenset(
    {
        "asyncio", "concurrent", "http", "logging", "multiprocessing", "queue", "selectors", "signal", "socket",
        "socketserver", "ssl", "subprocess", "threading",
    }
)  # fmt: skip
"""Modules of Python's standard library in which a thread mostly waits."""


def in_library(filename: str) -> str | None:
    """The path in an installed library, from its name on; None for the program's, ours and the standard library's."""
    path = _packaged(filename)
    if path is None or is_own(filename):
        return None
    own = _program()
    return None if own is not None and (path.startswith(own + os.sep) or path == f"{own}.py") else path


@functools.lru_cache(maxsize=_MOST_FILES)
def _packaged(filename: str) -> str | None:
    for folder in _PACKAGE_FOLDERS:
        if filename.startswith(folder):
            return filename[len(folder) :]
    for name in _PACKAGE_NAMES:
        if name in filename:
            return filename.rpartition(name)[2]
    return None


def _program() -> str | None:
    """The installed package that is the program: of `python -m package`, or of its command; None for a script."""
    main = sys.modules.get("__main__")
    return None if main is None else _program_of(main, getattr(getattr(main, "__spec__", None), "name", None))


@functools.lru_cache(maxsize=4)
def _program_of(main: ModuleType, name: str | None) -> str | None:
    if name is None:
        file = getattr(main, "__file__", None)
        scripts = _INSTALLED.get("scripts")
        if not isinstance(file, str) or not scripts or os.path.dirname(absolute(file)) != scripts:
            return None
        # The command that an installer made: it imports one function, and calls it.
        modules = [getattr(each, "__module__", None) for each in list(vars(main).values()) if callable(each)]
        name = next((each for each in modules if isinstance(each, str) and each in sys.modules), None)
    if name is None:
        return None
    top = name.partition(".")[0]
    return None if top in _LAUNCHERS or top == "__main__" else top


def shown(filename: str) -> str:
    """The file for a person: of what is installed, from its package's name on."""
    return _packaged(filename) or filename


def passes_on(path: str) -> bool:
    """Returns whether a library's file, as `in_library` tells it, only hands calls on to functions that it is given."""
    return path.startswith(_PASSES_ON)


def calls_jitted(path: str) -> bool:
    """Returns whether all that a library's file calls in C++ is a compiled function."""
    return path.startswith(_CALLS_JITTED)


def owner(module: str) -> str | None:
    """The installed library that a module belongs to, by the first part of its name; None for a user's module."""
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None)
    return top if file is not None and in_library(file) is not None else None


def is_jax(filename: str) -> bool:
    """Returns whether a file is JAX's own."""
    global _jax_folders
    if not _jax_folders:
        _jax_folders = _folders("jax", "jaxlib")
    return filename.startswith(_jax_folders)


def is_own(filename: str) -> bool:
    """Returns whether a file is ours, the demo and the game day apart: these are users' programs."""
    return filename.startswith(_OWN_FOLDER) and not filename.startswith(_PROGRAMS)


def is_plumbing(filename: str) -> bool:
    """Installed libraries and ourselves: no place where the user could change anything."""
    if filename.startswith(_OWN_FOLDER):
        return not filename.startswith(_PROGRAMS)
    if _packaged(filename) is not None:
        return in_library(filename) is not None
    if filename == "<string>":  # generated, by `dataclasses` for one, unless the program is `python -c`
        return getattr(sys.modules.get("__main__"), "__file__", None) is not None
    return filename.startswith((*_GENERATED, *_LIBRARY_FOLDERS))


def runs_programs(filename: str) -> bool:
    """Returns whether a file is of what programs run in: Python's standard library, JAX, a notebook's kernel."""
    if is_jax(filename) or not is_plumbing(filename):
        return is_jax(filename)
    path = in_library(filename)
    return path is None or path.partition(os.sep)[0].removesuffix(".py") in _LAUNCHERS


def works(filename: str) -> bool:
    """Returns whether a thread works in a file: not in JAX, a launcher, or a module of Python's in which it waits."""
    if not runs_programs(filename):
        return True
    path = next((filename[len(each) :] for each in _LIBRARY_FOLDERS if filename.startswith(each)), "")
    name = path.partition(os.sep)[0].removesuffix(".py")
    return name not in ("", *_WAITING) and not is_jax(filename) and in_library(filename) is None


def user_line(frame: FrameType | None) -> str | None:
    """`file:line` of the innermost frame of the user's, from this one on outwards."""
    while frame is not None and (is_jax(frame.f_code.co_filename) or is_plumbing(frame.f_code.co_filename)):
        frame = frame.f_back
    return None if frame is None else f"{shown(frame.f_code.co_filename)}:{line_number(frame)}"


def line_number(frame: FrameType) -> int:
    """The line that a frame is at."""
    return frame.f_lineno or line_of(frame.f_code, frame.f_lasti)


def line_of(code: CodeType, at: int) -> int:
    """The line of an instruction; of a jump without a line, as Python 3.11 has, that of its target or function."""
    if not (line := _line(code, at)):
        jumps = (each.argval for each in dis.get_instructions(code) if each.offset == at and each.opcode in dis.hasjrel)
        line = _line(code, next(jumps, -1)) or code.co_firstlineno
    return line


def _line(code: CodeType, at: int) -> int:
    """The line of an instruction; 0 where the code does not tell."""
    return next((line or 0 for begin, end, line in code.co_lines() if begin <= at < end), 0)


def user_function(fun: Any) -> Any:
    """Returns the user's function inside a closure or method that JAX made around it, as `pmap` does."""
    closure, code = getattr(fun, "__closure__", None), getattr(fun, "__code__", None)
    if code is None or not is_jax(code.co_filename):
        return fun
    if hasattr(fun, "__self__"):
        return getattr(fun.__self__, "f", fun)
    for name, cell in zip(code.co_freevars, closure or (), strict=False):
        if name == "fun":
            return getattr(cell.cell_contents, "f", fun)
    return fun


def is_jax_function(fun: Any) -> bool:
    """Returns whether `fun` is JAX's own (`jnp.mean`, an eager primitive), no function of the user's."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    module = getattr(fun, "__module__", None)
    if not isinstance(module, str) or module.split(".")[0] != "jax" or exported(fun) is not None:
        return False
    return getattr(fun, "__wrapped__", None) is None


def exported(fun: Any) -> Any:
    """Returns the program of `jax.export` whose method `call` this is; None for any other function."""
    kind = getattr(sys.modules.get("jax._src.export._export"), "Exported", None)
    return fun.__self__ if type(fun) is types.MethodType and kind is not None and type(fun.__self__) is kind else None
