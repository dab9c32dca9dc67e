"""Archives: written with the same bytes for the same entries, read without trust in what they say."""

import contextlib
import gzip
import hashlib
import io
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from jaxobs.base import private_files
from jaxobs.base.errors import JaxobsError
from jaxobs.ops.diagnosis.evidence import clean
from jaxobs.ops.diagnosis.gathering import unpacking

MOST_ENTRIES = 5000
MOST_BYTES = 2**30
"""Of all entries together."""
_MOST_OF = {"manifest.json": 8 * 2**20, "diagnosis.json": 32 * 2**20}
_MOST_LISTED = 128
"""Bytes of an entry in the list of a ZIP file."""

TAR, ZIP = "tar", "zip"
_ENDINGS = {".tar.gz": TAR, ".tgz": TAR, ".zip": ZIP}
_NAME = re.compile(r"manifest\.json|diagnosis\.json|evidence/\d{4}")
_PIECE = 2**20
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time in a ZIP file."""


class BundleError(JaxobsError, ValueError):
    """A file is no bundle, was changed, or cannot be written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file in an archive."""

    size: int
    """Bytes."""
    sha256: str


def form_of(path: str) -> str:
    """Which archive a path means, by its ending.

    Raises:
      BundleError: it means none.
    """
    form = next((form for ending, form in _ENDINGS.items() if path.lower().endswith(ending)), None)
    if form is None:
        raise BundleError(f"`{path}` does not end in {', '.join(_ENDINGS)}. Give a bundle one of these endings.")
    return form


# --------------------------------------------------------------------------------------------------------------- write


def pack(form: str, folder: Path, names: Sequence[str], path: str) -> None:
    """Writes files of a folder into an archive. It is whole or not there.

    Raises:
      BundleError: it cannot be written.
    """
    draft = f"{path}.{os.getpid()}.draft"
    try:
        try:
            with open(draft, "xb", opener=private_files.opener) as file:
                (_tar if form == TAR else _zip)(file, folder, names)
            os.replace(draft, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise
    except OSError as error:
        raise BundleError(f"`{path}` cannot be written: {error.strerror or error}.") from None


def _tar(file: IO[bytes], folder: Path, names: Sequence[str]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in names:
            info = tarfile.TarInfo(name)
            info.size, info.mode = (folder / name).stat().st_size, private_files.FILE_MODE
            with (folder / name).open("rb") as content:
                archive.addfile(info, content)


def _zip(file: IO[bytes], folder: Path, names: Sequence[str]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in names:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (stat.S_IFREG | private_files.FILE_MODE) << 16
            with (folder / name).open("rb") as content, archive.open(info, "w", force_zip64=True) as target:
                while piece := content.read(_PIECE):
                    target.write(piece)


# ---------------------------------------------------------------------------------------------------------------- read


def unpack(path: str, folder: Path) -> dict[str, Entry]:
    """Writes the entries of an archive into a folder, and returns their hashes.

    Only plain files with the names that a bundle has are taken, within bounds of number and size.

    Raises:
      BundleError: it is no archive, or something in it is not as in a bundle.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BundleError(f"`{path}` is not a regular file. Give a bundle that `jaxobs bundle` wrote.")
        with open(path, "rb") as file:
            return _unpacked(path, file, folder)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise BundleError(f"`{path}` is damaged: {clean(str(error))}.") from None
    except RuntimeError as error:  # an encrypted zip file, or one with a compression that nobody here knows
        raise BundleError(f"`{path}` cannot be read: {clean(str(error))}.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"`{path}` cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _unpacked(path: str, file: IO[bytes], folder: Path) -> dict[str, Entry]:
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        entries = _of_tar(file)
    elif magic == b"PK\x03\x04":
        entries = _of_zip(file)
    else:
        raise BundleError(f"`{path}` is not a bundle: neither a .tar.gz nor a .zip file.")
    found: dict[str, Entry] = {}
    room = MOST_BYTES
    (folder / "evidence").mkdir()
    with contextlib.closing(cast(Any, entries)):
        for name, kind, size, content in entries:
            shown = clean(name)
            if kind:
                raise BundleError(f"`{path}`: the entry `{shown}` is {kind}. A bundle has only plain files.")
            if not _NAME.fullmatch(name):
                raise BundleError(f"`{path}`: the entry `{shown}` has a name that no entry of a bundle has.")
            if name in found:
                raise BundleError(f"`{path}`: the entry `{shown}` is there twice.")
            if len(found) >= MOST_ENTRIES:
                raise BundleError(f"`{path}`: it has more than {MOST_ENTRIES:,} entries.")
            most = min(room, _MOST_OF.get(name, room))
            if not 0 <= size <= most:
                raise BundleError(
                    f"`{path}`: the entry `{name}` has {size:,} bytes, as its header says. Expected 0 to {most:,}."
                )
            found[name] = _saved(content(), folder / name)
            room -= size
    return found


def _saved(content: IO[bytes], target: Path) -> Entry:
    digest, size = hashlib.sha256(), 0
    with content, target.open("xb") as file:
        while piece := content.read(_PIECE):
            size += len(piece)
            digest.update(piece)
            file.write(piece)
    return Entry(size, digest.hexdigest())


_Found = Iterator[tuple[str, str, int, Callable[[], IO[bytes]]]]
"""Entries: the name, the kind if it is no plain file, the bytes that the header says, and the content, never longer."""


def _of_tar(file: IO[bytes]) -> _Found:
    """Block by block, by ourselves: `tarfile` reads headers of any size that an archive claims."""
    with io.BufferedReader(unpacking.Unpacked(file, unpacking.gunzip), _PIECE) as stream:
        place = 0
        while (header := stream.read(tarfile.BLOCKSIZE)).strip(b"\0"):
            try:
                info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise tarfile.ReadError(f"byte {place:,} of what it unpacks to begins no entry: {error}") from None
            is_plain = info.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
            kind = "" if is_plain else _KINDS.get(info.type, "an extension of the format")
            content = _Part(stream, info.size)
            yield info.name, kind, info.size, lambda content=content: content  # type: ignore[misc]
            place += tarfile.BLOCKSIZE + info.size + len(stream.read(-info.size % tarfile.BLOCKSIZE))


class _Part(io.RawIOBase):
    """The next bytes of a stream, as a file."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int = -1) -> bytes:
        """At most so many of them."""
        piece = self._stream.read(min(self._left, _PIECE if size < 0 else size))
        if self._left and not piece:
            raise EOFError("it ends in the middle of an entry")
        self._left -= len(piece)
        return piece


_KINDS = {
    tarfile.SYMTYPE: "a symbolic link", tarfile.LNKTYPE: "a link", tarfile.DIRTYPE: "a directory",
    tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device", tarfile.FIFOTYPE: "a pipe",
}  # fmt: skip


def _of_zip(file: IO[bytes]) -> _Found:
    _check_directory(file)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            mode = stat.S_IFMT(info.external_attr >> 16)
            kind = (
                "a symbolic link" if mode == stat.S_IFLNK
                else "a directory" if info.is_dir()
                else "no plain file" if mode not in (0, stat.S_IFREG)
                else "encrypted" if info.flag_bits & 1
                else "compressed in a way that no bundle is"
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                else ""
            )  # fmt: skip
            yield info.filename, kind, info.file_size, lambda info=info: archive.open(info)  # type: ignore[misc]


def _check_directory(file: IO[bytes]) -> None:
    """Refuses a list of entries that is too long before `zipfile` makes an object of each. No bundle has a comment."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - 42))
    end = file.read()
    if end[-22:-18] != b"PK\5\6" or end.startswith(b"PK\6\7"):
        raise zipfile.BadZipFile("it is cut off, has a comment, or more than 65,535 entries")
    size = int.from_bytes(end[-10:-6], "little")
    if size > MOST_ENTRIES * _MOST_LISTED:
        raise zipfile.BadZipFile(
            f"its list of entries has {size:,} bytes, and at most {MOST_ENTRIES * _MOST_LISTED:,} are read"
        )
