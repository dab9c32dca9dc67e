"""Reads an entry of a persistent compilation cache to its end, and never loads it.

JAX writes, in `jax/_src/compilation_cache.py`, the compile's seconds as four bytes, big end first, and the serialized
executable behind them, compressed by zstd where it is installed and by zlib elsewhere. The file says which: both
formats begin with a magic number. An executable that went through IFRT (JAX 0.9 and later) begins with a length and a
message that names `pjrt_ifrt`; older ones have no such message.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

SOUND, BROKEN, UNREADABLE, UNCHECKED = "sound", "broken", "unreadable", "unchecked"

CHUNK = 256 * 1024
MOST_OUTPUT = 4 * 2**20
"""Bytes that are decompressed at a time: an entry of gigabytes takes no more memory than a small one."""
MOST_EXECUTABLE = 2**31
"""Bytes that an entry may decompress to: XLA's executables are messages of protobuf, which have less."""
TIME_BYTES = 4
MOST_PATH = 4096

_ZSTD, _ZLIB_METHOD = b"\x28\xb5\x2f\xfd", 0x78
_AUTOTUNE = b"/xla_gpu_per_fusion_autotune_cache_dir"
_AUTOTUNE_TAG = b"\xb2\x13"
"""Field 310 of XLA's `DebugOptions`, `xla_gpu_per_fusion_autotune_cache_dir`, as a text."""
_KEY = re.compile(r"(.+)-[0-9a-f]{64}")
_PREFIX = re.compile(r"(jit|pmap|xmap)_(?=.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Findings of a reading of an entry's bytes."""

    state: str
    """`sound`, `broken` (JAX cannot read it), `unreadable` (this user may not), `unchecked` (codec not installed)."""
    problem: str | None = None
    """Why it is not sound, as a sentence for a person."""
    codec: str | None = None
    """`zlib` or `zstd`; None where it is neither."""
    compile_seconds: int | None = None
    """Seconds that the compile took; JAX cuts them to whole seconds."""
    executable_bytes: int | None = None
    """Size of the serialized executable, decompressed."""
    layout: str | None = None
    """`ifrt` with its version, or `pjrt`: how the writer wrapped the executable."""
    stored_under: str | None = None
    """The setting `jax_compilation_cache_dir` of the process that stored it, as its compile options have it."""


def function_name(key: str) -> str:
    """Returns the function in a cache key: `train_step` of `jit_train_step-2735e199...`."""
    match = _KEY.fullmatch(key)
    module = match[1] if match else key
    return _PREFIX.sub("", module, count=1)


def read(path: Path) -> Reading:
    """Decompresses an entry to its end, a piece at a time.

    One that grows meanwhile is read again: JAX writes entries in place.
    """
    for _ in range(3):
        try:
            size = path.stat().st_size
            reading = _read(path)
            if reading.state != BROKEN or path.stat().st_size == size:
                return reading
        except OSError as error:
            return Reading(state=UNREADABLE, problem=f"It cannot be read: {error.strerror or error}.")
        time.sleep(0.05)
    return reading


def _read(path: Path) -> Reading:
    with path.open("rb") as file:
        first = file.read(len(_ZSTD))
        file.seek(0)
        if not first:
            return Reading(state=BROKEN, problem="It is empty: its writer died, or the disk was full.")
        if (codec := _codec(first)) is None:
            return Reading(state=BROKEN, problem=f"It begins with {first.hex(' ')}, which is neither zlib nor zstd.")
        if (pieces := _decompressor(codec)) is None:
            return Reading(state=UNCHECKED, codec=codec, problem=_NO_ZSTD)
        contents = _Contents()
        try:
            for piece in pieces(file):
                contents.take(piece)
                if contents.size > MOST_EXECUTABLE:
                    raise _GarbageError(f"It decompresses to more than {MOST_EXECUTABLE:,} bytes")
        except _TruncatedError:
            return _broken(codec, contents, f"It is truncated: it ends after {path.stat().st_size:,} bytes.")
        except _GarbageError as error:
            return _broken(codec, contents, f"{error}.")
        if contents.size <= TIME_BYTES:
            return _broken(codec, contents, f"It has {contents.size} bytes but no executable.")
        return contents.reading(codec)


_NO_ZSTD = "It is compressed with zstd, which this Python cannot read: pip install zstandard"


def _codec(first: bytes) -> str | None:
    if first.startswith(_ZSTD):
        return "zstd"
    return "zlib" if first[0] == _ZLIB_METHOD else None


def _broken(codec: str, contents: _Contents, problem: str) -> Reading:
    return Reading(state=BROKEN, problem=problem, codec=codec, compile_seconds=contents.compile_seconds())


# ---------------------------------------------------------------------------------------------- decompression


class _TruncatedError(Exception):
    """The file ends before its contents do."""


class _GarbageError(Exception):
    """The file is not a stream of its codec."""


_Pieces = Callable[[BinaryIO], Iterator[bytes]]


def _decompressor(codec: str) -> _Pieces | None:
    """Returns what decompresses a codec, zstd by Python 3.14 or `zstandard` as in JAX; None without these."""
    if codec == "zlib":
        return _unzlib
    with contextlib.suppress(ImportError):
        return partial(_unzstd_standard, importlib.import_module("compression.zstd"))
    with contextlib.suppress(ImportError):
        return partial(_unzstd_package, importlib.import_module("zstandard"))
    return None


def _unzlib(file: BinaryIO) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    try:
        while not stream.eof and (chunk := stream.unconsumed_tail or file.read(CHUNK)):
            yield stream.decompress(chunk, MOST_OUTPUT)
    except zlib.error as error:
        raise _GarbageError(f"zlib cannot decompress it: {error}") from None
    if not stream.eof:
        raise _TruncatedError


def _unzstd_standard(zstd: Any, file: BinaryIO) -> Iterator[bytes]:
    stream = zstd.ZstdDecompressor()
    try:
        while not stream.eof:
            chunk = file.read(CHUNK) if stream.needs_input else b""
            if not chunk and stream.needs_input:
                raise _TruncatedError
            yield stream.decompress(chunk, MOST_OUTPUT)
    except zstd.ZstdError as error:
        raise _GarbageError(f"zstd cannot decompress it: {error}") from None


def _unzstd_package(zstandard: Any, file: BinaryIO) -> Iterator[bytes]:
    try:
        # JAX's own reader wants the size in the frame's head; it also tells whether the end is missing.
        expected = zstandard.frame_content_size(file.read(CHUNK))
        file.seek(0)
        with zstandard.ZstdDecompressor().stream_reader(file, read_size=CHUNK, closefd=False) as stream:
            while expected > 0 and (piece := stream.read(MOST_OUTPUT)):
                expected -= len(piece)
                yield piece
    except zstandard.ZstdError as error:
        raise _GarbageError(f"zstd cannot decompress it: {error}") from None
    if expected > 0:
        raise _TruncatedError


# --------------------------------------------------------------------------------------------------- contents


class _Contents:
    """The parts of the decompressed bytes that are kept as they pass: the head, the size and one path."""

    def __init__(self) -> None:
        self.size = 0
        self._head = b""
        self._tail = b""
        self._stored_under: str | None = None

    def take(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(self._head) < CHUNK:
            self._head += piece[: CHUNK - len(self._head)]
        if self._stored_under is None:
            window = self._tail + piece
            self._stored_under = _directory_in(window)
            self._tail = window[-MOST_PATH - len(_AUTOTUNE) :]

    def compile_seconds(self) -> int | None:
        return int.from_bytes(self._head[:TIME_BYTES], "big") if len(self._head) >= TIME_BYTES else None

    def reading(self, codec: str) -> Reading:
        return Reading(
            state=SOUND,
            codec=codec,
            compile_seconds=self.compile_seconds(),
            executable_bytes=self.size - TIME_BYTES,
            layout=_layout(self._head[TIME_BYTES:]),
            stored_under=self._stored_under,
        )


def _layout(executable: bytes) -> str:
    """Returns how the executable is wrapped; IFRT's message says its version since JAX 0.10."""
    found = re.match(rb"[\x80-\xff]*[\x00-\x7f](?:\x08([\x00-\x7f]))?\x12\x09pjrt_ifrt", executable)
    if found is None:
        return "pjrt"
    return f"ifrt {found[1][0]}" if found[1] else "ifrt"


def _directory_in(data: bytes) -> str | None:
    """Returns the cache directory among the compile options: behind the field's tag and the path's length."""
    if (end := data.find(_AUTOTUNE)) < 0:
        return None
    end += len(_AUTOTUNE)
    for length in range(len(_AUTOTUNE), min(MOST_PATH, end)):
        before = _AUTOTUNE_TAG + _varint(length)
        if data[end - length - len(before) : end - length] == before:
            try:
                return data[end - length : end - len(_AUTOTUNE)].decode()
            except UnicodeDecodeError:
                return None
    return None


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _varint(value >> 7)
