"""Protection of the endpoint: TLS, a token, host names, and bounds of sizes and times."""

import contextlib
import os
import ssl
import sys
import time
from collections.abc import Callable

from jaxobs.base import callers, threads
from jaxobs.base.config import Settings
from jaxobs.base.errors import SettingError
from jaxobs.exporters.forms.http_types import Response, problem

SHARE = 8
"""Part of the process's descriptors, one in so many, that connections take at most: the others are the program's."""
FRESH_SECONDS = 60.0
"""Seconds between looks at whether the certificate's files have changed."""


class Protection:
    """Protection of an endpoint that is bound to an address. Safe for threads."""

    def __init__(self, settings: Settings, addr: str, loopback: bool) -> None:
        """`loopback` says whether only this machine reaches the address; raises `SettingError`."""
        self.settings = settings
        self.seconds = settings.request_timeout
        descriptors = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else -1  # -1 is no limit
        self.most_connections = min(settings.max_connections, max(4, descriptors % sys.maxsize // SHARE))
        self.hosts = callers.known_hosts(addr, settings.allowed_hosts, closed=loopback)
        """Host names that requests may be for; None for any."""
        self.context = _context(settings)
        """TLS context of connections that are accepted from now on; None without TLS."""
        self.is_exposed = not loopback and bool(settings.read_token) and self.context is None
        """Whether the token crosses a network as plain text."""
        self._versions = _versions(settings)
        self._looked = time.monotonic()
        self._looking = threads.Lock()

    def refusal(self, authorization: str | None) -> Response | None:
        """Returns the response to a client without the token; None if it has the token or needs no token."""
        token = self.settings.read_token
        if not token or callers.is_token(callers.shown_token(authorization, basic=True), token):
            return None
        return problem(
            "401 Unauthorized",
            "Send the header `Authorization: Bearer TOKEN`, with the setting `read_token`. In a browser, the token is "
            "the password; the user name does not matter.",
            (("WWW-Authenticate", 'Bearer realm="jaxobs"'), ("WWW-Authenticate", 'Basic realm="jaxobs"')),
        )

    def renew(self, failed: Callable[[str], None]) -> None:
        """Reads renewed files of the certificate, now and then. Not for the thread that accepts: a disk may hang.

        Args:
          failed: called with a sentence where they are unusable; the old certificate stays in use.
        """
        if self.context is None or time.monotonic() - self._looked < FRESH_SECONDS:
            return
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._looked = time.monotonic()
            versions = _versions(self.settings)
            if versions != self._versions:
                self.context = _context(self.settings)
                self._versions = versions
        except SettingError as error:
            failed(f"{error} The endpoint continues with the certificate that it has.")
        finally:
            self._looking.release()


def _files(settings: Settings) -> dict[str, str]:
    certificate, key, authorities = settings.tls_certificate, settings.tls_key, settings.tls_client_ca
    found = {"tls_certificate": certificate, "tls_key": key, "tls_client_ca": authorities}
    return {name: path for name, path in found.items() if path}


def _versions(settings: Settings) -> dict[str, tuple[int, int, int] | None]:
    """Returns the files' identities, which change with the files."""
    found: dict[str, tuple[int, int, int] | None] = {}
    for name, path in _files(settings).items():
        found[name] = None
        with contextlib.suppress(OSError):
            info = os.stat(path)
            found[name] = info.st_ino, info.st_mtime_ns, info.st_size
    return found


def _context(settings: Settings) -> ssl.SSLContext | None:
    files = _files(settings)
    if not files:
        return None
    if "tls_certificate" not in files:
        raise SettingError(f"`{next(iter(files))}` is set, but `tls_certificate` is not: the endpoint needs both.")
    for name, path in files.items():
        _readable(name, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    certificate, key = files["tls_certificate"], files.get("tls_key")
    try:
        # With a passphrase of ours: OpenSSL would ask the terminal for one.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        with_key = f" with `tls_key` {key!r}" if key else ""
        raise SettingError(
            f"`tls_certificate` is {certificate!r}{with_key}, which cannot be used: {_reason(error)}. Give PEM files: "
            "the certificate first, then those that signed it, and its private key without a passphrase."
        ) from None
    if authorities := files.get("tls_client_ca"):
        try:
            context.load_verify_locations(authorities)
        except (OSError, ValueError) as error:
            raise SettingError(
                f"`tls_client_ca` is {authorities!r}, which has no certificates: {_reason(error)}."
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _readable(name: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except (OSError, ValueError) as error:
        raise SettingError(f"`{name}` is {path!r}, which cannot be read: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    """Returns a message for a person: OpenSSL's own have numbers and file names in them."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no certificate, or not the key of this one").replace("_", " ").lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
