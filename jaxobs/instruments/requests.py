"""`request`: the scope of one served request, and the context that reports whose compilation it was.

JAX compiles on the thread that calls, and the store hands the `Compilation` on there; so the request that is current in
the context at that moment is the one that had to wait for it. Contexts follow `await`, `asyncio.to_thread` and the
thread pools of web frameworks; a thread that a program starts by itself has an empty one, and marks none.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from types import FrameType
from typing import Any, Self, TypeVar

from jaxobs.base import config, threads
from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import OTHER, Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.requests import HTTP_METHODS, REQUEST_OUTCOMES, RequestFailure
from jaxobs.instruments import uses
from jaxobs.instruments.generating import Generating
from jaxobs.recorder import user_errors
from jaxobs.state import store
from jaxobs.state.routes import MOST_COMPILED, MOST_WAITING, Routes, open_request
from jaxobs.state.store import Store

F = TypeVar("F", bound=Callable[..., Any])

off = config.disabled()
"""Whether `JAXOBS_DISABLED` was set when this was imported: then requests run and are not looked at."""

_current: contextvars.ContextVar[request | None] = open_request
MOST_NESTED = 16
MOST_TOLD, TOLD_SECONDS = 200, 1.0
"""Characters of an exception's text, and seconds for which the exception of a route is kept before another is read."""

_connected: Store | None = None
_known_in: Any = None
"""The parts of the store when its routes were looked up: it forgets them at a reset and in a forked child."""
_routes: Routes
_connecting = threads.Lock()

NOT_INSTALLED = (
    "Requests are counted, but whether they are cold is unknown: jaxobs is not installed in this "
    "process, so it sees no compilations. Call jaxobs.start() or jaxobs.install() before the first "
    "request."
)


