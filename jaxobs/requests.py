"""`request`: the scope of one served request, and the context that tells whose compilation it was.

JAX compiles on the thread that calls, and the store hands the `Compilation` on there; so the request that is current in
the context at that moment is the one that had to wait for it. Contexts follow `await`, `asyncio.to_thread` and the
thread pools of web frameworks; a thread that a program starts by itself has an empty one, and marks none.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from jaxobs import config, store
from jaxobs.facts import OTHER, REQUEST_OUTCOMES, Compilation, Event
from jaxobs.guard import guarded
from jaxobs.routes import MOST_COMPILED, Ended, Routes
from jaxobs.store import Store

off = config.disabled()
"""Whether `JAXOBS_DISABLED` was set when this was imported: then requests run and are not looked at."""

_current: contextvars.ContextVar[request | None] = contextvars.ContextVar("jaxobs_request", default=None)
MOST_NESTED = 16

_connected: Store | None = None
_connecting = threading.Lock()

NOT_INSTALLED = (
    "Requests are counted, but whether they are cold is unknown: jaxobs is not installed in this process, and sees no "
    "compilations. Call jaxobs.start() or jaxobs.install() before the first request."
)


class request:  # noqa: N801 - read as a word: `with request("predict"):`
    """One served request: its latency, how it ended, and whether something compiled inside it (`cold`).

        with jaxobs.request("predict"):
            answer = np.asarray(model(params, batch))

    `async with` does the same. The time ends with the block, so the block has to wait for the device, as `np.asarray`
    does. What the block raises is counted as `error`, a cancellation as `cancelled`; both go on unchanged. A request
    inside another is counted for itself, and what compiles in it makes both cold.

    Args:
      route: its label in metrics: few different ones, at most 20; later ones share `<other>`.
      queue_seconds: how long it waited before this; it may as well be set inside, as may `batch` and `outcome`.
      batch: rows that hold something, and rows in all, of the padded batch that it was computed in.
    """

    __slots__ = (
        "_began", "_compilations", "_compiled", "_open", "_origin", "_parent", "_routes", "_store", "_token", "batch",
        "outcome", "queue_seconds", "route",
    )  # fmt: skip

    def __init__(self, route: str, *, queue_seconds: float | None = None, batch: tuple[int, int] | None = None) -> None:
        self.route = route
        self.queue_seconds = queue_seconds
        self.batch = batch
        self.outcome: str | None = None
        """One of `facts.REQUEST_OUTCOMES`; None where the end of the block tells."""
        self._open = False
        self._compilations = 0
        self._origin: object = None
        self._token: contextvars.Token[request | None] | None = None

    def __enter__(self) -> Self:
        if not off:
            try:
                self.begin()
            except Exception as failure:
                _failed(failure)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if not off:
            try:
                self.finish("ok" if error is None else outcome_of(error))
                self.leave()
            except Exception as failure:
                _failed(failure)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self.__exit__(kind, error, traceback)

    @property
    def is_open(self) -> bool:
        """Whether it has begun and not ended."""
        return self._open

    @property
    def cold(self) -> bool:
        """Whether something has compiled inside it, so far or until it ended."""
        return self._compilations > 0

    def begin(self, origin: object = None) -> None:
        """It begins, and is current in this context. `origin` is what only calls for the same request share."""
        if self._open:
            return
        self._store = known = store.current()
        if _connected is not known:
            _connect(known)
        self._routes = known.part(Routes)
        parent = _current.get()
        self._parent = parent if parent is not None and parent._open else None
        self._compiled: tuple[Compilation, ...] = ()
        self._compilations = 0
        self._origin = origin
        if self._parent is None:
            self._routes.begun()
        self._open = True
        self._token = _current.set(self)
        self._began = time.perf_counter()

    def finish(self, outcome: str = "ok") -> None:
        """It ends now: what comes later in its context is no part of it. Once is enough."""
        ended = time.perf_counter()
        if not self._open:
            return
        self._open = False
        routes = self._routes
        if self._parent is None:
            routes.ended()
        if self.outcome is not None and self.outcome in REQUEST_OUTCOMES:
            outcome = self.outcome
        cold = "true" if self._compilations else "false"
        if not self._store.installed:
            cold = self._unseen()
        queue_seconds = batch = None
        if self.queue_seconds is not None or self.batch is not None:
            queue_seconds, batch = self._told()
        route = routes.route(self.route)
        if route.name == OTHER and self.route != OTHER:
            self._store.drop("routes")
        # By position: that is faster.
        route.add(
            Ended(
                ended, ended - self._began, outcome, cold, queue_seconds, batch, self._compilations, self._compiled
            )
        )  # fmt: skip

    def _unseen(self) -> str:
        self._store.note(NOT_INSTALLED)
        return "true" if self._compilations else "unknown"

    def _told(self) -> tuple[float | None, tuple[int, int] | None]:
        """Queue time and batch as numbers; None where they were not told, or are no numbers."""
        try:
            queue = None if self.queue_seconds is None else float(self.queue_seconds)
            used, size = (0, 0) if self.batch is None else (int(self.batch[0]), int(self.batch[1]))
        except (IndexError, KeyError, OverflowError, TypeError, ValueError):
            queue, used, size = -1.0, 0, 0
        if not (queue is None or 0 <= queue < math.inf) or not 0 <= used <= size:
            self._store.note(
                f"A request of `{self.route!s:.80}` tells queue_seconds={self.queue_seconds!r:.40} and "
                f"batch={self.batch!r:.40}: seconds from 0 on, and (rows used, rows in all), are what can be counted."
            )
            return None, None
        return queue, None if self.batch is None else (used, size)

    def leave(self) -> None:
        """It is current no longer."""
        token, self._token = self._token, None
        if token is not None:
            try:
                _current.reset(token)
            except ValueError:
                return  # in another context than it began in, which forgets it when it ends itself

    def enter_again(self) -> None:
        """It is current in this context as well, until it is left."""
        if self._open:
            self._token = _current.set(self)

    def has_compiled(self, event: Compilation) -> None:
        """Something compiled while it was current: it is cold, and those that it is inside of."""
        for scope in self._outwards():
            if scope._open:
                scope._compilations += 1
                if len(scope._compiled) < MOST_COMPILED:
                    scope._compiled = (*scope._compiled, event)

    def _outwards(self) -> Iterator[request]:
        """This one and those that it is inside of; bounded, for one that is used again inside itself makes a ring."""
        scope: request | None = self
        for _ in range(MOST_NESTED):
            if scope is None:
                return
            yield scope
            scope = scope._parent


class Middleware:
    """An application around another, whose attributes are its own: what ASGI and WSGI have in common."""

    def __init__(self, app: Any, route: Callable[[Any], str] | None = None) -> None:
        self.app = app
        self._jaxobs_route = route

    def __getattr__(self, name: str) -> Any:
        if name == "app":  # not yet there, as while it is copied
            raise AttributeError(name)
        return getattr(self.app, name)


def _failed(error: Exception) -> None:
    """Counts a failure of ours. Out of line: a guard around each scope would cost a fifth of it."""
    with guarded("request"):
        raise error


def under_way(origin: object) -> bool:
    """Whether a middleware further out counts the very same request already."""
    innermost = _current.get()
    return innermost is not None and any(each._open and each._origin is origin for each in innermost._outwards())


def outcome_of(error: BaseException) -> str:
    """What an exception that ends a request is counted as."""
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error"


def outcome_of_status(status: Any) -> str:
    """What an HTTP status is counted as; an answer without one is an error."""
    if not isinstance(status, int) or status >= 500:
        return "error"
    return "client_error" if status >= 400 else "ok"


def _connect(known: Store) -> None:
    """Has the store tell of compilations from now on; a store is told so once, for it keeps its subscribers."""
    global _connected
    with _connecting:
        if _connected is not known:
            known.subscribe(_on_event)
            _connected = known


def _on_event(event: Event) -> None:
    if not isinstance(event, Compilation):
        return
    now = time.perf_counter()
    store.current().part(Routes).compiled(now - sum(event.phases.values()), now)
    scope = _current.get()
    if scope is not None:
        scope.has_compiled(event)
