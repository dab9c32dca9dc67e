"""Callers of an HTTP server of jaxobs: the host and the origin that a request names, and the token that it shows."""

import base64
import binascii
import contextlib
import hmac
import ipaddress
import re
from collections.abc import Sequence

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_AUTHORITY = re.compile(
    r"(?:\[([\da-f.]*:[\da-f.:]*)\]|([\w-]+(?:\.[\w-]+)*))(?::([1-9]\d{0,4}))?", re.ASCII | re.IGNORECASE
)


def authority(text: str) -> tuple[str, int | None] | None:
    """Returns the name in lower case and the port of `name`, `name:port` or `[address]:port`; None for all else."""
    found = _AUTHORITY.fullmatch(text)
    if found is None or int(found[3] or 0) > 65535:
        return None
    return (found[1] or found[2]).lower(), int(found[3]) if found[3] else None


def known_hosts(addr: str, more: Sequence[str], *, closed: bool) -> frozenset[str] | None:
    """Returns the hosts that requests may name: loopback, the address, and more. If it is open and has no more: any."""
    named = {each.strip("[]").lower() for each in (addr, *more)}
    return LOOPBACK | named if closed or more else None


def is_asked_for(hosts: Sequence[str], known: frozenset[str] | None) -> bool:
    """Returns whether the `Host` headers of a request are one of a known host. No browser leaves it out: others may."""
    named = [authority(each) for each in hosts]
    return not named or (len(named) == 1 and named[0] is not None and (known is None or named[0][0] in known))


def is_own(origins: Sequence[str], hosts: Sequence[str]) -> bool:
    """Returns whether a request comes from no web page, or from a page of the host that it asks."""
    scheme, _, rest = "".join(origins[:1]).partition("://")
    asked = [authority(each) for each in hosts]
    return not origins or (len(origins) == 1 and scheme in ("http", "https") and asked == [authority(rest)] != [None])


def is_loopback(host: str) -> bool:
    """Returns whether a host names this machine alone."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    return host.lower() == "localhost"


def shown_token(authorization: str | None, *, basic: bool = False) -> bytes:
    """Returns the token in an `Authorization` header, with `basic` also a password; empty if it shows none."""
    scheme, _, rest = (authorization or "").strip().partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip().encode("latin-1", "replace")  # headers come decoded as Latin-1, whatever was sent
    if basic and scheme.lower() == "basic":
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
    return b""


def is_token(shown: bytes, token: str | None) -> bool:
    """Returns whether a token is the right one, taking equally long for each; without one, none is."""
    return bool(token) and hmac.compare_digest(shown, (token or "").encode())
