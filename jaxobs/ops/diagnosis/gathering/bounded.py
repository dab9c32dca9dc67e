"""Reading what may be huge, compressed, damaged, no text, a pipe, or not there."""

import codecs
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jaxobs.ops.diagnosis.gathering import unpacking

MOST_BYTES = 16 * 2**20
"""Of one file; of a longer one half from its beginning and half from its end."""
MOST_UNPACKED = 2**30
"""Bytes that are taken out of a compressed file: a small one can unpack to any size."""
MOST_LINES = 60_000
"""Lines of one file; of more, half from its beginning and half from its end."""
LINES_OF_ALL, LEAST_LINES = 60_000, 1000
"""Lines of all files together, and of each of very many."""
MOST_TROUBLED, BEHIND_TROUBLE = 100, 30
"""Lines between the two ends that are read for each word of trouble, the first ones, and lines read behind each."""
TROUBLE = (
    b"rror", b"xception", b"Traceback", b"FATAL", b"atal", b"EXHAUSTED", b"NaN", b"nan", b"illed", b"WARN", b"Warning",
    b"warning", b"ailed", b"failure", b"FAILED", b"SIG", b"UNAVAILABLE", b"DEADLINE", b"INTERNAL", b"Unable", b"unable",
    b"annot", b"ould not", b"ouldn't", b"imed out", b"imeout", b"emory", b"reempt", b"ancel", b"efused",
)  # fmt: skip
_PIECE = 2**20
_MOST_LINE, _SHORT_LINE = 2**16, 40
"""Bytes of a line that are read, and bytes of a line of a log that has short ones."""
_CONTROLS = bytes({*range(1, 32), 127} - {7, 8, 9, 10, 12, 13, 27})
"""What no program writes into a log, save for NUL, which file systems and rotated logs leave behind."""
_PRINTED = bytes({9, 10, 13, *range(32, 127)})
_SHARE_OF_CONTROLS = 0.05
_PROBE = 4096


class UnreadableError(Exception):
    """A file cannot be read; the message says why."""


_FEW_DAMAGED, _SHARE_DAMAGED = 3, 0.1
"""Lines that killed processes leave unfinished, and the share of all from which on nothing in a file says little."""


def too_damaged(damaged: int, lines: int) -> str | None:
    """Why what a file does not show says nothing: too many of its lines could not be read; None if few."""
    if damaged <= max(_FEW_DAMAGED, _SHARE_DAMAGED * lines):
        return None
    return f"{damaged:,} of {lines:,} lines could not be read"


@dataclass(frozen=True, slots=True)
class Ends:
    """A text file, or both ends of a long one, in UTF-8."""

    head: bytes
    tail: bytes | None
    """None if the head is all of it."""
    size: int
    """Bytes of the whole."""
    notes: tuple[str, ...] = ()
    """What is lost of it."""


