"""Reads a jaxobs endpoint over HTTP and gives the facts back, typed as they were in the process.

    url = endpoint_url("localhost:9464")
    snapshot = fetch_snapshot(url)
    page = fetch_events(url, since=0, kind="compilation")

Fields that this version does not know are left out, so that a newer process can be read by an older client.
"""

import dataclasses
import datetime
import functools
import re
import socket
import time
import types
import typing
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, TypeVar

from jaxobs.base import json_lines
from jaxobs.base.errors import JaxobsError, SettingError
from jaxobs.facts import renamed
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.kinds import event_types
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views import access

T = TypeVar("T")
Get = Callable[[str, float], bytes]
"""Function that gets the bytes at an address, with a timeout in seconds."""

DEFAULT_URL = "http://127.0.0.1:9464"
TIMEOUT = 3.0
"""Seconds that an endpoint may take to answer."""

_MOST_BYTES = 64 * 2**20
_EARLIEST_YEAR, _LATEST_YEAR = 1970, 9998
_MOST = 2**63
"""Bound of numbers: beyond it, arithmetic and calendars overflow."""
_MOST_FLOAT = 1e30
_PIECE = 2**20
_SLOW = 10.0
"""Times the timeout that a whole answer may take, in pieces that each come in time."""
_KNOWN_PATHS = re.compile(r"/(metrics|healthz|api/v1(/\w*)?)?/?$")


class EndpointUnreachableError(JaxobsError, OSError):
    """Nothing answers at the address, or it answers too slowly."""

    brief = "no answer"
    """Description of the failure in a few words, for a view that shows the address already."""


class NotAnEndpointError(JaxobsError, ValueError):
    """Something answers at the address, but it does not speak jaxobs' API."""

    brief = "something else answers there"


@dataclasses.dataclass(frozen=True, slots=True)
class EventPage:
    """Answer of `/api/v1/events`: the events after `since`, oldest first."""

    events: tuple[Event, ...]
    next: int
    """Value of `since` for the next request."""
    dropped: int
    """Events after `since` that the process no longer holds."""


def is_url(text: str) -> bool:
    """Whether a text is the URL of a server."""
    try:
        parts = urllib.parse.urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_url(option: str, text: str) -> None:
    """Raises `SettingError` if the text given for an option is not the URL of a server."""
    if not is_url(text):
        raise SettingError(f"{option} {text!r} is not an address. Give a URL such as http://localhost:9090.")


def endpoint_url(text: str) -> str:
    """Returns the URL meant by `9464`, `host:9464` or `http://host:9464/metrics`; raises `SettingError`."""
    given = text.strip()
    if re.fullmatch(r":?\d+(/.*)?", given):
        given = f"127.0.0.1:{given.lstrip(':')}"
    if "://" not in given:
        given = f"http://{given}"
    try:
        parts = urllib.parse.urlsplit(given)
        port, host = parts.port, parts.hostname
    except ValueError:
        port, host = None, None
    if not host or parts.scheme not in ("http", "https") or re.search(r"\s", given) or port == 0:
        raise SettingError(
            f"`{text}` is not the address of an endpoint. Give a port (9464), a host and port (localhost:9464), "
            f"or a URL (http://host:9464/metrics)."
        )
    # A bare host means our default port; a URL keeps the port of its scheme, for proxies.
    netloc = parts.netloc if port or "://" in text else f"{parts.netloc}:9464"
    return urllib.parse.urlunsplit((parts.scheme, netloc, _KNOWN_PATHS.sub("", parts.path), "", ""))


def fetch_snapshot(url: str, *, timeout: float = TIMEOUT, get: Get | None = None) -> Snapshot:
    """The process's state; raises `EndpointUnreachableError`, or `NotAnEndpointError` if something else answers."""

    def snapshot(body: Any) -> Snapshot:
        return typing.cast(Snapshot, decode(Snapshot, renamed.verdict(body)))

    return _read(f"{url}/api/v1/snapshot", timeout, snapshot, get)


