"""HTTP with bounds: on the time of the whole answer, and on its size."""

from __future__ import annotations

import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException

MOST_BYTES = 8 * 2**20
_PIECE = 2**16


class NoAnswerError(Exception):
    """Nothing useful answers; the message says what happened."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A server that was asked must not choose another one that is asked."""

    def redirect_request(self, *_: object) -> None:
        return None


def fetch(url: str, timeout: float) -> bytes:
    """The body of an answer.

    Args:
      timeout: seconds for all of it.

    Raises:
      NoAnswerError: there is none in time, it is an error, or it is too large.
    """
    until = time.monotonic() + timeout
    host = urllib.parse.urlsplit(url).hostname or ""
    direct = [urllib.request.ProxyHandler({})] if host in ("localhost", "::1") or host.startswith("127.") else []
    opener = urllib.request.build_opener(_NoRedirect, *direct)
    pieces, size = [], 0
    try:
        with opener.open(url, timeout=timeout) as answer:
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
