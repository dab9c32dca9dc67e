"""HTTP with bounds: on the time of the whole answer, and on its size; and what a Prometheus is shown to be let in.

Answers are asked for now, or as they were recorded.

A user and password stand in its address, http://user:password@prometheus:9090, or `JAXOBS_PROMETHEUS_TOKEN` is a bearer
token. `JAXOBS_PROMETHEUS_HEADERS` holds headers that it wants, such as `X-Scope-OrgID: team-a`, one a line.
"""

import base64
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Protocol

from jaxobs.base.config import PREFIX
from jaxobs.base.errors import SettingError
from jaxobs.ops.in_time import Deadline
from jaxobs.views import access, client

MOST_BYTES = 8 * 2**20
_PIECE = 2**16

PROMETHEUS = "PROMETHEUS"
_HEADER = re.compile(r"([!#$%&'*+.^_`|~\w-]+):[ \t]*([\x20-\x7e]*)", re.ASCII)
_CREDENTIALS = re.compile(r"(^|//)[^/@\s`]+@")


class NoAnswerError(Exception):
    """Nothing useful answers; the message says what happened."""


def fetch(url: str, timeout: float, endpoint: bool = False, whose: str = PROMETHEUS) -> bytes:
    """The body of an answer.

    Args:
      timeout: seconds for all of it.
      endpoint: whether it is a jaxobs endpoint, which is shown the token.
      whose: word in the names of the variables that let another server in.

    Raises:
      NoAnswerError: there is none in time, it is an error, it is too large, or a variable cannot be used.
    """
    until = time.monotonic() + timeout
    handlers = [access.NoRedirect(), *([urllib.request.ProxyHandler({})] if access.is_local(url) else [])]
    pieces, size = [], 0
    try:
        opener = access.opener(url, access.NoRedirect) if endpoint else urllib.request.build_opener(*handlers)
        with Deadline(opener, timeout) as deadline:
            try:
                answer = opener.open(access.request(url) if endpoint else request(url, whose), timeout=timeout)
            except (OSError, HTTPException):
                if deadline.is_over:
                    raise NoAnswerError(f"no answer within {timeout:g} s") from None
                raise
        with answer:
            while piece := answer.read1(_PIECE):
                pieces.append(piece)
                size += len(piece)
                if size > MOST_BYTES:
                    raise NoAnswerError(f"the answer is larger than {MOST_BYTES:,} bytes")
                if time.monotonic() > until:
                    raise NoAnswerError(f"no whole answer within {timeout:g} s")
    except urllib.error.HTTPError as error:
        error.close()
        raise NoAnswerError(f"HTTP {error.code}{'' if endpoint else _refused(error.code, url, whose)}") from None
    except (OSError, ValueError, HTTPException) as error:
        cause = getattr(error, "reason", error)
        if isinstance(cause, TimeoutError):
            raise NoAnswerError(f"no answer within {timeout:g} s") from None
        raise NoAnswerError(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__) from None
    return b"".join(pieces)


def request(url: str, whose: str = PROMETHEUS) -> urllib.request.Request:
    """A request to a server with what lets it in. A network does not get to see the token: HTTPS or loopback only.

    Raises:
      SettingError: a variable holds no headers.
    """
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    asked = urllib.request.Request(urllib.parse.urlunsplit(parts._replace(netloc=host)))
    headers = f"{PREFIX}{whose}_HEADERS"
    for line in (os.environ.get(headers) or "").splitlines():
        if line.strip():
            header = _HEADER.fullmatch(line.strip())
            if header is None:
                raise SettingError(f"`{headers}` holds a line that is not a header. Write `Name: value`, one a line.")
            asked.add_header(header[1], header[2])
    token = os.environ.get(f"{PREFIX}{whose}_TOKEN")
    if at:
        given = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
        asked.add_header("Authorization", f"Basic {given}")
    elif token and access.shows_token(url):
        asked.add_header("Authorization", f"Bearer {token.strip()}")
    return asked


def _refused(code: int, url: str, whose: str = PROMETHEUS) -> str:
    variable = f"{PREFIX}{whose}_TOKEN"
    token = os.environ.get(variable)
    if code not in (401, 403):
        return ""
    if token and not access.shows_token(url):
        return f": the token in `{variable}` goes over HTTPS or loopback only"
    if token or "@" in urllib.parse.urlsplit(url).netloc:
        return ": it refuses the credentials"
    return f": it wants credentials; set `{variable}`, or put user and password into the address"


class Answers(Protocol):
    """Where answers come from. Whoever records them stands between."""

    def of_process(self, address: str, timeout: float) -> bytes:
        """What the API of a process answers.

        Raises:
          JaxobsError: nothing does, or it is no process of jaxobs.
        """

    def of_server(self, address: str, timeout: float, until: float | None = None) -> bytes:
        """What `/metrics` of a process, or any path of another server, answers.

        Args:
          until: when to ask no more, by `time.monotonic`.

        Raises:
          TooLateError: that time is over.
          NoAnswerError: there is no answer, or none that can be used.
        """


class TooLateError(NoAnswerError):
    """The time for all questions is used up."""


class Asked:
    """The answers of now."""

    def of_process(self, address: str, timeout: float) -> bytes:
        """Asks."""
        return client.get(address, timeout)

    def of_server(self, address: str, timeout: float, until: float | None = None) -> bytes:
        """Asks."""
        if until is not None and time.monotonic() > until:
            raise TooLateError("it is too late to ask")
        return fetch(address, timeout, endpoint=urllib.parse.urlsplit(address).path.endswith("/metrics"))


def shown(text: str) -> str:
    """An address, or a text with addresses in it, without what may be a name and a password."""
    return _CREDENTIALS.sub(r"\1", text)
