"""Lookups in the persistent cache, from JAX's request to the end of the compile: entries that were found or stored.

JAX reports little of it. An event announces the writing of an entry, but does not prove it: writing may fail, with a
warning only, and an entry that is there is never replaced, also when it cannot be read. So the file is looked at,
before and after. What forbids storing a program is looked for in the order of JAX's own checks
(`compiler._cache_write`, then `compilation_cache.put_executable_and_time`, then `LRUCache.put`).
"""

import os
import sys
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.internals import cache_state
from jaxobs.internals.backends import process_index_and_count
from jaxobs.internals.cache_keys import Request, read_request

_ALIKE = 0.1
"""By how much of it the entries of one program, stored by two processes, may differ in size."""
_NEAR = 1.1
"""A compile that JAX measured may have been this much shorter than what is seen from outside, and 50 ms."""


@dataclass(slots=True)
class Lookup:
    """Facts of the lookup of one compile. Holds live objects: it ends with the compile."""

    request: Request | None = None
    asked_at: float = 0.0
    file: str | None = None
    """Path at which the entry is or would be, if it can be looked at."""
    before: tuple[int, int] | None = None
    """Size and time of the file when JAX asked; None where there was none."""
    hit: bool = False
    load_seconds: float | None = None
    jax_saved_seconds: float | None = None
    writing_bytes: int | None = None
    """Size of the entry that JAX was about to write; None where it did not come so far."""
    exact_seconds: float | None = None
    """Compile time as JAX measured it; known only when it was about to write."""
    seconds: float = 0.0
    """Compile time; on a hit, 0."""
    result: str = "disabled"
    """A name from `CACHE_RESULTS`."""
    unsaved: tuple[str, str] | None = field(default=None)
    """Why it was not stored: one of `UNSAVED`, and a sentence."""

    @property
    def key(self) -> str | None:
        return None if self.request is None else self.request.key


def asked(frame: FrameType | None) -> Lookup:
    """JAX asks the cache: the listener was called from `frame`."""
    lookup = Lookup(asked_at=monotonic())
    with guarded("cache_request"):
        lookup.request = read_request(frame)
        if lookup.request is not None:
            lookup.file = cache_state.entry_file(lookup.request.key)
            lookup.before = _look(lookup.file)
    return lookup


def writing(lookup: Lookup, frame: FrameType | None) -> None:
    """JAX is about to write: its frames hold the entry's size and the time that the compiler took."""
    lookup.writing_bytes = -1
    for _ in range(6):
        if frame is None or lookup.exact_seconds is not None:
            return
        local = frame.f_locals
        if isinstance(local.get("entry_size"), int):
            lookup.writing_bytes = local["entry_size"]
        elif "executable_and_time" in local:
            lookup.writing_bytes = len(local["executable_and_time"])
        if isinstance(local.get("compile_time_secs"), float):
            lookup.exact_seconds = local["compile_time_secs"]
        frame = frame.f_back


def ended(lookup: Lookup, duration: float, executable: Any) -> None:
    """The compile is over: says what the cache did, and why it holds no entry if it holds none."""
    if lookup.hit:
        lookup.result = "hit"
        return
    since_asked = monotonic() - lookup.asked_at if lookup.asked_at else duration
    lookup.seconds = lookup.exact_seconds or min(duration, since_asked)
    if lookup.asked_at and cache_state.is_open():
        lookup.result = "miss"
        with guarded("cache_unsaved"):
            lookup.unsaved = _why_unsaved(lookup, executable)
    else:
        lookup.unsaved = "disabled", cache_state.why_disabled(bool(lookup.asked_at))


def _why_unsaved(lookup: Lookup, executable: Any) -> tuple[str, str] | None:
    after = _look(lookup.file)
    if lookup.before is not None and after == lookup.before:
        return None if cache_state.checks_contents() else ("error", _rejected(lookup))
    if after is not None and (lookup.writing_bytes is None or lookup.writing_bytes in (-1, after[0])):
        return None  # another process may have written it
    if lookup.writing_bytes is not None:
        return _why_not_written(lookup, after)
    return _why_not_tried(lookup, executable)


def _look(file: str | None) -> tuple[int, int] | None:
    if file is None:
        return None
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _rejected(lookup: Lookup) -> str:
    """An entry is there and did not serve: JAX compiles, and leaves the entry as it is."""
    text = cache_state.warned("compiler", f"Error reading persistent compilation cache entry for {_quoted(lookup)}")
    why = f": {text}" if text else ""
    return (
        f"Its entry is there but could not be used{why}. JAX never replaces an entry, "
        f"so every start recompiles: delete {lookup.file}."
    )


