"""The program's exceptions as facts: text, place, chain. None of the user's code is run, no line of source is read."""

import contextlib
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any

from jaxobs.base import threads
from jaxobs.internals.source_files import is_jax, is_own, is_plumbing, line_number, shown
from jaxobs.reasons.described import described, module_of, name_of
from jaxobs.recorder import error_texts, oom_texts
from jaxobs.recorder.error_texts import ErrorKind
from jaxobs.recorder.oom_texts import OomText

MOST_FRAMES = 40

_MOST_CHAINED = 8
_MOST_KNOWN = 64
_SAME_SECONDS = 10.0
_LIBRARIES = ("aiohttp", "grpc", "jax", "jaxlib", "numpy", "tensorflow", "urllib")
"""Packages whose exceptions may make their text themselves: nobody else's `__str__` is run."""
_args, _cause, _context, _suppresses = (
    vars(BaseException)[name].__get__ for name in ("args", "__cause__", "__context__", "__suppress_context__")
)


def parsed_error(error: BaseException) -> OomText | None:
    """Returns the memory facts of an exception's text; None if it is about something else."""
    if not isinstance(error, MemoryError | RuntimeError | ValueError) and not _makes_its_text(error):
        return None
    parsed = oom_texts.parse(text(error))
    if parsed is None and isinstance(error, MemoryError):
        return OomText(stage="allocate")
    return parsed


def chain(error: BaseException) -> list[BaseException]:
    """The exception and those that it was raised from or while handling."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and all(each is not other for other in found) and len(found) < _MOST_CHAINED:
        found.append(each)
        cause, context = _cause(each), None if _suppresses(each) else _context(each)
        each = context if cause is None else cause
    return found


def text(error: BaseException) -> str:
    """Returns the message of an error; empty if only the user's code could tell."""
    with contextlib.suppress(Exception):
        if _makes_its_text(error):
            return str(error)
        given = _args(error)
        return _told(given[0]) if len(given) == 1 else described(given) if given else ""
    return ""


def _told(value: Any) -> str:
    """Text of an exception's only argument, which may be another exception or an object of the program's."""
    if issubclass(type(value), BaseException):
        return text(value)
    return str.__str__(value) if issubclass(type(value), str) else described(value)


def _makes_its_text(error: BaseException) -> bool:
    return str(module_of(type(error))).partition(".")[0] in _LIBRARIES


def call_site(error: BaseException) -> str | None:
    """`file:line` in the user's code: the innermost of the traceback, else the nearest caller of where it begins."""
    found: str | None = None
    for frame, line in _traceback(error):
        if _is_users(frame):
            found = f"{shown(frame.f_code.co_filename)}:{line}"
    first = error.__traceback__.tb_frame if error.__traceback__ is not None else None
    while found is None and first is not None:
        if _is_users(first):
            found = f"{shown(first.f_code.co_filename)}:{first.f_lineno}"
        first = first.f_back
    return found


def _is_users(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not is_jax(name) and not is_plumbing(name)


def traceback_lines(error: BaseException) -> tuple[str, ...]:
    """The traceback as `file:line in function`, the innermost last; JAX's own frames in a row are one line."""
    return _lines(_traceback(error))


def thread_lines(most: int) -> dict[str, tuple[str, ...]]:
    """Returns the place of each Python thread, the main thread first; without the calling thread and ours."""
    with threads.current_frames() as frames:
        return _thread_lines(frames, most)


def _thread_lines(frames: dict[int, FrameType], most: int) -> dict[str, tuple[str, ...]]:
    main, own = threading.main_thread(), threading.get_ident()
    # Not `threading.enumerate`: it takes a lock that the code may hold which a signal has interrupted.
    names = {each.ident: each.name for each in list(threading._active.values())}  # type: ignore[attr-defined]
    order = sorted((each for each in frames if each != own), key=lambda each: (each != main.ident, each))
    told: dict[str, tuple[str, ...]] = {}
    for ident in order:
        name = names.get(ident, f"thread {ident}")
        stack = _stack(frames[ident])
        ours = name.startswith("jaxobs-") or is_own(stack[0][0].f_code.co_filename)
        lines = () if ours and ident != main.ident else _lines(stack)
        if lines and len(told) < most:
            told[name] = lines
    return told


def _traceback(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _stack(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    found: list[tuple[FrameType, int]] = []
    while frame is not None and len(found) < 1000:
        found.append((frame, line_number(frame)))
        frame = frame.f_back
    return found[::-1]


def _lines(frames: Iterable[tuple[FrameType, int]]) -> tuple[str, ...]:
    lines: list[str] = []
    of_jax = 0
    for frame, line in frames:
        name = frame.f_code.co_filename
        if is_jax(name):
            of_jax += 1
            continue
        if of_jax:
            lines.append(_in_jax(of_jax))
            of_jax = 0
        # Ours lie below a script that `jaxobs run` has started, and above what a signal has interrupted.
        if not is_own(name) and not name.startswith("<frozen "):
            lines.append(f"{shown(name)}:{line} in {frame.f_code.co_name}")
    if of_jax:
        lines.append(_in_jax(of_jax))
    if len(lines) > MOST_FRAMES:
        left_out = len(lines) - MOST_FRAMES
        half = MOST_FRAMES // 2
        lines = [*lines[:half], f"({left_out:,} more)", *lines[-half:]]
    return tuple(lines)


def _in_jax(count: int) -> str:
    return f"({count} frame{'s' * (count != 1)} in JAX)"


def last_uncaught() -> BaseException | None:
    """The exception that the interpreter, or a notebook, has last shown to the user."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None


class Known:
    """The exceptions that were shown already. None is kept alive: it holds frames, and these arrays."""

    def __init__(self) -> None:
        # Reentrant: a signal handler of the program may raise while this thread is in here.
        self._lock = threads.RLock()
        self._known: list[tuple[Any, int, str, float]] = []

    def is_new(self, error: BaseException) -> bool:
        """Returns whether an exception is shown for the first time."""
        now, said = time.monotonic(), text(error)[:200]
        try:
            reference: Any = weakref.ref(error)
        except TypeError:  # a built-in type's: known by what it says, for a while
            reference = None
        with self._lock:
            for each, number, told, when in self._known:
                if each is None:
                    if number == id(error) and told == said and now - when < _SAME_SECONDS:
                        return False
                elif each() is error:
                    return False
            alive = [each for each in self._known if each[0] is None or each[0]() is not None]
            self._known = [*alive[-_MOST_KNOWN:], (reference, id(error), said, now)]
        return True


def recognised(error: BaseException) -> ErrorKind | None:
    """Returns the kind of an error, or of one that it was raised from; None if it is not known."""
    for link in chain(error):
        parsed = parsed_error(link)
        if parsed is not None and not parsed.harmless:
            return error_texts.BY_NAME["out_of_memory"]
        types = tuple(map(name_of, type.mro(type(link))))
        found = error_texts.recognise(types, text(link)) if isinstance(link, Exception) else None
        if found is not None:
            return found
    return None
