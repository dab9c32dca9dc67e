"""Runs a script, directory, zip file, module or standard input in this process as `python` would run it.

The interpreter is left to do what it can do itself: what the script raises travels on through the caller to the
interpreter, which reports it, runs exit handlers and chooses the exit status. Only the frames below the script are
taken out of the traceback first. This module knows nothing of who wants the script run.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

Compile = Callable[[bytes, str], CodeType]
"""Takes source and file name and gives what is to run; must raise nothing but what `compile` raises."""

STANDARD_INPUT = "<stdin>"
"""Name that the interpreter gives to the file of a program that it reads from standard input."""


def run_path(path: str, arguments: Sequence[str] = (), compile_source: Compile | None = None) -> None:
    """Runs what `python PATH ARGUMENTS` runs. What it raises comes out, `SystemExit` too.

    The first entry of `sys.path`, which the launch of this program has put there, gives way to the script's.
    """
    sys.argv[:] = [path, *arguments]
    whole = _here() if path == "." else os.path.join(_here(), path)
    if _is_importable(whole):
        _set_first_path(whole, even_if_safe=True)
        _renew_main(BuiltinImporter)
        _run(lambda: _run_module("__main__", False, compile_source))
    else:
        source = _read(whole)
        _set_first_path(os.path.dirname(os.path.realpath(whole)))
        _run_file(whole, source, compile_source)


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # somebody has deleted the directory
        return "."


def run_standard_input(arguments: Sequence[str] = (), compile_source: Compile | None = None) -> None:
    """Runs what `python - ARGUMENTS` runs: what standard input holds up to its end. What it raises comes out.

    A terminal is read to its end as well, and then is the program's to read from; there is no prompt.
    """
    sys.argv[:] = ["-", *arguments]
    _set_first_path("")
    source = b"" if sys.stdin is None else sys.stdin.buffer.read()
    namespace = vars(_renew_main(BuiltinImporter))
    namespace.update(__file__=STANDARD_INPUT, __cached__=None)
    _run(lambda: exec(_compiled(source, STANDARD_INPUT, compile_source or _compile), namespace))


def run_module(name: str, arguments: Sequence[str] = (), compile_source: Compile | None = None) -> None:
    """Runs what `python -m NAME ARGUMENTS` runs. What it raises comes out, `SystemExit` too."""
    sys.argv[:] = ["-m", *arguments]
    _set_first_path(_here())
    _renew_main(BuiltinImporter)
    _run(lambda: _run_module(name, True, compile_source))


def _run_file(path: str, source: bytes, compile_source: Compile | None) -> None:
    compiled = path.endswith(".pyc")
    loader: Any = SourcelessFileLoader if compiled else SourceFileLoader
    namespace = vars(_renew_main(loader("__main__", path)))
    namespace.update(__file__=path, __cached__=None)
    if compiled:
        _run(lambda: exec(namespace["__loader__"].get_code("__main__"), namespace))
    else:
        _run(lambda: exec(_compiled(source, path, compile_source or _compile), namespace))


def _compile(source: bytes, path: str) -> CodeType:
    # This module's own __future__ imports are not the script's.
    return compile(source, path, "exec", dont_inherit=True)


def _compiled(source: bytes, path: str, compile_source: Compile) -> CodeType:
    try:
        return compile_source(source, path)
    except BaseException as error:
        error.__traceback__ = None  # the frames of compiling tell nothing; those below come with the `raise`
        raise


def _run_module(name: str, alter_argv: bool, compile_source: Compile | None) -> None:
    run_as_main: Any = runpy._run_module_as_main  # type: ignore[attr-defined]
    if compile_source is not None:
        _recompile_next_module(compile_source)
    run_as_main(name, alter_argv)


def _recompile_next_module(compile_source: Compile) -> None:
    """Has `runpy` run, the next time it looks up a module, what `compile_source` makes of it."""
    look_up: Any = runpy._get_module_details  # type: ignore[attr-defined]

    def look_up_once(*arguments: Any) -> tuple[str, Any, CodeType]:
        runpy._get_module_details = look_up  # type: ignore[attr-defined]
        try:
            name, spec, code = look_up(*arguments)
        except BaseException as error:
            _leave_out_this_frame(error)
            raise
        source = _source_of(spec.loader, code.co_filename)
        return name, spec, code if source is None else compile_source(source, code.co_filename)

    runpy._get_module_details = look_up_once  # type: ignore[attr-defined]


def _source_of(loader: Any, path: str) -> bytes | None:
    try:
        source: bytes = loader.get_data(path)
    except (AttributeError, OSError):
        return None
    return source


# ------------------------------------------------------------------------------------------ the interpreter's part


def _is_importable(path: str) -> bool:
    """Returns whether `path` is a directory or zip file, which `python` searches for a `__main__` module."""
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return True
    return False


def _read(path: str) -> bytes:
    try:
        with io.open_code(path) as file:
            source: bytes = file.read()
            return source
    except OSError as error:
        program = sys.orig_argv[0] if sys.orig_argv else sys.executable
        _give_up(f"{program}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}")


def _give_up(message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    raise SystemExit(2)


def _set_first_path(entry: str, even_if_safe: bool = False) -> None:
    if not sys.flags.safe_path:
        sys.path[0:1] = [entry]
    elif even_if_safe:
        sys.path.insert(0, entry)


def _renew_main(loader: Any) -> ModuleType:
    """Replaces the launched `__main__` by one as the interpreter makes it."""
    launched = sys.modules.get("__main__")
    main = ModuleType("__main__")
    namespace: dict[str, Any] = vars(main)
    namespace["__loader__"] = loader
    if "__annotations__" in vars(launched):
        namespace["__annotations__"] = {}
    namespace["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return main


def _run(work: Callable[[], None]) -> None:
    try:
        work()
    except SystemExit:
        raise
    except BaseException as error:
        _report_without_our_frames(error)
        raise


# ------------------------------------------------------------------------------------------------- tracebacks


def _report_without_our_frames(uncaught: BaseException) -> None:
    """Sees to it that the hook of uncaught exceptions gets this one as it would have without us."""
    script_hook = getattr(sys, "excepthook", None)

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if script_hook is None:
            del sys.excepthook
            sys.stderr.write("sys.excepthook is missing\n")
        else:
            sys.excepthook = script_hook
        if error is uncaught:
            traceback = _above_our_frames(traceback)
            sys.last_traceback = error.__traceback__ = traceback
        try:
            (script_hook or sys.__excepthook__)(kind, error, traceback)
        except BaseException as second:
            _leave_out_this_frame(second)
            raise

    sys.excepthook = excepthook


def _above_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Returns the part of the traceback that the script has to answer for; None if it did not come to run."""
    while traceback is not None and traceback.tb_frame.f_code is not _run.__code__:
        traceback = traceback.tb_next
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _leave_out_this_frame(error: BaseException) -> None:
    """Prepares a bare `raise`, which does not put the raising frame into the traceback again."""
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next
