"""How commands get into an endpoint that is protected: what they show it, and by which authority they know it.

`JAXOBS_READ_TOKEN` is the token, as in the process that serves it. `JAXOBS_ENDPOINT_CA` names a PEM file with the
authority of its certificate, where that is not one of the system's; `JAXOBS_ENDPOINT_CERTIFICATE` and
`JAXOBS_ENDPOINT_KEY` name the client's own, where the endpoint asks for one.
"""

import os
import ssl
import urllib.parse
import urllib.request
from typing import Any

from jaxobs.base.callers import is_loopback
from jaxobs.base.config import PREFIX
from jaxobs.base.errors import SettingError

TOKEN = f"{PREFIX}READ_TOKEN"
CA = f"{PREFIX}ENDPOINT_CA"
CERTIFICATE = f"{PREFIX}ENDPOINT_CERTIFICATE"
KEY = f"{PREFIX}ENDPOINT_KEY"


def is_local(url: str) -> bool:
    """Whether an address is one of this machine's loopback."""
    return is_loopback(urllib.parse.urlsplit(url).hostname or "")


def opener(url: str, *handlers: urllib.request.BaseHandler | type) -> urllib.request.OpenerDirector:
    """Opens endpoints: loopback without a proxy, HTTPS with the named certificates; raises `SettingError`."""
    wanted: list[urllib.request.BaseHandler | type] = [*handlers]
    if is_local(url):
        wanted.append(urllib.request.ProxyHandler({}))
    if urllib.parse.urlsplit(url).scheme == "https":
        wanted.append(urllib.request.HTTPSHandler(context=_context()))
    return urllib.request.build_opener(*wanted)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: a server that was asked must not choose another one that is asked, or gets a token."""

    def redirect_request(self, *_: object) -> None:
        return None


class Endpoint:
    """An endpoint that is asked several times."""

    def __init__(self, url: str) -> None:
        """Raises `SettingError` as `opener` does."""
        self._opener = opener(url)

    def open(self, address: str, timeout: float) -> Any:
        """The answer of one of its addresses, shown the token; raises what `urllib` does."""
        return self._opener.open(request(address), timeout=timeout)


def request(address: str) -> urllib.request.Request:
    """A request that shows the token. A network does not get to see it: it goes over HTTPS or loopback only."""
    asked = urllib.request.Request(address)
    token = os.environ.get(TOKEN)
    if token and shows_token(address):
        # Unredirected: a server that is asked must not choose another one that gets the token.
        asked.add_unredirected_header("Authorization", f"Bearer {token}")
    return asked


def shows_token(address: str) -> bool:
    """Whether the token may be shown to an address."""
    return urllib.parse.urlsplit(address).scheme == "https" or is_local(address)


def refused(code: int, address: str) -> str | None:
    """Returns a sentence on how to get past an endpoint's refusal; None for other kinds of answer."""
    if code == 401 and not shows_token(address):
        return f"It wants a token, which goes over HTTPS or loopback only: set `{PREFIX}TLS_CERTIFICATE` in the process"
    if code == 401 and os.environ.get(TOKEN):
        return f"The token in `{TOKEN}` is not that of the process"
    if code == 401:
        return f"It wants a token: set `{TOKEN}` to that of the process"
    return None


def untrusted(error: object) -> str | None:
    """Returns a sentence on how to get past a refused certificate; None where something else happened."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if "mismatch" in error.verify_message or "not valid for" in error.verify_message:
            return "Use a host name that is in its certificate"
        return f"Set `{CA}` to a PEM file with the authority of its certificate"
    if isinstance(error, ssl.SSLError) and "CERTIFICATE_REQUIRED" in str(error):
        return f"It wants a certificate of the client: set `{CERTIFICATE}` and `{KEY}`"
    return None


def _context() -> ssl.SSLContext:
    authority, certificate = os.environ.get(CA) or None, os.environ.get(CERTIFICATE) or None
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ValueError) as error:
        raise SettingError(f"`{CA}` is {authority!r}, which cannot be used: {_reason(error)}.") from None
    if certificate:
        try:
            context.load_cert_chain(certificate, os.environ.get(KEY) or None, password=lambda: "")
        except (OSError, ValueError) as error:
            raise SettingError(f"`{CERTIFICATE}` is {certificate!r}, which cannot be used: {_reason(error)}.") from None
    return context


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
