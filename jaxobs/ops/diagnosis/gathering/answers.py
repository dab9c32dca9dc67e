"""What servers answer: asked now, or as it was recorded."""

from __future__ import annotations

import re
import time
import urllib.parse
from typing import Protocol

from jaxobs.ops.diagnosis.gathering.http import NoAnswerError, fetch
from jaxobs.views import client


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


_CREDENTIALS = re.compile(r"(^|//)[^/@\s`]+@")
