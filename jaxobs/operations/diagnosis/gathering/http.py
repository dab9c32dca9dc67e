"""HTTP with bounds: on the time of the whole answer, and on its size."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from http.client import HTTPException

from jaxobs.views import access

MOST_BYTES = 8 * 2**20
_PIECE = 2**16


class NoAnswerError(Exception):
    """Nothing useful answers; the message says what happened."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A server that was asked must not choose another one that is asked."""

    def redirect_request(self, *_: object) -> None:
        return None


def fetch(url: str, timeout: float, endpoint: bool = False) -> bytes:
    """The body of an answer.

    Args:
      timeout: seconds for all of it.
      endpoint: whether it is a jaxobs endpoint, which is shown the token.

    Raises:
      NoAnswerError: there is none in time, it is an error, or it is too large.
    """
    until = time.monotonic() + timeout
    direct = [urllib.request.ProxyHandler({})] if access.is_local(url) else []
    pieces, size = [], 0
    try:
        opener = access.opener(url, _NoRedirect) if endpoint else urllib.request.build_opener(_NoRedirect, *direct)
        with opener.open(access.request(url) if endpoint else url, timeout=timeout) as answer:
            while piece := answer.read1(_PIECE):
                pieces.append(piece)
                size += len(piece)
                if size > MOST_BYTES:
                    raise NoAnswerError(f"the answer is larger than {MOST_BYTES:,} bytes")
                if time.monotonic() > until:
                    raise NoAnswerError(f"no whole answer within {timeout:g} s")
    except urllib.error.HTTPError as error:
        error.close()
        raise NoAnswerError(f"HTTP {error.code}") from None
    except (OSError, ValueError, HTTPException) as error:
        cause = getattr(error, "reason", error)
        if isinstance(cause, TimeoutError):
            raise NoAnswerError(f"no answer within {timeout:g} s") from None
        raise NoAnswerError(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__) from None
    return b"".join(pieces)
