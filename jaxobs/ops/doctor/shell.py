"""Words of the commands that fix something: what was read is quoted, so that a shell takes it as it is."""

from __future__ import annotations

import re
import shlex

_PLAIN = re.compile(r"[\w@%+=:,./ -]*", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def word(text: str) -> str:
    """One word of a command."""
    return text if text and " " not in text and _PLAIN.fullmatch(text) else words(text)


def words(text: str) -> str:
    """Text with spaces, always in quotes: XLA's flags, say."""
    return f'"{text}"' if _PLAIN.fullmatch(text) else shlex.quote(text)


def export(name: str, value: str) -> str:
    """Sets a variable; empty for a name that no shell can set."""
    return f"export {name}={word(value)}" if _NAME.fullmatch(name) else ""


def unset(name: str) -> str:
    """Removes a variable; empty for a name that no shell can remove."""
    return f"unset {name}" if _NAME.fullmatch(name) else ""