def ends(path: str) -> Ends:
    """What is read of a text file, unpacked if it is compressed.

    Raises:
      UnreadableError: it cannot be read, or it is no text.
    """
    size = regular_size(path)
    try:
        with open(path, "rb", buffering=_PIECE) as file:
            start = file.read(min(_PIECE, MOST_BYTES // 2))
            begin = next((each for magic, each in unpacking.STREAMS.items() if start.startswith(magic)), None)
            if begin is not None:
                file.seek(0)
                return _in_utf8(_of_stream(unpacking.Unpacked(file, begin)))
            if (what := _no_text(start, size <= len(start))) is not None:
                raise UnreadableError(what)
            if size <= MOST_BYTES:
                return _in_utf8(Ends(start + file.read(MOST_BYTES - len(start)), None, size))
            head = start + file.read(MOST_BYTES // 2 - len(start))
            # From an even place, for it may be UTF-16, and therefore perhaps a byte more.
            file.seek((size - MOST_BYTES // 2) & ~1)
            return _in_utf8(Ends(head, file.read(MOST_BYTES // 2 + 1), size))
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from None


_OTHERS = {b"\x28\xb5\x2f\xfd": "zstd: unpack it first with `zstd -d`", b"PK\3\4": "zip: unpack it first"}


def _no_text(start: bytes, is_all: bool) -> str | None:
    """What a file is, if it is no text. A log of a machine that lost its power may have some NULs."""
    for magic, what in _OTHERS.items():
        if start.startswith(magic):
            return f"it is compressed with {what}"
    if _utf16(start) is not None:
        return None
    written = start.replace(b"\0", b"")
    if not written and start:
        return "it is not a text file" if is_all else None
    controls = len(written) - len(written.translate(None, _CONTROLS))
    return "it is not a text file" if controls > _SHARE_OF_CONTROLS * len(written) else None


def _utf16(start: bytes) -> str | None:
    """How a text of two bytes a letter is written; None if it is another text. Not every tool writes a mark first."""
    marked = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(start[:2])
    if marked is not None:
        return marked
    piece = start[:_PROBE]
    for codec, letters, zeros in (("utf-16-le", piece[::2], piece[1::2]), ("utf-16-be", piece[1::2], piece[::2])):
        if zeros and 10 * zeros.count(0) > 9 * len(zeros) and 10 * letters.count(0) < len(letters):
            return codec if not letters.translate(None, _PRINTED) else None
    return None


def _of_stream(stream: unpacking.Unpacked) -> Ends:
    data, tail, size = bytearray(), bytearray(), 0
    notes: tuple[str, ...] = ()
    try:
        with stream:
            while piece := stream.read(min(_PIECE, MOST_BYTES // 2)):
                size += len(piece)
                if not tail and size <= MOST_BYTES:
                    data += piece
                    continue
                tail = tail or data[-(MOST_BYTES // 2) :]
                tail += piece
                if len(tail) > 2 * MOST_BYTES:
                    del tail[: -MOST_BYTES // 2 - 1]
                if size >= MOST_UNPACKED:
                    notes = (f"only its first {size:,} bytes were unpacked",)
                    break
    except unpacking.DAMAGED as error:
        if not data:
            raise UnreadableError(f"it cannot be unpacked: {error}") from None
        notes = (f"it is damaged: only its first {size:,} bytes could be unpacked",)
    if (what := _no_text(bytes(data[:_PIECE]), size <= _PIECE)) is not None:
        raise UnreadableError(what)
    if not tail:
        return Ends(bytes(data), None, size, notes)
    # As much as is read of the same text in a plain file.
    return Ends(bytes(data[: MOST_BYTES // 2]), bytes(tail[-(MOST_BYTES // 2 + size % 2) :]), size, notes)


def _in_utf8(found: Ends) -> Ends:
    """Windows' shells write UTF-16."""
    codec = _utf16(found.head)
    if codec is None:
        return found

    def text(data: bytes) -> bytes:
        return data.decode(codec, "replace").encode("utf-8", "replace")

    mark = 2 if found.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else 0
    head, tail = text(found.head[mark:]), None if found.tail is None else text(found.tail)
    left = 0 if tail is None else (found.size - len(found.head) - len(found.tail or b"")) // 2
    return Ends(head, tail, len(head) + left + len(tail or b""), found.notes)


@dataclass(slots=True)
class Lines:
    """The lines of a text file with their numbers: those of its beginning and its end, and between them trouble."""

    path: str
    most: int | None = None
    """Lines at both ends together; `MOST_LINES` if None."""
    notes: list[str] = field(default_factory=list)
    """What was left out."""
    gaps: list[int] = field(default_factory=list)
    """Numbers of the lines before which lines were left out, as far as the lines have been read."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        most = MOST_LINES if self.most is None else min(self.most, MOST_LINES)
        found = ends(self.path)
        self.notes += found.notes
        if found.tail is None and found.head.count(b"\n") <= most:
            yield from _numbered(found.head, 1)
            return
        whole = found.head if found.tail is None else found.head[: found.head.rfind(b"\n") + 1] or found.head
        head = _cut(whole, most // 2)
        behind = whole if found.tail is None else found.tail[found.tail.find(b"\n") + 1 :]
        tail = _cut(behind, -most // 2)
        left = found.size - len(head) - len(tail)
        self.notes.append(f"{left:,} bytes in the middle were left out: it has {found.size:,}")
        yield from _numbered(head, 1)
        number = head.count(b"\n") + 1
        if found.tail is None:
            middles = [(whole, len(head), len(whole) - len(tail), 0)]
        else:
            # Numbers behind the gap are only larger than those before it.
            unread = (found.size - len(whole) - len(behind)) // 100
            middles = [(whole, len(head), len(whole), unread), (behind, 0, len(behind) - len(tail), 0)]
        for data, begin, end, more in middles:
            for first, part in _troubled(data, begin, end, number):
                self.gaps.append(first)
                yield from _numbered(part, first)
            number += data.count(b"\n", begin, end) + more
        self.gaps.append(number)
        yield from _numbered(tail, number)


def _troubled(data: bytes, begin: int, end: int, number: int) -> Iterator[tuple[int, bytes]]:
    """Lines that speak of trouble, with some behind each, and the number of the first; `number` is that of `begin`."""
    starts: set[int] = set()
    for word in TROUBLE:
        place = data.find(word, begin, end)
        for _ in range(MOST_TROUBLED):
            if place < 0:
                break
            starts.add(max(begin, data.rfind(b"\n", begin, place) + 1))
            line_end = data.find(b"\n", place, end)
            place = -1 if line_end < 0 else data.find(word, line_end, end)
    place = begin
    for start in sorted(starts):
        if start < place:
            continue
        number += data.count(b"\n", place, start)
        place = start
        for _ in range(BEHIND_TROUBLE):
            place = data.find(b"\n", place, end) + 1
            if place <= 0:
                place = end
                break
        yield number, data[start:place]
        number += data.count(b"\n", start, place)


def shares(paths: Sequence[str]) -> list[int]:
    """Returns how many lines are read of each file: what small ones leave, the others have."""
    sizes = [os.path.getsize(each) if os.path.isfile(each) else 0 for each in paths]
    found, left = [0] * len(sizes), LINES_OF_ALL
    for done, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        found[index] = max(LEAST_LINES, left // (len(sizes) - done))
        left = max(0, left - min(found[index], sizes[index] // _SHORT_LINE + 1))
    return found


def _cut(data: bytes, lines: int) -> bytes:
    """Returns so many lines from the beginning, or, if the number is negative, from the end."""
    place = 0 if lines > 0 else len(data) - data.endswith(b"\n")
    for _ in range(abs(lines)):
        place = data.find(b"\n", place) + 1 if lines > 0 else data.rfind(b"\n", 0, max(0, place))
        if place <= 0:
            return data
    return data[:place] if lines > 0 else data[place + 1 :]


def regular_size(path: str) -> int:
    """Bytes of a regular file.

    Raises:
      UnreadableError: it is not there, or it is a pipe, a device or a directory: to read these may never end.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise UnreadableError(getattr(error, "strerror", None) or str(error)) from None
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise UnreadableError(f"it is {what}; give a regular file")
    return found.st_size


def _numbered(data: bytes, number: int) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        # A progress bar writes its states over each other; the last one stays.
        line = data[start : min(end, start + _MOST_LINE)].rstrip(b"\r")
        if line.startswith(b"\0"):
            # A log that was emptied while its program wrote on begins with a hole.
            line = data[start:end].lstrip(b"\0")[:_MOST_LINE].rstrip(b"\r")
        yield number, line.rpartition(b"\r")[2].decode("utf-8", "replace")
        start, number = end + 1, number + 1