class request(Generating):  # noqa: N801 - read as a word: `with request("predict"):`
    """A served request: its latency, how it ended, and whether something compiled inside it (`cold`).

        with jaxobs.request("predict"):
            answer = np.asarray(model(params, batch))

    `async with` does the same. The time ends with the block, so the block has to wait for the device, as `np.asarray`
    does. As a decorator, `@jaxobs.request("predict")`, each call is a request, that of an `async def` or a generator
    until it ends. What the block raises is counted as `error`, a cancellation as `cancelled`; both pass on unchanged. A
    request inside another is counted for itself, and what compiles in it makes both cold. One object may be used again
    and again, also while it is open: each use is a request.

    A request that generates text reports `first_token()`, `tokens(input=..., output=...)` and `finish_reason(...)`,
    from whichever thread. Where a middleware or a decorator opened it, `jaxobs.request.current()` is the request.

    Args:
      route: its label in metrics: few different ones, at most 20; later ones share `<other>`.
      queue_seconds: how long it waited before this; it may as well be set inside, on what `as` gives and for this
        request alone, as may `batch` and `outcome`.
      batch: rows that hold something, and rows in all, of the padded batch that it was computed in.

    Raises:
      TypeError: `route` is a function, as where `@jaxobs.request` lacks its route.
    """

    __slots__ = (
        "_began", "_compiled", "_given", "_http", "_open", "_origin", "_parent", "_routes",
        "_store", "_taken", "_token", "batch", "outcome", "route",
    )  # fmt: skip

    def __init__(self, route: str, *, queue_seconds: float | None = None, batch: tuple[int, int] | None = None) -> None:
        if type(route) is not str and callable(route):
            raise TypeError(
                f'`jaxobs.request` needs a route, such as `@jaxobs.request("predict")`, but got '
                f"{type(route).__qualname__}: {route!r:.80}."
            )
        self.route = route
        self.queue_seconds = queue_seconds
        self.batch = batch
        self.outcome: str | None = None
        """A name from `facts.requests.REQUEST_OUTCOMES`; None where the end of the block tells."""
        self._open = False
        self._http: tuple[str, str, int] | None = None
        self._taken: bool | uses.Uses = False
        self._compiled: tuple[int, tuple[Compilation, ...]] | None = None
        self._token: contextvars.Token[request | None] | None = None

    def __enter__(self) -> Self:
        if off:
            return self
        # From here nothing is called until the object is taken: no other thread comes in between.
        if self._taken:
            return self._again(sys._getframe(1))
        self._taken = True
        self._given = self.queue_seconds, self.batch, self.outcome
        try:
            self.begin()
        except Exception as failure:
            _failed(failure)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if self._taken is not True and not self._one_ended(sys._getframe(1), error):
            return
        try:
            self.finish("ok" if error is None else outcome_of(error), error)
            self.leave()
        except Exception as failure:
            _failed(failure)
        self.queue_seconds, self.batch, self.outcome = self._given
        # While it ended, another use may have begun beside it.
        if self._taken is True:
            self._taken = False
        else:
            uses.released(self)

    def __call__(self, fun: F) -> F:
        """The function, each of whose calls is a request."""
        route, queue_seconds, batch = self.route, self.queue_seconds, self.batch
        return uses.each_call(fun, lambda: request(route, queue_seconds=queue_seconds, batch=batch))

    def _again(self, frame: FrameType) -> Self:
        """Another use begins while one is open: one of its own."""
        queue_seconds, batch, outcome = self._given
        another = type(self)(self.route, queue_seconds=queue_seconds, batch=batch)
        another.outcome = outcome
        another.__enter__()
        with guarded("request"):
            uses.began(self, frame, another)
        return another

    def _one_ended(self, frame: FrameType, error: BaseException | None) -> bool:
        with guarded("request"):
            return uses.ended(self, frame, None if error is None else type(error), error)
        return False

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self.__exit__(kind, error, traceback)

    @staticmethod
    def current() -> request:
        """The innermost request of this context; where there is none, one that counts nothing.

        So a handler reaches the request that a middleware or a decorator opened, and may hand it on to another thread.
        """
        found = _current.get()
        return found if found is not None and found._open else request("")

    @property
    def is_open(self) -> bool:
        """Whether the request has begun and not ended."""
        return self._open

    @property
    def cold(self) -> bool:
        """Whether something has compiled inside it, so far or until it ended."""
        return self._compiled is not None

    def begin(self, origin: object = None) -> None:
        """Begins the request in this context; `origin` is the object that only calls for the same request share."""
        if self._open:
            return
        known = _connected
        if known is None or known._parts is not _known_in:
            known = _connect()
        self._store = known
        self._routes = routes = _routes
        parent = _current.get()
        if parent is None or not parent._open:
            parent = None
            routes.begun()
        self._parent = parent
        self._compiled = None
        self._generation = None
        self._origin: object = origin
        self._open = True
        self._token = _current.set(self)
        self._began = perf_counter()

    def finish(self, outcome: str = "ok", error: BaseException | None = None) -> None:
        """Ends the request now: later work in its context is not part of it. Later calls change nothing."""
        ended = perf_counter()
        if not self._open:
            return
        self._open = False
        if self._parent is None:
            self._routes.ended()
        if self.outcome is not None and self.outcome in REQUEST_OUTCOMES:
            outcome = self.outcome
        cold = "true" if self._compiled else "false"
        if not self._store.installed:
            cold = self._unseen()
        queue_seconds = batch = None
        if self.queue_seconds is not None or self.batch is not None:
            queue_seconds, batch = self._told()
        route = self._routes.known.get(self.route)
        if route is None:
            route = self._routes.route(self.route)
            if route.name == OTHER and self.route != OTHER:
                self._store.drop("routes")
        if outcome == "error" and ended > route.told_until:
            route.told_until = ended + TOLD_SECONDS
            route.failure = None if error is None else RequestFailure(
                error=type(error).__name__, call_site=user_errors.call_site(error),
                message=user_errors.text(error)[:MOST_TOLD] if self._store.settings.static_values else None,
            )  # fmt: skip
        waiting = route.waiting
        generation, http = self._generation, self._http
        waiting.append(
            (ended, ended - self._began, outcome, cold, queue_seconds, batch, self._compiled, generation, False, http)
        )
        if len(waiting) >= MOST_WAITING:
            route.drain()

    def _unseen(self) -> str:
        self._store.note(NOT_INSTALLED)
        return "true" if self._compiled else "unknown"

    def _told(self) -> tuple[float | None, tuple[int, int] | None]:
        """Queue time and batch as numbers; None where they were not reported, or are not numbers."""
        try:
            queue = None if self.queue_seconds is None else float(self.queue_seconds)
            used, size = (0, 0) if self.batch is None else (int(self.batch[0]), int(self.batch[1]))
        except (IndexError, KeyError, OverflowError, TypeError, ValueError):
            queue, used, size = -1.0, 0, 0
        if not (queue is None or 0 <= queue < math.inf) or not 0 <= used <= size:
            self._store.note(
                f"A request of `{self.route!s:.80}` has queue_seconds={self.queue_seconds!r:.40} and "
                f"batch={self.batch!r:.40}: valid are seconds from 0 on, and (rows used, total rows)."
            )
            return None, None
        return queue, None if self.batch is None else (used, size)

    def leave(self) -> None:
        """Makes the request current no longer."""
        token = self._token
        self._token = None
        if token is not None:
            try:
                _current.reset(token)
            except ValueError:
                return  # in another context than it began in, which forgets it when it ends itself

    def enter_again(self) -> None:
        """Makes the request current in this context as well, until `leave`."""
        if self._open:
            self._token = _current.set(self)

    def has_compiled(self, event: Compilation) -> None:
        """Something compiled while it was current: it is cold, and those that it is inside of."""
        for scope in self._outwards():
            if scope._open:
                count, first = scope._compiled or (0, ())
                scope._compiled = count + 1, (*first, event) if count < MOST_COMPILED else first

    def _outwards(self) -> Iterator[request]:
        """Yields the request and those around it; bounded, since one that is used again inside itself makes a ring."""
        scope: request | None = self
        for _ in range(MOST_NESTED):
            if scope is None:
                return
            yield scope
            scope = scope._parent


