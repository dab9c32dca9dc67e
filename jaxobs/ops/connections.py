"""Connections of an ASGI server under uvicorn: bounded in number, and ended where their request does not come."""

import asyncio
from typing import Any, cast

from jaxobs.base.errors import MissingExtraError

try:
    from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
except ImportError as error:
    raise MissingExtraError("jaxobs agent", "uvicorn", "agent") from error

MOST_SECONDS = 10.0
"""Seconds for a request to begin."""
MOST_CONNECTIONS = 100
"""Connections at once; beyond, the oldest one whose request has not come makes way for the next."""


class Protocol(H11Protocol):
    """Connection that is ended in time, where uvicorn would keep it, and would refuse the requests of others."""

    # The type is uvicorn's own, which narrows that of asyncio.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._began = self.loop.time()
        self.loop.call_later(MOST_SECONDS, self._look, None)
        others = [each for each in cast("set[Protocol]", self.connections) if not each.transport.is_closing()]
        if len(others) > MOST_CONNECTIONS:
            waiting = [each for each in others if each is not self and each._waits]
            if waiting:
                min(waiting, key=lambda each: (each.cycle is not None, each._began)).transport.abort()

    @property
    def _waits(self) -> bool:
        """Says whether the client has to send something: a request, or the rest of one."""
        latest = cast("RequestResponseCycle | None", self.cycle)
        return latest is None or latest.response_complete or latest.more_body

    def _look(self, before: object) -> None:
        """Looks whether a request came since the last look."""
        if self.transport.is_closing():
            return
        latest = cast("RequestResponseCycle | None", self.cycle)
        if latest is before and (latest is None or latest.response_complete):
            self.transport.close()
        else:
            self.loop.call_later(MOST_SECONDS, self._look, latest)


BOUNDS: dict[str, Any] = {
    "http": Protocol, "limit_concurrency": 2 * MOST_CONNECTIONS, "timeout_keep_alive": 5, "log_level": "error",
    "access_log": False, "server_header": False,
}  # fmt: skip
"""Arguments of `uvicorn.Config`."""
