"""Words of the commands that fix something: what was read is quoted, so that a shell takes it as it is."""

import re
import shlex

_PLAIN = re.compile(r"[\w@%+=:,./ -]*", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def word(text: str) -> str:
    """Returns text as a single word of a command."""
    return text if text and " " not in text and _PLAIN.fullmatch(text) else words(text)


def words(text: str) -> str:
    """Returns text with spaces, always in quotes, such as XLA's flags."""
    return f'"{text}"' if _PLAIN.fullmatch(text) else shlex.quote(text)


def export(name: str, value: str) -> str:
    """Returns the command that sets a variable; empty for a name that no shell can set."""
    return f"export {name}={word(value)}" if _NAME.fullmatch(name) else ""


def unset(name: str) -> str:
    """Returns the command that removes a variable; empty for a name that no shell can remove."""
    return f"unset {name}" if _NAME.fullmatch(name) else ""
