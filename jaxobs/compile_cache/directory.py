"""The files of a cache directory: entries, JAX's files next to them, XLA's own caches, and the rest.

JAX's `LRUCache` (`jax/_src/lru_cache.py`) names an entry `<key>-cache`. Where `jax_compilation_cache_max_size` is set
it keeps the time of the last access next to it, in `<key>-atime`, as eight bytes of nanoseconds, little end first, and
locks `.lockfile`. XLA keeps caches of its own in the same directory, under names that begin with `xla_`.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from jaxobs.base import json_lines
from jaxobs.base.errors import JaxobsError
from jaxobs.base.files import rotated
from jaxobs.base.json_lines import Damage
from jaxobs.compile_cache.entries import Reading, function_name, read
from jaxobs.reasons import cache_records
from jaxobs.reasons.cache_records import FILE as SIDECAR

ENTRY, ATIME, LOCK = "-cache", "-atime", ".lockfile"
XLA = "xla_"
THREADS = min(8, (os.cpu_count() or 1) + 2)
MOST_NESTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A compiled program on disk."""

    path: Path
    key: str
    """JAX's cache key: the file's name without `-cache`."""
    function: str
    bytes: int
    written: float
    """Time of writing, in seconds since the epoch."""
    accessed: float | None
    """Last read by JAX, from the `-atime` file; None where there is none."""
    mode: int
    """Type and permission bits."""
    reading: Reading


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that is not an entry."""

    path: Path
    bytes: int
    written: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a directory."""

    path: Path
    entries: tuple[Entry, ...] = ()
    orphans: tuple[Leftover, ...] = ()
    """`-atime` files whose entry is gone."""
    missing_atimes: int = 0
    """Entries without an `-atime` file."""
    lock: Leftover | None = None
    xla: tuple[Leftover, ...] = ()
    """Caches that XLA keeps here, with their whole size."""
    others: tuple[Leftover, ...] = ()
    """Files that neither JAX nor XLA put here."""
    nested: tuple[Path, ...] = ()
    """Subdirectories that hold entries themselves."""
    folders: tuple[Path, ...] = ()
    """Subdirectories that are not caches."""

    @property
    def bytes(self) -> int:
        """Size of all entries."""
        return sum(entry.bytes for entry in self.entries)

    @property
    def is_cache(self) -> bool:
        """Whether JAX or XLA has put anything here."""
        return bool(self.entries or self.orphans or self.xla or self.lock)


def local(given: str) -> Path:
    """Returns the directory that a setting names; raises `JaxobsError` if it is a bucket, or not there."""
    scheme, separator, rest = given.partition("://")
    if separator and scheme != "file":
        raise JaxobsError(
            f"`{given}` is not a directory on this machine. Copy the cache here first, for example with "
            f"`gsutil -m rsync -r {given} ./cache-copy` or the tool of your storage, and inspect the copy."
        )
    path = Path(rest if separator else given)
    try:
        path.lstat()
    except FileNotFoundError:
        raise JaxobsError(
            f"There is no `{given}`. JAX creates the directory when it first compiles. Did the program run with "
            "jax_compilation_cache_dir (JAX_COMPILATION_CACHE_DIR) set to it?"
        ) from None
    except OSError:
        pass  # it may be there, out of sight: the checkup tells
    return path


def scan(path: Path, progress: Callable[[int, int], None] = lambda done, of: None) -> Contents:
    """Reads a directory's entries; `progress` gets how many are read and there are. Raises `OSError`."""
    with os.scandir(path) as found:
        files = {each.name: each for each in found}
    names = sorted(name for name, each in files.items() if name.endswith(ENTRY) and not _is_directory(each))
    keys = {name.removesuffix(ENTRY) for name in names}
    atimes = {name.removesuffix(ATIME) for name in files if name.endswith(ATIME)}
    rest = [
        each
        for name, each in sorted(files.items())
        if name.removesuffix(ENTRY) not in keys and name.removesuffix(ATIME) not in keys and name != SIDECAR
    ]
    folders = [each for each in rest if _is_directory(each) and not each.name.startswith(XLA)]
    others = [each for each in rest if each not in folders and not each.name.startswith(XLA) and each.name != LOCK]
    entries = tuple(_read_all([files[name] for name in names], atimes, progress))
    return Contents(
        path=path,
        entries=entries,
        missing_atimes=len(keys - atimes),
        orphans=_leftovers(each for each in others if each.name.endswith(ATIME)),
        lock=next(iter(_leftovers(each for each in rest if each.name == LOCK)), None),
        xla=_leftovers(each for each in rest if each.name.startswith(XLA)),
        others=_leftovers(each for each in others if not each.name.endswith(ATIME)),
        nested=tuple(Path(each.path) for each in folders if _holds(each)),
        folders=tuple(Path(each.path) for each in folders if not _holds(each)),
    )


