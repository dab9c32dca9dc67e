"""Compressed files, unpacked piece by piece: each step takes a bounded time and memory, whatever the file says."""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any

MOST_MEMBERS = 100_000
"""Streams in one file, one behind the other: rotated logs have some; a hostile file has one in 20 bytes."""
_MOST_LZMA = 128 * 2**20
"""Bytes that a stream of LZMA may ask for: `xz -9` asks for 65 MiB."""
_PIECE = 2**14

DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""Exceptions that reading a damaged file raises."""


class Unpacked(io.RawIOBase):
    """What a compressed file holds, as a file. Closes the compressed one with itself."""

    def __init__(self, file: IO[bytes], begin: Callable[[], Any]) -> None:
        self._file, self._begin = file, begin
        self._stream = begin()
        self._left = b""
        self._members = 1

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while True:
            if self._stream.eof and not self._next():
                return 0
            data = self._left
            if not data and getattr(self._stream, "needs_input", True):
                data = self._file.read(_PIECE)
            piece = self._stream.decompress(data, len(buffer))
            self._left = getattr(self._stream, "unconsumed_tail", b"")
            if piece:
                buffer[: len(piece)] = piece
                return len(piece)
            if not data and not self._stream.eof:
                raise EOFError("it ends in the middle of what is compressed")

    def _next(self) -> bool:
        """Begins the next stream; False at the end of the file, which may be filled up with NULs."""
        self._left = self._stream.unused_data.lstrip(b"\0")
        while not self._left:
            piece = self._file.read(_PIECE)
            if not piece:
                return False
            self._left = piece.lstrip(b"\0")
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise EOFError(f"it has more than {MOST_MEMBERS:,} streams")
        self._stream = self._begin()
        return True


def gunzip() -> Any:
    """Returns what unpacks one stream of gzip."""
    return zlib.decompressobj(31)


STREAMS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": gunzip, b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(memlimit=_MOST_LZMA),
}  # fmt: skip
"""What unpacks a stream, by its first bytes."""