def _quoted(lookup: Lookup) -> str:
    return f"'{lookup.request.module}': " if lookup.request is not None else ""


def _why_not_written(lookup: Lookup, after: tuple[int, int] | None) -> tuple[str, str] | None:
    """JAX was about to write, and the entry is not there, or not whole."""
    text = cache_state.warned("compiler", f"Error writing persistent compilation cache entry for {_quoted(lookup)}")
    if lookup.file is None:
        return ("error", f"It could not be written: {text}.") if text else None
    if after is not None and not text and abs(after[0] - (lookup.writing_bytes or 0)) < _ALIKE * after[0]:
        return None  # another process came first with its own: no two serialize a program to the same byte
    if after is not None:
        why = f": {text}" if text else ""
        return "error", (
            f"Only {after[0]:,} of {lookup.writing_bytes:,} bytes of its entry were written{why}. JAX never replaces "
            f"an entry, so every start will fail to read it and recompile: delete {lookup.file}."
        )
    most, size = cache_state.most_bytes(), lookup.writing_bytes or 0
    if most is not None and size > most:
        return "error", f"Its entry of {size:,} bytes exceeds jax_compilation_cache_max_size, which is {most:,} bytes."
    return "error", f"It could not be written: {text or _why_not_writable(lookup.file)}."


def _why_not_writable(file: str) -> str:
    """Returns the result that the directory itself shows, if JAX's warning is out of sight."""
    directory = os.path.dirname(file)
    if not os.path.isdir(directory):
        return f"the directory {directory} is gone"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"this process may not write to {directory}"
    if hasattr(os, "statvfs") and os.statvfs(directory).f_bavail == 0:
        return f"the disk of {directory} is full"
    return "JAX's warning was filtered out, so the error is unknown; or the entry was deleted immediately"


def _why_not_tried(lookup: Lookup, executable: Any) -> tuple[str, str]:
    """JAX did not come so far as to write."""
    index, count = _writer_of()
    if index != 0:
        return "not_writer", f"This is process {index} of {count}; in JAX only process 0 writes."
    if lookup.request is not None and lookup.request.callbacks and _refuses_callbacks():
        number = lookup.request.callbacks
        return "callbacks", (
            f"It calls back to Python ({number} host callback{'s' * (number > 1)}, such as jax.debug.print), "
            "and this version of JAX does not store such programs."
        )
    least = cache_state.minimum_compile_seconds()
    taken = f"Compiled in {_seconds(lookup.seconds)}; jax_persistent_cache_min_compile_time_secs is {least:g} s."
    if lookup.seconds < least:
        return "too_fast", taken
    text = cache_state.warned("compiler", f"Error writing persistent compilation cache entry for {_quoted(lookup)}")
    if text:
        return "error", f"It could not be serialized: {text}."
    return _too_small(lookup, executable) or (
        ("too_fast", f"{taken} JAX's own measurement is slightly smaller.")
        if lookup.seconds < least * _NEAR + 0.05 and least > 0
        else ("unknown", "JAX did not store it and gave no reason; its warning may have been filtered out.")
    )


def _too_small(lookup: Lookup, executable: Any) -> tuple[str, str] | None:
    least = cache_state.minimum_entry_bytes()
    if least <= 0:
        return None
    setting = f"jax_persistent_cache_min_entry_size_bytes is {least:,}"
    if executable is None or lookup.request is None:
        return "too_small", f"Its entry is smaller than the minimum size; {setting}."
    size = _entry_bytes(lookup.request, executable)
    return (
        ("too_small", f"Its entry would have about {size:,} bytes; {setting}.")
        if size is not None and size < least
        else None
    )


def _entry_bytes(request: Request, executable: Any) -> int | None:
    """Size of the entry as JAX would write it. JAX reports it nowhere, so it is made once more; it is small."""
    try:
        from jax._src import compilation_cache

        own = getattr(executable, "serialize", None)
        program = request.backend.serialize_executable(executable) if own is None else own()
        return len(compilation_cache.compress_executable(bytes(4) + program))
    except Exception:  # whatever the backend raises: it cannot be stored, and JAX has warned of it
        return None


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1000:.1f} ms"


def _writer_of() -> tuple[int, int]:
    """Place of this process among the writers, as JAX asks for it: by the job, not by the devices."""
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return int(getattr(state, "process_id", 0) or 0), process_index_and_count()[1]


def _refuses_callbacks() -> bool:
    """Returns whether this JAX stores no program with host callbacks: its check has to be given them."""
    code = getattr(getattr(sys.modules.get("jax._src.compiler"), "_cache_write", None), "__code__", None)
    return code is not None and "host_callbacks" in code.co_varnames[: code.co_argcount]