def _is_directory(file: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return file.is_dir()
    return False


def _holds(folder: os.DirEntry[str]) -> bool:
    """Returns whether a subdirectory has entries; of a large one only the beginning is looked at."""
    with contextlib.suppress(OSError), os.scandir(folder.path) as found:
        return any(each.name.endswith(ENTRY) for each, _ in zip(found, range(MOST_NESTED), strict=False))
    return False


def _read_all(
    files: Sequence[os.DirEntry[str]], atimes: set[str], progress: Callable[[int, int], None]
) -> Iterator[Entry]:
    """Yields the entries, read by several threads: decompression lets other threads run."""
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for done, entry in enumerate(pool.map(lambda file: _entry(file, atimes), files), 1):
                progress(done, len(files))
                if entry is not None:
                    yield entry
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _entry(file: os.DirEntry[str], atimes: set[str]) -> Entry | None:
    """Reads an entry; None if it was evicted meanwhile."""
    key = file.name.removesuffix(ENTRY)
    path = Path(file.path)
    reading = read(path)
    try:
        status = path.stat()
    except FileNotFoundError:
        if not path.is_symlink():
            return None
        status = path.lstat()
    return Entry(
        path=path, key=key, function=function_name(key), bytes=status.st_size, written=status.st_mtime,
        accessed=_accessed(path.with_name(key + ATIME)) if key in atimes else None, mode=status.st_mode,
        reading=reading,
    )  # fmt: skip


def _accessed(path: Path) -> float | None:
    try:
        with path.open("rb") as file:
            return int.from_bytes(file.read(8), "little") / 1e9 or None
    except OSError:
        return None


def _leftovers(files: Iterator[os.DirEntry[str]]) -> tuple[Leftover, ...]:
    found = []
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat(follow_symlinks=False)
            size = _size(file.path) if file.is_dir(follow_symlinks=False) else status.st_size
            found.append(Leftover(Path(file.path), size, status.st_mtime))
    return tuple(found)


def _size(folder: str) -> int:
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(root, name)).st_size
    return size


def writers(log: Path, damage: Damage | None = None) -> dict[str, str]:
    """Versions of jaxlib by cache key, from an event log or its directory; raises `JaxobsError` without one."""
    try:
        folder = log if log.is_dir() else log.parent
        found = {} if log.is_dir() else _from_events(log, damage or Damage())
        for record in cache_records.read(folder):
            version = record.values.get("jaxlib")
            if version and (record.result == "miss" or record.key not in found):
                found[record.key] = str(version)
    except OSError as error:
        raise JaxobsError(f"The event log `{log}` cannot be read: {error.strerror or error}.") from None
    return found


def _from_events(log: Path, damage: Damage) -> dict[str, str]:
    """Returns the versions by key, from events; a line that cannot be read is skipped."""
    versions: dict[str, str] = {}
    found = {}
    with rotated.opened(log) as file:
        for _, event in json_lines.objects(file, damage):
            process = f"{event.get('pid')} {event.get('process_index')}"
            if event.get("event") == "manifest" and isinstance(event.get("versions"), Mapping):
                versions[process] = str(event["versions"].get("jaxlib") or "")
            elif event.get("event") == "cache_lookup" and event.get("result") == "miss" and versions.get(process):
                found[str(event.get("key"))] = versions[process]
    return found
