"""Shapes of the worst files: each makes one thing as bad as it can be, in so many bytes."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator

from tools.fuzzing.originals import Originals

Shape = Callable[[int], Iterator[bytes]]
"""Pieces of a file of about so many bytes."""


def repeated(piece: bytes, start: bytes = b"", end: bytes = b"") -> Shape:
    def shape(size: int) -> Iterator[bytes]:
        many = piece * (2**20 // len(piece) or 1)
        yield start
        for _ in range(max(1, size // len(many))):
            yield many
        yield end

    return shape


def _lines(line: bytes, most: int) -> Shape:
    """Lines of nearly `most` bytes, each with as many of the piece as fit between `[`."""

    def shape(size: int) -> Iterator[bytes]:
        start = b'{"time": "2026-01-31T09:00:00Z", "event": "step", "x": ['
        whole = start + line * ((most - 100) // len(line)) + b"1]}\n"
        yield from itertools.repeat(whole, max(1, size // len(whole)))

    return shape


def numbered(line: bytes) -> Shape:
    """A line again and again, each with numbers of its own in the place of `@`."""

    def shape(size: int) -> Iterator[bytes]:
        for number in range(size // (len(line) + 6)):
            yield line.replace(b"@", b"%d" % number)

    return shape


def _packed(shape: Shape, unpacked: int) -> Shape:
    def packed(_size: int) -> Iterator[bytes]:
        yield gzip.compress(b"".join(shape(2**20)), 6) * (unpacked // 2**20)

    return packed


ANY: dict[str, Shape] = {
    "one line": repeated(b"a"),
    "blank lines": repeated(b"\n"),
    "short lines": repeated(b"a\n"),
    "NULs": repeated(b"\0"),
    "no UTF-8": repeated(b"\xff\xfe\xfd"),
    "letters of four bytes": repeated("\U0001f600".encode()),
    "brackets": repeated(b"["),
    "empty lists": repeated(b"[],", b"[", b"[]]"),
    "empty objects": repeated(b'{"a":{}},', b'{"event": [', b"{}]}"),
    "numbers": repeated(b"1e9,", b"[", b"1]"),
    "a long number": repeated(b"9", b'{"a": ', b"}"),
    "escapes": repeated(rb"\ud800", b'{"a": "', b'"}'),
    "objects": repeated(b"{}\n"),
    "bars": repeated(b" 50%|##| 50/100 [00:10<00:10]\r"),
    "streams of gzip": repeated(gzip.compress(b"")),
    "gzip of one line": _packed(repeated(b"a"), 2**33),
    "gzip of short lines": _packed(repeated(b"step 1 loss 2\n"), 2**31),
    "half a stream of gzip": lambda size: iter([gzip.compress(b"step 1 loss 2\n" * (size // 14), 1)[:-100]]),
}  # fmt: skip
"""Shapes for readers of logs, which unpack."""
_FEW = ("one line", "blank lines", "no UTF-8", "letters of four bytes", "brackets", "empty lists", "empty objects")
FEW = {name: ANY[name] for name in (*_FEW, "a long number")}
"""Shapes for every other reader."""

EVENTS: dict[str, Shape] = {
    "long lines of lists": _lines(b"[],", 16 * 2**20),
    "long lines of texts": _lines(b'"ab",', 16 * 2**20),
    "long lines of objects": _lines(b'{"a":1},', 16 * 2**20),
    "processes": numbered(b'{"time": "2026-01-31T09:00:00Z", "event": "step", "process_index": @, "pid": @}\n'),
    "manifests": numbered(b'{"time": "2026-01-31T09:00:00Z", "event": "manifest", "process_index": @, "pid": @}\n'),
}
LOGS: dict[str, Shape] = {
    "errors": numbered(b"2026-01-31 09:00:00 ERROR OSError: [Errno 28] No space left on device: '/ckpt/@'\n"),
    "ranks": numbered(b"[rank@]: 2026-01-31T09:00:01.5Z WARNING train: step @ | loss nan\n"),
    "tracebacks": numbered(b'Traceback (most recent call last):\n  File "/app/@.py", line 1, in f\nValueError: @\n'),
    "times": numbered(b"9999-12-31 23:59:59 ERROR @\n0001-01-01 00:00:00 ERROR @\n"),
    "objects of collectors": numbered(b'{"timestamp": "2026-01-31T09:00:04Z", "message": "step @", "rank": @}\n'),
    "words": repeated(b"error failed killed Traceback RESOURCE_EXHAUSTED: "),
    "words of 60 KB": lambda size: itertools.repeat(b"RESOURCE_EXHAUSTED: " * 3000 + b"\n", size // 60_000),
}
METRICS: dict[str, Shape] = {
    "samples": numbered(b'jax_steps_total{loop="@"} @\n'),
    "labels": repeated(b'a="b",', b"jax_steps_total{", b"} 1\n"),
    "lines of labels": lambda size: itertools.repeat(b"jax_steps_total{" + b'a="b",' * 9000 + b"} 1\n", size // 54_000),
    "other samples": numbered(b"other_total @\n"),
    "escapes in labels": lambda size: itertools.repeat(b'jax_a{a="' + b"\\" * 60_001 + b"\n", size // 60_000),
}
TRACES: dict[str, Shape] = {
    "planes": repeated(b"\x0a\x00"),
    "lines of a plane": repeated(b"\x1a\x00" * 60, b"", b""),
    "groups": repeated(b"\x0b"),
    "events of JSON": repeated(b'{"ph":"X","ts":1,"name":"a"},', b'{"traceEvents":[', b"{}]}"),
}


def events_of(originals: Originals) -> dict[str, Shape]:
    """Each kind of event of a real run, as if a run had nothing else; of what compiled again a function of its own."""
    found: dict[str, Shape] = {}
    for line in originals.files["events.jsonl"].splitlines():
        body = json.loads(line)
        again = body.get("cause") not in (None, "first_call")
        for name in ("reason", "fingerprint") if again else ("function", "process_index", "name", "fingerprint", "key"):
            if isinstance(body.get(name), str):
                body[name] += "@"
        body["sequence"] = "\x01"
        text = json.dumps(body).replace('"\\u0001"', "@").encode() + b"\n"
        found.setdefault("events: recompilation" if again else f"events: {body['event']}", numbered(text))
        if body["event"] == "finding":
            listed = b'"data": {"a": [' + b"[]," * 1000 + b"1]}"
            found["findings of many values"] = numbered(re.sub(rb'"data": {[^}]*}', listed, text))
    return found


# ---------------------------------------------------------------------------------------------------- compressed


def _deflated(_size: int) -> Iterator[bytes]:
    """100 GB of zeros in a stream of zlib."""
    squeezer = zlib.compressobj(9)
    yield squeezer.compress(b"") + squeezer.flush(zlib.Z_FULL_FLUSH)
    squeezer.compress(bytes(2**20))
    block = squeezer.flush(zlib.Z_FULL_FLUSH)
    block = squeezer.compress(bytes(2**20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    yield from itertools.repeat(block, 100 * 2**30 // 2**20)
    yield squeezer.flush()


def _squeezed(_size: int) -> Iterator[bytes]:
    """100 GB of zeros in a frame of zstd: blocks of 128 KiB that say which byte is repeated."""
    yield b"\x28\xb5\x2f\xfd\xa0" + (2**31).to_bytes(4, "little")
    blocks = b"\x02\x00\x10\x00" * 8192
    yield from itertools.repeat(blocks, 100)


ENTRIES: dict[str, Shape] = {
    "zlib of zeros": _deflated,
    "zstd of zeros": _squeezed,
    "streams of zlib": repeated(zlib.compress(b"")),
    "zlib that is cut off": lambda size: iter([zlib.compress(b"".join(ANY["short lines"](size)), 1)[:-100]]),
}
"""Entries of a persistent cache."""

# ------------------------------------------------------------------------------------------------------ archives


def _tar(members: Iterator[tuple[str, int, bytes]], content: bytes = b"") -> Iterator[bytes]:
    """A tar of members by name, size as the header says, and kind, in streams of gzip."""
    for some in itertools.batched(members, 2000) if hasattr(itertools, "batched") else _batches(members, 2000):
        blocks = []
        for name, size, kind in some:
            info = tarfile.TarInfo(name)
            info.type = kind
            block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
            block[124:136] = size.to_bytes(12, "big", signed=True) if size < 0 else b"%011o\0" % size
            if size < 0:
                block[124] |= 0x80
            block[148:156] = b"%06o\0 " % (sum(block[:148]) + 8 * 32 + sum(block[156:]))
            blocks.append(bytes(block))
        yield gzip.compress(b"".join(blocks) + content, 6)


def _batches(members: Iterator[tuple[str, int, bytes]], most: int) -> Iterator[list[tuple[str, int, bytes]]]:
    while some := list(itertools.islice(members, most)):
        yield some


def _names(count: int, size: int = 0, kind: bytes = tarfile.REGTYPE) -> Iterator[tuple[str, int, bytes]]:
    return ((f"evidence/{number:06}.log", size, kind) for number in range(count))


def _zip(count: int, piece: bytes, method: int = zipfile.ZIP_DEFLATED) -> Shape:
    def shape(_size: int) -> Iterator[bytes]:
        with tempfile.TemporaryFile() as file:
            with zipfile.ZipFile(file, "w", method) as archive:
                for number in range(count):
                    archive.writestr(f"evidence/{number:06}.log", piece)
            file.seek(0)
            yield from iter(lambda: file.read(2**20), b"")

    return shape


def _manifest(shape: Shape) -> Shape:
    """A bundle that is nothing but a manifest, as large as one may be."""

    def packed(_size: int) -> Iterator[bytes]:
        content = b"".join(shape(8 * 2**20 - 2**17))[: 8 * 2**20]
        yield from _tar(iter([("manifest.json", len(content), tarfile.REGTYPE)]), content)

    return packed


ARCHIVES: dict[str, Shape] = {
    "tar of 400,000 members": lambda _size: _tar(_names(400_000)),
    "tar of 400,000 members of another kind": lambda _size: _tar(_names(400_000, 0, tarfile.XHDTYPE)),
    "tar of members with size -1": lambda _size: _tar(_names(4, -1)),
    "tar of members with size 2**33": lambda _size: _tar(_names(4, 2**33 - 1)),
    "tar of a member of zeros": lambda _size: itertools.chain(
        _tar(_names(1, 2**30 - 1)), itertools.repeat(gzip.compress(bytes(2**20)), 1024)
    ),
    "tar of a manifest of lists": _manifest(ANY["empty lists"]),
    "tar of a manifest of objects": _manifest(ANY["empty objects"]),
    "tar of a manifest of numbers": _manifest(ANY["a long number"]),
    "zip of 400,000 members": _zip(400_000, b""),
    "zip of 60,000 members": _zip(60_000, b"a"),
    "zip of 1,100 members of zeros": _zip(1100, bytes(2**20)),
    "zip of members of lzma": _zip(4, b"a" * 2**20, zipfile.ZIP_LZMA),
}
"""Bundles."""


def records(originals: Originals, name: str) -> dict[str, Shape]:
    """Lines of a file of records, as if there were many of each."""
    lines = [line for line in originals.files[name].splitlines() if line.strip()]
    return {
        "a record again and again": repeated(lines[-1] + b"\n"),
        "records": numbered(lines[-1].replace(b'"function":"', b'"function":"@') + b"\n"),
        "records of many keys": numbered(lines[-1].replace(b'"key":"', b'"key":"@') + b"\n"),
        "long records": _lines(b'"ab",', 2**20),
    }


def fields(valid: bytes) -> dict[str, Shape]:
    """A valid object of JSON with each of its lists a million times as long, and each of its texts."""
    body = json.loads(valid)
    found: dict[str, Shape] = {}
    for path in _paths(body, ()):
        value = _at(body, path)
        if isinstance(value, list) and value:
            shown = json.dumps(value[0]).encode()
            found[f"a long list: {'.'.join(map(str, path))}"] = _inside(body, path, b"[", shown + b",", shown + b"]")
        elif isinstance(value, str) and value:
            found[f"a long text: {'.'.join(map(str, path))}"] = _inside(body, path, b'"', b"ab ", b'"')
    return dict(list(found.items())[:MOST_FIELDS])


MOST_FIELDS = 24


def _paths(body: object, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    for key, value in body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ():
        if not isinstance(key, int) or key == 0:
            yield (*path, key)
            yield from _paths(value, (*path, key))


def _at(body: object, path: tuple[str | int, ...]) -> object:
    for key in path:
        body = body[key]  # type: ignore[index]
    return body


def _inside(body: object, path: tuple[str | int, ...], start: bytes, piece: bytes, end: bytes) -> Shape:
    changed = json.loads(json.dumps(body))
    holder = _at(changed, path[:-1])
    holder[path[-1]] = "\x01"  # type: ignore[index]
    before, _, after = json.dumps(changed).encode().partition(b'"\\u0001"')
    return repeated(piece, before + start, end + after)