def fetch_events(
    url: str, *, since: int = 0, kind: str | None = None, timeout: float = TIMEOUT, get: Get | None = None
) -> EventPage:
    """The events after number `since`, of one kind or of all; raises as `fetch_snapshot` does."""

    def page(body: Any) -> EventPage:
        found = [decode_event(each) for each in body["events"]]
        events = tuple(event for event in found if event is not None)
        return EventPage(events, int(body["next"]), int(body.get("dropped", 0)))

    query = {"since": str(since)} | ({"kind": kind} if kind else {})
    return _read(f"{url}/api/v1/events?{urllib.parse.urlencode(query)}", timeout, page, get)


def decode_event(body: Mapping[str, Any]) -> Event | None:
    """The event that `facts.events.as_event` made `body` of; None when this version does not know its kind."""
    kind: Any = event_types().get(body["event"])
    if kind is None:
        return None
    told = {**_unknown(kind), **renamed.current(body), "time": _moment(body["time"])}
    return typing.cast(Event, decode(kind, told))


_UNKNOWN = {"function": "<unknown>", "stage": "unknown", "count": 1}
"""Values that stand for missing fields of an event, by name."""
_NOTHING: dict[Any, Any] = {str: "", int: 0, float: None, bool: False, tuple: [], Mapping: {}}
"""Values that stand for missing fields of an event, by type; a missing number is unknown."""


@functools.cache
def _unknown(kind: Any) -> dict[str, Any]:
    """Returns values for fields that an event may lack in a log of others; a compilation may lack none."""
    found: dict[str, Any] = {}
    hints = typing.get_type_hints(kind)
    for name, _, _, needed in _fields(kind) if kind is not Compilation else ():
        of_what = typing.get_origin(hints[name]) or hints[name]
        if needed and name != "time" and of_what in _NOTHING:
            found[name] = _UNKNOWN.get(name, _NOTHING[of_what])
    return found


def _moment(text: Any) -> float:
    """Seconds since the epoch, within what any clock and calendar can show."""
    if not isinstance(text, str):
        raise ValueError(f"`time` is {type(text).__name__} instead of a string")
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None or not _EARLIEST_YEAR <= moment.year <= _LATEST_YEAR:
        raise ValueError(f"`time` is {text!r:.60}, which is not a time in UTC")
    return moment.timestamp()


def decode(kind: Any, value: Any, path: str = "") -> Any:
    """Returns what `facts.events.plain` made as an object of type `kind` again; raises `ValueError`."""
    try:
        return _decoder(kind)(value)
    except ValueError as error:
        what, *where = error.args
        raise ValueError(f"`{'.'.join(filter(None, [path, *where])) or 'the answer'}` {what}") from None


@functools.cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """The function that decodes a type, made once: logs have a million values. It raises what is wrong, and where."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (types.UnionType, typing.Union):
        some = _decoder(next(each for each in inner if each is not type(None)))
        return lambda value: None if value is None else some(value)
    if dataclasses.is_dataclass(kind):
        return functools.partial(_dataclass, kind)
    if origin is Mapping:
        some = _decoder(inner[1])
        return lambda value: {key: some(item) for key, item in _leaf(dict, value).items()}
    if origin is tuple and inner[-1] is Ellipsis:
        some = _decoder(inner[0])
        return lambda value: tuple([some(item) for item in _leaf(list, value)])
    if origin is tuple:
        all_of = [_decoder(each) for each in inner]
        return lambda value: tuple([one(item) for one, item in zip(all_of, _leaf(list, value), strict=True)])
    return functools.partial(_leaf, kind)


def _leaf(kind: Any, value: Any) -> Any:
    if kind is float and (value is None or type(value) is int):
        value = float("nan" if value is None else value)
    if type(value) is not kind:
        raise ValueError(f"is {type(value).__name__} instead of {'an object' if kind is dict else kind}")
    if kind in (int, float) and abs(value) >= (_MOST if kind is int else _MOST_FLOAT):
        raise ValueError("is out of range")
    return value


def _dataclass(kind: Any, value: Any) -> Any:
    body, given, name = _leaf(dict, value), {}, ""
    try:
        for name, plain, some, needed in _fields(kind):
            if name in body:
                given[name] = item if type(item := body[name]) in plain else some(item)
            elif needed:
                raise ValueError("is missing")
    except ValueError as error:
        raise ValueError(error.args[0], name, *error.args[1:]) from None
    return kind(**given)


_PLAIN = {str: (str,), bool: (bool,), str | None: (str, type(None)), bool | None: (bool, type(None))}


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, tuple[Any, ...], Callable[[Any], Any], bool], ...]:
    """Returns name, types that stay as they are, decoder and whether there is no default, of a dataclass' fields."""
    hints, none = typing.get_type_hints(kind), dataclasses.MISSING
    needed = {each.name: each.default is each.default_factory is none for each in dataclasses.fields(kind)}
    return tuple((name, _PLAIN.get(hints[name], ()), _decoder(hints[name]), needed[name]) for name in needed)


