"""What looks like a secret is overwritten, byte for byte, so that lines and sizes remain what they were."""

from __future__ import annotations

import re

_SECRET = re.compile(
    rb"""
      (?i: \b bearer \s+ | authorization["']? \s* [:=] \s* ["']? (?: \w+ \s+ )? )(?P<bearer> [A-Za-z0-9._~+/=-]{16,} )
    | (?i: (?: password | passwd | secret | api[_-]?key | access[_-]?key | auth[_-]?token | access[_-]?token
             | credentials? | private[_-]?token )
        [\w-]{0,20} ["']? \s* [:=] \s* ["']? )(?P<value> [^\s"',;&<>\\]{6,200} )
    | ://[^\s/@:"'\\]{0,100}:(?P<login> [^\s/@"'\\]{1,200} )@
    | (?P<key> \b(?: AKIA | ASIA )[A-Z0-9]{16}\b | \bgh[pousr]_[A-Za-z0-9]{30,} | \bhf_[A-Za-z0-9]{30,}
      | \bsk-[A-Za-z0-9_-]{20,} | \bxox[abprs]-[A-Za-z0-9-]{10,} | \bya29\.[\w-]{20,}
      | \beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,} )
    """,
    re.VERBOSE,
)
_HINT = re.compile(
    rb"(?i)bearer|authorization|token|passw|secret|key|credential|://|AKIA|ASIA|gh[pousr]_|hf_|sk-|xox|ya29|eyJ"
)
"""Without any of these there is no secret."""


def masked(data: bytes) -> tuple[bytes, int]:
    """The same with `*` for each byte of what looks like a secret, and how many there are."""
    if not _HINT.search(data):
        return data, 0
    count = 0

    def hide(found: re.Match[bytes]) -> bytes:
        nonlocal count
        count += 1
        start, end = found.span(found.lastgroup or 0)
        text, at = found.group(), found.start()
        return text[: start - at] + b"*" * (end - start) + text[end - at :]

    return _SECRET.sub(hide, data), count
