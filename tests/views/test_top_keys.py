"""The keys that a terminal sends, whole and in pieces."""

import os
import pty
import sys
import threading
import time
import tty

import pytest

from jaxobs.views.top import Keys, decode


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[B\x1bOA\x1bOB", ["up", "down", "up", "down"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[F", ["pageup", "pagedown", "home", "end"]),
        (b"\x1b[1~\x1b[4~\x1bOH", ["home", "end", "home"]),
        (b"\x1b[1;5A\x1b[5;2~", ["up", "pageup"]), (b"\x03\x04\x15", ["ctrl-c", "ctrl-d", "ctrl-u"]),
        (b"\t\x1b[Z\r\n\x7f\x08", ["tab", "backtab", "enter", "enter", "backspace", "backspace"]),
        (b"\x1b[200~\x1b[15~\x1b[I", []), (b"\x1b\x1b[A", ["esc", "up"]), (b"\x1bx", ["esc", "x"]),
        ("größe".encode(), list("größe")), (b"\x00\x01", []), (b"\xff", []),
    ],
)  # fmt: skip
def test_decode(sent: bytes, keys: list[str]) -> None:
    """Arrows in both modes, with modifiers, control keys, text; what means nothing is passed over."""
    assert decode(sent, final=True) == (keys, b"")


@pytest.mark.parametrize(
    ("begun", "rest", "key"),
    [(b"\x1b", b"[A", "up"), (b"\x1b[", b"6~", "pagedown"), (b"\x1b[5", b"~", "pageup"), (b"\x1bO", b"B", "down"),
     ("ö".encode()[:1], "ö".encode()[1:], "ö")],
)  # fmt: skip
def test_a_sequence_may_come_in_pieces(begun: bytes, rest: bytes, key: str) -> None:
    """Bytes that may be a beginning wait; if nothing follows, an escape is the key Esc."""
    keys, waiting = decode(b"j" + begun)
    assert (keys, waiting) == (["j"], begun)
    assert decode(waiting + rest) == ([key], b"")
    alone, nothing = decode(waiting, final=True)
    assert nothing == b"" and key not in alone
    assert alone[:1] == (["esc"] if begun.startswith(b"\x1b") else [])


def test_keys_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an echo, and with the terminal as before afterwards; Esc by itself comes after a moment."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        import termios

        before = termios.tcgetattr(theirs)
        with Keys() as keys:
            assert termios.tcgetattr(theirs)[tty.LFLAG] & (termios.ECHO | termios.ICANON) == 0
            assert keys.pressed(0.01) == []
            os.write(ours, b"\x1b[Bj")
            assert keys.pressed(10) == ["down", "j"]
            os.write(ours, b"\x1b")
            assert keys.pressed(10) == ["esc"]
            threading.Thread(target=lambda: (time.sleep(0.01), os.write(ours, b"[A")), daemon=True).start()
            os.write(ours, b"\x1b")
            pressed = keys.pressed(10)
            assert pressed in (["up"], ["esc"])  # a slow machine may take longer than the pause for it
        assert termios.tcgetattr(theirs) == before
    os.close(ours)


def test_where_there_is_no_terminal_there_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The view goes on without; Ctrl-C ends it."""
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with Keys() as keys:
            assert keys.pressed(0.001) == []
