"""Changes to valid texts: of JSON by its structure, of lines by their order, of bytes as disks and editors do."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS = (
    "1e999", "-1e999", "1" + "0" * 400, "-1" + "0" * 400, "NaN", "Infinity", "-1", "0", "1e308", "1e-320", "0.5",
    "9223372036854775808", "18446744073709551616", "253402300800", "1e17", "1e29", "-5.5", "4294967296",
)  # fmt: skip
CANARY = "xmlrpc.server"
"""A module that nothing here imports, so that it shows when something read is."""
TEXTS = (
    "", "\x00", "\ud800", "\x1b[31mred", "a" * 70_000, "\u202e\u2028\u2029</script>", "é" * 300, "\r\n", "%s{0}",
    "../..", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "noon", "2026-01-01",
    "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "os:system", "__main__:nothing", "builtins:exec", "1e999", "-m os",
    "/etc/passwd", "cpu:99999999999999999999", "gpu:-1", "<eager>", "<other>", "int4", "f8,f8", "object", "key<fry>",
    "a.b.<locals>.c", CANARY, f"{CANARY}:SimpleXMLRPCServer", f"-m {CANARY}",
)  # fmt: skip
_YAML = ("[" * 2000, "{" * 2000, "&a [*a]", "!!python/object/apply:os.system", "2026-13-45")
_NUMBER = "\x01number\x01"


class Changer:
    """Makes changes in the order that its seed, or its random numbers, decide."""

    def __init__(self, seed: str | Random) -> None:
        self._random = seed if isinstance(seed, Random) else Random(seed)
        self.told = ""
        """Name of the latest change."""

    def number(self) -> int:
        """Any number."""
        return self._random.randrange(2**16)

    def lines(self, data: bytes) -> tuple[str, bytes]:
        """JSON lines with one thing changed, and what was."""
        kinds: list[Callable[[list[bytes]], bytes]] = [
            self._nul_block, self._truncated, self._swapped, self._doubled, self._foreign, self._crlf, self._bom,
            self._bad_utf8, self._cut_line, self._other_json, self._long, self._deep_line, self._removed,
        ]  # fmt: skip
        if self._random.random() < 0.75:
            whole = data.splitlines(keepends=True)
            place = self._random.randrange(len(whole))
            what, changed = self.body(whole[place].rstrip(b"\n"))
            whole[place] = changed + b"\n"
            self.told = f"line {place + 1}: {what}"
            return self.told, b"".join(whole)
        kind = self._random.choice(kinds)
        self.told = kind.__name__.strip("_")
        return self.told, kind(data.splitlines(keepends=True))

    def body(self, data: bytes) -> tuple[str, bytes]:
        """Returns the name of a change, and a JSON text with that one thing changed."""
        body = json.loads(data)
        places = list(_places(body))
        if not places:
            return self.raw(data)
        path = self._random.choice(places)
        body = copy.deepcopy(body)
        holder: Any = body
        for key in path[:-1]:
            holder = holder[key]
        key, told = path[-1], "/".join(map(str, path))
        before = holder[key]
        kind = self._random.choice(("delete", "type", "number", "number", "text", "deep", "name", "double", "many"))
        number = None
        if kind == "delete":
            del holder[key]
        elif kind == "type":
            holder[key] = self._other_type(before)
        elif kind == "number":
            number = self._random.choice(NUMBERS)
            holder[key] = _NUMBER
        elif kind == "text":
            holder[key] = self._random.choice(TEXTS)
        elif kind == "deep":
            holder[key] = self._nested(self._random.choice((3, 70, 400)), before)
        elif kind == "name" and isinstance(holder, dict):
            holder[self._random.choice(TEXTS)] = holder.pop(key)
        elif kind == "many":
            holder[key] = [before] * self._random.choice((0, 2, 300))
        text = json.dumps(body, ensure_ascii=self._random.random() < 0.8)
        if number is not None:
            text = text.replace(json.dumps(_NUMBER), number).replace(f'"{_NUMBER}"', number)
        if kind == "double" and isinstance(holder, dict):
            name = json.dumps(key)
            text = text.replace(f"{name}: ", f"{name}: {self._random.choice(NUMBERS)}, {name}: ", 1)
        self.told = f"{kind} {told}{f' = {number:.20}' if number else ''}"[:120]
        return self.told, text.encode("utf-8", "surrogatepass")

    def raw(self, data: bytes) -> tuple[str, bytes]:
        """Bytes with one stretch changed."""
        if not data:
            return "nothing", data
        start = self._random.randrange(len(data))
        kind = self._random.choice(("flip", "cut", "nul", "double", "insert"))
        if kind == "flip":
            changed = data[:start] + bytes([data[start] ^ 1 << self._random.randrange(8)]) + data[start + 1 :]
        elif kind == "cut":
            changed = data[:start]
        elif kind == "nul":
            changed = data[:start] + bytes(min(512, len(data) - start)) + data[start + 512 :]
        elif kind == "double":
            changed = data[:start] + data[start : start + 64] * 2 + data[start + 64 :]
        else:
            changed = data[:start] + self._random.choice(TEXTS).encode("utf-8", "surrogatepass") + data[start:]
        self.told = f"{kind} at {start}"
        return self.told, changed

    def words(self, text: str) -> tuple[str, bytes]:
        """TOML, YAML or another text for people with a word changed, or its bytes."""
        if self._random.random() < 0.3:
            return self.raw(text.encode())
        words = text.split(" ")
        place = self._random.randrange(len(words))
        new = self._random.choice((*NUMBERS, *TEXTS, *_YAML))
        words[place] = new
        self.told = f"word {place}: {new[:20]!r}"
        return self.told, " ".join(words).encode("utf-8", "surrogatepass")

    def _other_type(self, before: Any) -> Any:
        others: list[Any] = [None, True, 7, -1, 2.5, "text", [], {}, [None], {"a": None}, [[1, 2]], {"": [{}]}]
        return self._random.choice([each for each in others if type(each) is not type(before)])

    def _nested(self, depth: int, value: Any) -> Any:
        for _ in range(depth):
            value = [value] if self._random.random() < 0.5 else {"a": value}
        return value

    # ---------------------------------------------------------------------------------------------- lines

    def _at(self, lines: list[bytes], line: bytes) -> bytes:
        place = self._random.randrange(len(lines) + 1)
        return b"".join([*lines[:place], line, *lines[place:]])

    def _nul_block(self, lines: list[bytes]) -> bytes:
        return self._at(lines, b"\0" * self._random.choice((1, 512, 4096)) + self._random.choice((b"", b"\n")))

    def _truncated(self, lines: list[bytes]) -> bytes:
        data = b"".join(lines)
        return data[: self._random.randrange(1, len(data))]

    def _swapped(self, lines: list[bytes]) -> bytes:
        first, second = self._random.randrange(len(lines)), self._random.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
        return b"".join(lines)

    def _doubled(self, lines: list[bytes]) -> bytes:
        return self._at(lines, self._random.choice(lines))

    def _removed(self, lines: list[bytes]) -> bytes:
        del lines[self._random.randrange(len(lines))]
        return b"".join(lines)

    def _foreign(self, lines: list[bytes]) -> bytes:
        others = (
            b"Traceback (most recent call last):\n",
            b"{}\n",
            b"{'a': 1}\n",
            b'{"event": "login"}\n',
            b"<<<<<<< HEAD\n",
        )
        return self._at(lines, self._random.choice(others))

    def _crlf(self, lines: list[bytes]) -> bytes:
        return b"".join(lines).replace(b"\n", b"\r\n")

    def _bom(self, lines: list[bytes]) -> bytes:
        return b"\xef\xbb\xbf" + b"".join(lines)

    def _bad_utf8(self, lines: list[bytes]) -> bytes:
        place = self._random.randrange(len(lines))
        middle = len(lines[place]) // 2
        lines[place] = lines[place][:middle] + b"\xff\xfe\xc3" + lines[place][middle:]
        return b"".join(lines)

    def _cut_line(self, lines: list[bytes]) -> bytes:
        place = self._random.randrange(len(lines))
        lines[place] = lines[place][: self._random.randrange(1, len(lines[place]))] + self._random.choice((b"", b"\n"))
        return b"".join(lines)

    def _other_json(self, lines: list[bytes]) -> bytes:
        return self._at(
            lines, self._random.choice((b"[1, 2]\n", b"3\n", b'"text"\n', b"null\n", b"1e999\n", b"NaN\n", b"[]\n"))
        )

    def _long(self, lines: list[bytes]) -> bytes:
        return self._at(lines, b'{"time": "' + b"a" * (17 * 2**20) + b'"}\n')

    def _deep_line(self, lines: list[bytes]) -> bytes:
        depth = self._random.choice((65, 900, 100_000))
        return self._at(lines, b'{"time": ' + b"[" * depth + b"]" * depth + b', "event": "compilation"}\n')


def _places(body: Any, path: tuple[Any, ...] = ()) -> Any:
    """The ways to all values in it."""
    if isinstance(body, dict | list):
        for key, value in body.items() if isinstance(body, dict) else enumerate(body):
            yield (*path, key)
            yield from _places(value, (*path, key))
