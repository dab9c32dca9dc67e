"""A process that answers with given bytes."""

from __future__ import annotations

import contextlib
import io
import urllib.request
from collections.abc import Iterator, Mapping


class AnsweringOpener:
    """Stands for the opener of `jaxobs.views.access`."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self._answers = answers

    @contextlib.contextmanager
    def open(self, request: urllib.request.Request, timeout: float) -> Iterator[io.BytesIO]:
        """The answer for the path of a request."""
        yield io.BytesIO(self._answers["snapshot.json" if "snapshot" in request.full_url else "events.json"])
