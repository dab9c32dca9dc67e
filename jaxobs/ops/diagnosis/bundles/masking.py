"""What looks like a secret is overwritten, byte for byte, so that lines and sizes remain what they were."""

import re

_SECRET = re.compile(
    rb"""
      (?i: \b bearer \s+ | authorization["']? \s* [:=] \s* ["']? (?: \w+ \s+ )? )(?P<bearer> [A-Za-z0-9._~+/=-]{16,} )
    | (?i: (?: password | passwd | secret | api[_-]?key | access[_-]?key | auth[_-]?token | access[_-]?token
             | credentials? | private[_-]?token )
        [\w-]{0,20} ["']? \s* [:=] \s* ["']? )
      (?! (?: secret | configmap ) [ ]" ) # an object that Kubernetes does not find, after the volume's name
      (?P<value> [^\s"',;&<>\\]{6,200} )
    | ://[^\s/@:"'\\]{0,100}:(?P<login> [^\s/@"'\\]{1,200} )@
    | (?P<key> \b(?: AKIA | ASIA )[A-Z0-9]{16}\b | \bgh[pousr]_[A-Za-z0-9]{30,} | \bhf_[A-Za-z0-9]{30,}
      | \bsk-[A-Za-z0-9_-]{20,} | \bxox[abprs]-[A-Za-z0-9-]{10,} | \bya29\.[\w-]{20,}
      | \beyJ[\w-]{10,}(?: \.[\w-]+ ){0,4} )
    """,
    re.VERBOSE,
)
_STARTS = tuple(b"bearer passw secret api access auth credential private :// akia asia gh hf_ sk- xox ya29 eyj".split())
"""Each secret begins with one of them, in small letters: finding them takes a hundredth of the time of the pattern."""
_PIECE = 2**20
_LONGEST = max(map(len, _STARTS))
MOST_PLACES = 2_000_000
"""Places that may be secrets; bytes with more of them are not masked in seconds."""


def masked(data: bytes) -> tuple[bytes, int]:
    """Returns the bytes with `*` for each byte of what looks like a secret, and the number of secrets.

    Raises:
      ValueError: too much may be a secret.
    """
    hidden: bytearray | None = None
    count = places = end = 0
    for first in range(0, len(data), _PIECE):
        for at in _places(data[first : first + _PIECE + _LONGEST - 1].lower()):
            place = first + at
            if place >= end and (found := _SECRET.match(data, place)):
                start, stop = found.span(found.lastgroup or 0)
                hidden = bytearray(data) if hidden is None else hidden
                hidden[start:stop] = b"*" * (stop - start)
                count, end = count + 1, found.end()
            places += 1
        if places > MOST_PLACES:
            raise ValueError(f"more than {MOST_PLACES:,} places in it may be secrets")
    return (data, 0) if hidden is None else (bytes(hidden), count)


def _places(piece: bytes) -> list[int]:
    """Returns where secrets may begin, in order."""
    found = []
    for word in _STARTS:
        at = piece.find(word)
        while at >= 0:
            found.append(at)
            at = piece.find(word, at + 1)
    return sorted(found)
