"""Lookups in the persistent cache, as facts: time saved, and why one missed, from the sidecar's memory.

Where an event log is written, each miss is compared with what earlier processes left in the sidecar next to it, and
adds its own record (`jaxobs.reasons.cache_records`). Without an event log there is none, and no reason is given.
"""

import os
from collections.abc import Iterable
from functools import partial

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.files import absolute
from jaxobs.base.files.patience import Patience
from jaxobs.base.guard import guarded, internal_error
from jaxobs.facts.compilations import CacheLookup
from jaxobs.internals import Lookup
from jaxobs.reasons import cache_differences
from jaxobs.reasons.cache_records import KeyRecord, Sidecar
from jaxobs.state.store import Store

MOST_COMPILES = 4096
DISK_SECONDS = 1.0
"""Seconds that a compile waits for the sidecar."""


class CacheLookups:
    """Makes a `CacheLookup` of what JAX's listeners and files reported one lookup. Safe for threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sidecar: Sidecar | None = None
        self._compiled: dict[str, float] = {}
        """Seconds by key, of what this process compiled itself."""
        self._lock = threads.RLock()  # a signal handler may compile
        self._disk = Patience(DISK_SECONDS)

    def after_fork(self) -> None:
        """In a forked child: another process, with a fresh lock."""
        self._lock = threads.RLock()  # a signal handler may compile
        if self._sidecar is not None:
            self._sidecar.after_fork()

    def fact(self, lookup: Lookup, function: str, fingerprint: str | None, in_key: bool, now: float) -> CacheLookup:
        """The lookup as an event. `in_key`: JAX's key is made of the same bytes as the fingerprint."""
        differs: tuple[str, ...] = ()
        reason: str | None = None
        earlier: float | None = None
        with self._lock:
            sidecar = self._open()
            if sidecar is not None and lookup.request is not None:
                with guarded("cache_records"):
                    mine = self._mine(sidecar, lookup, function, fingerprint, in_key, now)
                    try:
                        earlier, differs, reason = self._disk.do(partial(_looked_up, sidecar, mine, lookup.hit))
                    except OSError as error:
                        self._store.drop("cache_keys")
                        internal_error("cache_keys", error, sidecar.path)
            saved = self._saved(lookup, earlier)
        return CacheLookup(
            time=now, function=function, result=lookup.result, key=lookup.key,
            seconds=lookup.load_seconds, saved_seconds=saved, differs=differs, reason=reason,
        )  # fmt: skip

    def _open(self) -> Sidecar | None:
        """The sidecar next to the event log that is written now; None without one."""
        event_log = self._store.settings.event_log
        if event_log is None:
            return None
        directory = os.path.dirname(absolute(event_log))
        if self._sidecar is None or os.path.dirname(self._sidecar.path) != directory:
            self._sidecar = Sidecar(directory)
        return self._sidecar

    def _saved(self, lookup: Lookup, earlier: float | None) -> float | None:
        """Compile time less the time to load, from our own record; else JAX's, which is in whole seconds."""
        if lookup.key is not None and lookup.result == "miss":
            if len(self._compiled) >= MOST_COMPILES:
                self._compiled.clear()
            self._compiled[lookup.key] = lookup.seconds
        if not lookup.hit:
            return None
        own = self._compiled.get(lookup.key or "", earlier)
        if own is not None and lookup.load_seconds is not None:
            return max(0.0, own - lookup.load_seconds)
        return None if lookup.jax_saved_seconds is None else max(0.0, lookup.jax_saved_seconds)

    def _mine(
        self, sidecar: Sidecar, lookup: Lookup, function: str, fingerprint: str | None, in_key: bool, now: float
    ) -> KeyRecord:
        """Returns what this lookup leaves to later processes."""
        request = lookup.request
        assert request is not None
        parts, values = internals.cache_keys.parts(request)
        program = internals.cache_keys.program(request, fingerprint, in_key)
        if program is not None:
            parts["program"] = program
        because, detail = lookup.unsaved or (None, None)
        arguments, directory = "", internals.persistent_cache()[1]
        if internals.cache_state.local(directory) is not None:
            directory = absolute(str(directory))  # equal in every process, wherever it was started
        with guarded("cache_key types"):
            arguments = internals.cache_keys.types(request.program)
        return KeyRecord(
            function=function, key=request.key, time=now, process=sidecar.process, pid=os.getpid(),
            process_index=internals.process_index_and_count()[0], result=lookup.result, module=request.module,
            jax=internals.cache_keys.jax_version(), arguments=arguments,
            fingerprint=None if program == fingerprint else fingerprint, parts=parts, values=values,
            directory=directory,
            compile_seconds=None if lookup.hit else lookup.seconds, load_seconds=lookup.load_seconds,
            stored=None if because is None and lookup.file is None else because is None,
            uncached_because=because, uncached_detail=detail,
        )  # fmt: skip


def _looked_up(sidecar: Sidecar, mine: KeyRecord, hit: bool) -> tuple[float | None, tuple[str, ...], str | None]:
    """Seconds that it took to compile, and what differs from what is known and why; keeps the record."""
    sidecar.refresh()
    known = list(sidecar.of_key(mine.key))
    differs, reason = ((), None) if hit else _explained(sidecar, mine, known)
    # That it is there needs no telling twice: warm starts leave the file as it is.
    if not hit or not any(each.result == "hit" or each.stored for each in known):
        sidecar.add(mine)
    return _seconds(known) if hit else None, differs, reason


def _explained(sidecar: Sidecar, mine: KeyRecord, same_key: list[KeyRecord]) -> tuple[tuple[str, ...], str | None]:
    """Returns what differs from the nearest program that an earlier process had compiled, and the sentence."""
    began = mine.time - (mine.compile_seconds or 0.0)
    # What another process compiled meanwhile could not have been found.
    others = [each for each in same_key if each.time <= began and each.process != mine.process]
    if not others:
        neighbours = sidecar.neighbours(mine.function, mine.parts.get("program"))
        others = [each for each in neighbours if each.time <= began]
    other = cache_differences.nearest(mine, others)
    if other is None:
        return (), None
    evicts = internals.cache_state.most_bytes() is not None
    return cache_differences.differing(mine, other), cache_differences.sentence(mine, other, evicts=evicts)


def _seconds(records: Iterable[KeyRecord]) -> float | None:
    """The latest compile time among the records of a key."""
    return next((each.compile_seconds for each in records if each.compile_seconds is not None), None)