class Served(request):
    """The request of a middleware, whose route is known when the framework has found it, or at its end.

    Args:
      path: what it is called until then.
      name_so_far: gives the route while it is answered; None where that is too early.
    """

    __slots__ = ("_name_so_far",)

    def __init__(self, path: str, name_so_far: Callable[[], str | None]) -> None:
        super().__init__(path)
        self._name_so_far = name_so_far

    def end(
        self, name: Callable[[], str], outcome: str, error: BaseException | None, http: tuple[Any, Any, Any]
    ) -> None:
        """Ends the request, under the name that its tokens were counted under if they were."""
        method, scheme, status = http
        status = status if isinstance(status, int) and 100 <= status < 600 else 0
        self._http = method if method in HTTP_METHODS else "_OTHER", "https" if scheme == "https" else "http", status
        if self._generation is None or self._generation.counts is None:
            self.route = name()
        self.finish(outcome, error)

    def _route_so_far(self) -> str | None:
        name = self._name_so_far()
        if name is not None:
            self.route = name
        return name


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
    """Returns whether a middleware further out counts the very same request already."""
    innermost = _current.get()
    return innermost is not None and any(each._open and each._origin is origin for each in innermost._outwards())


def outcome_of(error: BaseException) -> str:
    """Returns the outcome that an exception counts as which ends a request."""
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error"


def outcome_of_status(status: Any) -> str:
    """Returns the outcome that an HTTP status counts as; an answer without one is an error."""
    if not isinstance(status, int) or status >= 500:
        return "error"
    return "client_error" if status >= 400 else "ok"


def _connect() -> Store:
    """Looks up the routes of the store, and has it report compilations: once, for it keeps its subscribers."""
    global _connected, _known_in, _routes
    known = store.current()
    with _connecting:
        if _connected is not known:
            known.subscribe(_on_event)
        _routes, _known_in = known.part(Routes), known._parts
        _connected = known
    return known


def _on_event(event: Event) -> None:
    if not isinstance(event, Compilation):
        return
    now = perf_counter()
    store.current().part(Routes).compiled(now - sum(event.phases.values()), now)
    scope = _current.get()
    if scope is not None:
        scope.has_compiled(event)