def _read(address: str, timeout: float, build: Callable[[Any], T], ask: Get | None) -> T:
    """Returns what `build` makes of the JSON at `address`; an error names the address and the field that misfits."""
    text = (ask or get)(address, timeout)
    try:
        body = json_lines.loads(text)
    except ValueError:
        raise _no_endpoint(_base(address), address, "the answer is not JSON") from None
    try:
        return build(body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        detail = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
    raise NotAnEndpointError(
        f"`{_base(address)}` answers, but not as this version of jaxobs expects (GET {address}: {detail}). "
        f"It is not a jaxobs endpoint, or it runs a different version: compare `pip show jaxobs` on both sides."
    )


def _base(address: str) -> str:
    return address.partition("/api/v1/")[0]


def get(address: str, timeout: float) -> bytes:
    """Returns what an endpoint's path answers; raises `EndpointUnreachableError` or `NotAnEndpointError`."""
    url = _base(address)
    try:
        with access.Endpoint(url).open(address, timeout=timeout) as answer:
            return _whole(answer, time.monotonic() + _SLOW * timeout)
    except SettingError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        hint = access.refused(error.code, address)
        if hint is not None:
            raise _refused(url, address, f"HTTP {error.code} {error.reason}", hint) from None
        raise _no_endpoint(url, address, f"HTTP {error.code} {error.reason}") from None
    except HTTPException as error:
        raise _no_endpoint(url, address, f"no HTTP answer, {type(error).__name__}") from None
    except (OSError, ValueError) as error:
        raise _unreachable(url, address, error, timeout) from None


def _whole(answer: Any, until: float) -> bytes:
    """The body; a server that sends a byte now and then must not hold up a person for ever."""
    pieces, size = [], 0
    while size < _MOST_BYTES and (piece := answer.read1(_PIECE)):
        pieces.append(piece)
        size += len(piece)
        if time.monotonic() > until:
            raise TimeoutError("the answer does not end")
    return b"".join(pieces)


def _no_endpoint(url: str, address: str, what: str) -> NotAnEndpointError:
    return NotAnEndpointError(
        f"`{url}` answers, but it is not a jaxobs endpoint (GET {address}: {what}). "
        f"Give the address that the program printed when it started, for example `jaxobs top 9464`."
    )


def _refused(url: str, address: str, said: str, hint: str) -> EndpointUnreachableError:
    refused = EndpointUnreachableError(
        f"The endpoint at `{url}` does not let this command in (GET {address}: {said}). {hint}."
    )
    refused.brief = said
    return refused


def _unreachable(url: str, address: str, error: Exception, timeout: float) -> EndpointUnreachableError:
    cause = getattr(error, "reason", error)
    cause = error if isinstance(cause, str) else cause  # an error of OpenSSL has a reason of its own
    untrusted = access.untrusted(cause)
    if untrusted is not None:
        return _refused(url, address, getattr(cause, "verify_message", None) or str(cause), untrusted)
    if isinstance(cause, TimeoutError):
        said = f"no answer within {timeout:g} s"
        hint = "The program may be stopped, or the host unreachable; check whether it still runs"
    elif isinstance(cause, socket.gaierror):
        said = "unknown host name"
        hint = "Check the host name"
    elif isinstance(cause, ConnectionRefusedError):
        said = "connection refused"
        hint = "Start a program with `jaxobs run SCRIPT`, or call `jaxobs.start()` in it"
    else:
        said = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        hint = "Check that the program is running and that the address is right"
    unreachable = EndpointUnreachableError(
        f"No jaxobs endpoint at `{url}` (GET {address}: {said}). {hint}; for a different port, run `jaxobs top PORT`."
    )
    unreachable.brief = said
    return unreachable
