"""Served requests, by route."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.facts.functions import Histogram

REQUEST_COLD = ("true", "false", "unknown")
"""Whether something compiled, or was loaded from the persistent cache, inside a request; unknown where jaxobs was not
installed, and so saw no compilations."""

REQUEST_OUTCOMES = ("ok", "client_error", "error", "cancelled")
"""How a request ended: status below 400, below 500, from 500 on or an exception, abandoned by the client."""

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "abort", "error", "other")
"""Why a generation ended: at a stop token or sequence, at its limit, to call a tool, filtered, given up, failed."""

TOKEN_DIRECTIONS = ("input", "output")
"""Tokens of the prompt, and those that were generated."""

ENGINE_STATES = ("running", "waiting")
"""Requests that are in the engine's batch, and those that wait to be."""


ANSWERING = ("jax", "lock", "host")
"""States of a service that answers requests: in JAX, or a device computes; at a lock, and no thread that answers a
request works; or at something else, which includes computations on the CPU that JAX's C++ code runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringLine:
    """Seconds in which a service answered requests and was at one line, by looks at its threads."""

    line: str
    """`file:line` of the user's code."""
    at: str
    """State of the service, one of `ANSWERING`."""
    seconds: float
    share: float
    """Share of the seconds in which the service answered requests, from 0 to 1."""
    held_at: str | None = None
    """`file:line` at which another thread most often worked meanwhile, which may hold the lock; None elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCompilation:
    """An executable that was compiled or loaded inside a request: a `Compilation` in short."""

    function: str
    cause: str
    reason: str
    cache: str
    seconds: float
    """All phases together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request that is reported: a cold one, or one of the slowest."""

    time: float
    """Time at which it ended."""
    seconds: float
    outcome: str
    """Outcome of the request, one of `REQUEST_OUTCOMES`."""
    cold: str
    """Cold or not, one of `REQUEST_COLD`."""
    waited: bool = False
    """As in `RouteState`."""
    queue_seconds: float | None = None
    first_token_seconds: float | None = None
    """Seconds from the start of the request to its first output token; None unless known."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """Tokens that were generated; None unless the request reported any."""
    finish_reason: str | None = None
    """Why the generation ended, one of `FINISH_REASONS`."""
    compilations: int = 0
    """Executables that were compiled or loaded in the request."""
    compiled: tuple[RequestCompilation, ...] = ()
    """The first of these compilations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long the latest requests of one sort took, in seconds; exact over so many of them."""

    count: int
    """Requests that the figures rest on."""
    p50: float
    p90: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRequests:
    """Counts of the latest requests of a route: of the last two minutes, or of ten, or of all its time."""

    seconds: float
    """Length of the shortest of these windows that holds twenty requests, or else of the longest."""
    total: int
    failed: int
    """Requests whose outcome was `error`."""


HTTP_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE", "QUERY", "_OTHER")
STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "")


@dataclass(frozen=True, slots=True)
class HttpRequests:
    """HTTP requests of a route that are alike."""

    method: str
    """Method, one of `HTTP_METHODS`."""
    scheme: str
    status: int
    """Status of the answer; 0 if there was none."""
    seconds: Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailure:
    """An exception that ended a request; the fields are those of `Error`."""

    error: str
    message: str | None
    call_site: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteState:
    """The requests of one route that have ended."""

    route: str
    recent: RecentRequests | None = None
    """None in the logs of older versions."""
    requests: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Requests by `cold`, then by outcome: `{"true": {"ok": 2}, "false": {"ok": 998}}`."""
    seconds: Mapping[str, Histogram] = field(default_factory=dict)
    """Seconds of requests by `cold`, without the time in a queue."""
    http: tuple[HttpRequests, ...] = ()
    """Requests that came through a middleware, by method, scheme and status."""
    failure: RequestFailure | None = None
    """The exception of a late request that failed; None if it raised none."""
    waited: int = 0
    """Requests that compiled nothing, but spent most of their time while something compiled elsewhere in the process,
    ended after it, and took at least twice their route's median once that is known: they waited for its program, or for
    the processor."""
    waited_seconds: float = 0.0
    per_second: float | None = None
    """Requests that ended, a second, over the last minute or the latest 512, whichever is shorter."""
    warm: Latency | None = None
    """Latency of the latest requests that neither compiled nor waited: the steady state."""
    cold: Latency | None = None
    """Latency of the latest cold requests."""
    queued: int = 0
    """Requests whose time in a queue was reported."""
    queue_seconds: float = 0.0
    queue: Histogram | None = None
    """Seconds in a queue by duration; None unless a request reported some."""
    batches: int = 0
    """Requests whose batch was reported."""
    batch_used: int = 0
    """Rows of these batches that held something."""
    batch_size: int = 0
    """Rows of these batches."""
    batch_sizes: Histogram | None = None
    """Requests by the rows of their batch that held something."""
    input_tokens: int = 0
    """Tokens of prompts, as far as requests report them; requests under way included, as in `output_tokens`."""
    output_tokens: int = 0
    output_tokens_per_second: float | None = None
    """Tokens a second of requests that ended within the time of `per_second`; None if none reported any."""
    finish_reasons: Mapping[str, int] = field(default_factory=dict)
    """Requests by `FINISH_REASONS`, of those that reported one."""
    first_token_seconds: Histogram | None = None
    """From the start to the first output token, of requests that did not fail; None unless one is known."""
    output_token_seconds: Histogram | None = None
    """For each output token after the first: one value for each request that succeeded and reported its tokens."""
    inter_token_seconds: Histogram | None = None
    """Between two reports of output tokens of one request; None unless one reported more than once."""
    request_tokens: Mapping[str, Histogram] = field(default_factory=dict)
    """Tokens of the requests that have ended, by direction (`input`, `output`), of those that reported some."""
    first_token: Latency | None = None
    """Latency to the first output token, of the latest requests that succeeded."""
    output_token: Latency | None = None
    """Seconds for each output token after the first, of the latest requests that succeeded."""
    latest_cold: tuple[RequestRecord, ...] = ()
    """The latest cold requests, with what compiled in them and why, the latest first."""
    slowest: tuple[RequestRecord, ...] = ()
    """The slowest of the latest requests that compiled nothing, the slowest first."""

    @property
    def total(self) -> int:
        """Requests in all."""
        return sum(sum(by_outcome.values()) for by_outcome in self.requests.values())

    def count(self, *, cold: str | None = None, outcome: str | None = None) -> int:
        """Requests of one sort."""
        return sum(
            number
            for each, by_outcome in self.requests.items() if cold in (None, each)
            for kind, number in by_outcome.items() if outcome in (None, kind)
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """State of an inference engine as last reported; None is what it never reported."""

    engine: str
    running: int | None = None
    """Requests in its batch."""
    waiting: int | None = None
    """Requests that wait for a place in it."""
    kv_cache_ratio: float | None = None
    """Share of its key-value cache that is in use, from 0 to 1."""
