"""Whether an answer is text that is made while it is sent, so that its first part is the first token or nearly so.

Files, pages and JSON that is whole say how long they are, are of another type, or come in one part: of those nothing is
assumed.
"""

import time
from typing import Any

_EVENTS = "text/event-stream"


class Parts:
    """The parts of one answer, until it is known when its first token was sent, or that it has none."""

    __slots__ = ("_first", "_kind", "over")

    def __init__(self) -> None:
        self.over = False
        """Whether nothing more must be found out."""
        self._kind: str | None = None
        self._first: float | None = None

    def carries_text(self, headers: Any, part: Any, *, last: bool = False) -> bool:
        """Returns whether a part that is about to be sent has some of a stream's text in it."""
        if self._kind is None:
            self._kind = "" if last else _kind(headers)
            self.over = not self._kind
        if self.over or not part:
            return False
        # Of server-sent events, comments that keep a connection alive, and the end, have no data.
        data = part.startswith(b"data") or b"\ndata" in part or b"\rdata" in part
        return self._kind != _EVENTS or (data and part.strip() != b"data: [DONE]")

    def sent(self) -> float | None:
        """Such a part was sent; when the first token was, by `time.perf_counter`, once that is known.

        A single part is not a stream, but for events: they end with one that has no text.
        """
        now = time.perf_counter()
        if self._first is None:
            self._first = now
            if self._kind != _EVENTS:
                return None
        self.over = True
        return self._first


def _kind(headers: Any) -> str:
    """The type of a stream of text, `?` where the headers name none; empty for any other answer, and if in doubt."""
    if not isinstance(headers, list | tuple):
        return ""  # what can be read once only is the server's
    found = "?"
    for name, value in headers:
        name = _text(name).lower()
        if name == "content-length":
            return ""
        if name == "content-type":
            found = _text(value).partition(";")[0].strip().lower()
    return found if found in ("?", _EVENTS, "text/plain") or "json" in found else ""


def is_sized(headers: Any) -> bool:
    """Returns whether an answer with these headers says how long it is: then the client knows when it has all of it."""
    return isinstance(headers, list | tuple) and any(_text(name).lower() == "content-length" for name, _ in headers)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
