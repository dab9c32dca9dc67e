"""The files of a bundle: copied as far as a diagnosis reads them, and laid out again as they were."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jaxobs.base.files import rotated
from jaxobs.ops.diagnosis.bundles.archives import MOST_BYTES, MOST_ENTRIES, BundleError, Entry
from jaxobs.ops.diagnosis.bundles.manifests import CopiedFile
from jaxobs.ops.diagnosis.bundles.masking import masked
from jaxobs.ops.diagnosis.gathering.bounded import Ends, UnreadableError, ends, regular_size
from jaxobs.ops.diagnosis.gathering.places import EVENT_LOG, File, Inputs, files

MOST_EVENT_LOG = 256 * 2**20
"""Bytes of one event log: as many as one has by default."""
OLD = 600.0
"""Seconds since a file was written last, after which a diagnosis may conclude something from that."""
_RESERVED = 64 * 2**20
"""For the diagnosis and the manifest."""


class FullError(Exception):
    """There is no room for more; the message says so."""


class Store:
    """The entries of a bundle that is being made."""

    def __init__(self, folder: Path) -> None:
        self.entries: dict[str, Entry] = {}
        self.masked = 0
        self._folder = folder
        self._room = MOST_BYTES - _RESERVED
        (folder / "evidence").mkdir()

    def add(self, data: bytes, name: str) -> None:
        """An entry of a given name, as it is."""
        (self._folder / name).write_bytes(data)
        self.entries[name] = Entry(len(data), hashlib.sha256(data).hexdigest())

    def evidence(self, data: bytes) -> tuple[str, bytes]:
        """An entry with what a source said: its name, and what it holds, without secrets.

        Raises:
          FullError: the bundle has no room for it, or it cannot be masked.
        """
        if len(data) > self._room or len(self.entries) >= MOST_ENTRIES - 10:
            raise FullError(f"it was left out, because the bundle is full ({MOST_BYTES:,} bytes)")
        self._room -= len(data)
        try:
            hidden, count = masked(data)
        except ValueError as error:
            raise FullError(f"it was left out, because {error}") from None
        self.masked += count
        name = f"evidence/{len(self.entries):04d}"
        self.add(hidden, name)
        return name, hidden


def copied(store: Store, inputs: Inputs, now: float) -> Iterator[CopiedFile]:
    """Each file of the inputs, as it is now. Its time is kept if that was long ago: only then it says something."""
    for each in files(inputs):
        if each.modified is not None and now - each.modified < OLD:
            each = replace(each, modified=None)
        try:
            yield _copy(store, each)
        except (UnreadableError, FullError) as error:
            yield CopiedFile(kind=each.kind, name=each.name, year=each.year, modified=each.modified, problem=str(error))


def _copy(store: Store, file: File) -> CopiedFile:
    found = _of_event_log(file.path) if file.kind == EVENT_LOG else ends(file.path)
    return CopiedFile(
        kind=file.kind, name=file.name, year=file.year, modified=file.modified, size=found.size, notes=found.notes,
        head=store.evidence(found.head)[0], tail=None if found.tail is None else store.evidence(found.tail)[0],
    )  # fmt: skip


def _of_event_log(path: str) -> Ends:
    regular_size(path)
    size = rotated.total_size(path)
    try:
        with rotated.opened(path) as source:
            head = source.read(MOST_EVENT_LOG)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from None
    if size <= MOST_EVENT_LOG:
        return Ends(head, None, len(head))
    head = head[: head.rfind(b"\n") + 1]
    return Ends(head, None, len(head), (f"only its first {len(head):,} bytes of {size:,} are in the bundle",))


def restored(folder: Path, copies: Sequence[CopiedFile]) -> list[File]:
    """The files to read in place of the originals.

    Raises:
      BundleError: one cannot be laid out.
    """
    return [_restore(folder, number, each) for number, each in enumerate(copies)]


def _restore(folder: Path, number: int, copy: CopiedFile) -> File:
    if copy.head is None:
        path = folder / "missing"
    elif copy.tail is None:
        path = folder / copy.head
    else:
        path = folder / f"file-{number}"
        if not path.exists():
            _lay_out(path, folder / copy.head, folder / copy.tail, copy)
    return File(
        kind=copy.kind, path=str(path), name=copy.name, year=copy.year, modified=copy.modified, problem=copy.problem,
        notes=copy.notes,
    )  # fmt: skip


def _lay_out(path: Path, head: Path, tail: Path, copy: CopiedFile) -> None:
    """A file of the original size with a hole in the middle, which no reader looks into."""
    end = tail.read_bytes()
    try:
        with path.open("xb") as file:
            file.write(head.read_bytes())
            file.seek(copy.size - len(end))
            file.write(end)
    except OSError as error:
        raise BundleError(f"The file `{copy.name}` cannot be laid out: {error.strerror or error}.") from None
