"""The place that a call comes from: whether first calls of a function are a loop of few long ones, or evaluate.

A training loop that makes a handful of calls, seconds long each, is known by their coming from one place, at similar
intervals. What a server calls again and again, once for each request, is not a loop.
"""

import dis
import itertools
import re
from collections.abc import Iterator, Sequence
from inspect import CO_GENERATOR
from types import CodeType, FrameType

from jaxobs.internals.source_files import is_jax, is_own, is_plumbing

FEWEST_LONG = 3
"""Calls that make a loop where they are long."""
LONG_SECONDS = 2.0
"""Seconds that these calls take together at least."""
LEAST_TURN = 0.1
"""Seconds that each of these calls takes at least."""
ALIKE = 2.0
"""The longest of them takes at most so many times the shortest."""
MOST_FRAMES = 128

_SERVERS = frozenset(
    (
        "anyio", "bentoml", "bottle", "cheroot", "cherrypy", "daphne", "django", "fastapi", "flask", "gradio", "grpc",
        "gunicorn", "hypercorn", "litserve", "sanic", "socketserver", "starlette", "uvicorn", "waitress",
        "werkzeug", "wsgiref",
    )
)  # fmt: skip
_SERVER_MODULES = (
    "aiohttp.web", "http.server", "ray.serve", "tornado.web", "jaxobs.instruments.asgi", "jaxobs.instruments.wsgi",
)  # fmt: skip
_EVALUATES = re.compile(r"(^|_)(evals?|evaluate|evaluation|evaluator|val|valid|validate|validation|test)(_|$)")
_PREDICTS = re.compile(r"(^|_)(predict|predicts|prediction|predictions|accuracy)(_|$)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Line = tuple[CodeType, int]
Place = tuple[Line, ...]


class FirstCalls:
    """The first calls of a function on the charged thread: when, and where from."""

    __slots__ = ("_place", "times")

    def __init__(self, compiled: Sequence[float] = ()) -> None:
        """`compiled` is when the last call that compiled it was handed to the device, by `perf_counter`, if one did."""
        self.times = list(compiled)
        self._place: Place | None = None

    def add(self, now: float, caller: FrameType) -> bool:
        """Takes in a call; whether these are a loop of few long calls now."""
        times = self.times
        if not times or now - times[-1] < LEAST_TURN:
            times.append(now)
            self._place = None
            return False
        here = place(caller)
        if self._place is None:
            del times[:-1]  # what was called before, somewhere else perhaps, or compiled just now
        elif not same(here, self._place):
            times.clear()
        self._place = here
        times.append(now)
        if len(times) < FEWEST_LONG or now - times[0] < LONG_SECONDS:
            return False
        turns = [end - begin for begin, end in itertools.pairwise(times)]
        if max(turns) > ALIKE * min(turns):
            del times[0]
            return False
        return True


def place(frame: FrameType) -> Place:
    """The lines of the whole stack, by the code itself: its number would come back. No frame is kept."""
    return tuple((each.f_code, each.f_lasti) for each in frames(frame))


def frames(innermost: FrameType | None, most: int = MOST_FRAMES) -> Iterator[FrameType]:
    """Goes through the frames of a stack, outwards; at most so many."""
    while innermost is not None and most:
        yield innermost
        innermost, most = innermost.f_back, most - 1


def same(one: Place, other: Place) -> bool:
    """Returns whether two places are the same lines of the same code."""
    return len(one) == len(other) and all(map(same_line, one, other))


def same_line(one: Line, other: Line) -> bool:
    """Returns whether two lines are the same instruction of the same code."""
    # A cell of a notebook that is run once more has code that is equal, and is another.
    return one[0] is other[0] and (one[1] == other[1] or instruction(*one) == instruction(*other))


def instruction(code: CodeType, at: int) -> int:
    """Returns the offset of the instruction: from Python 3.12 on, a frame under a generator's may point into it."""
    bytecode = code.co_code
    while 2 <= at < len(bytecode) and dis.opname[bytecode[at]] == "CACHE":
        at -= 2
    return at


def outside(frame: FrameType) -> FrameType:
    """Returns the innermost frame outside of JAX and of ourselves."""
    files = ((each, each.f_code.co_filename) for each in frames(frame))
    return next((each for each, file in files if not (is_jax(file) or is_own(file))), frame)


def is_served(frame: FrameType) -> bool:
    """Whether a frame is in a server, as the call of a handler is."""
    return any(map(_is_servers, frames(frame)))


def answers(frame: FrameType) -> bool:
    """Whether a thread answers a request: a server has called the user's code, and it has not returned."""
    inner = itertools.takewhile(lambda each: not _is_servers(each), frames(frame))
    files = [each.f_code.co_filename for each in inner]
    return not all(is_plumbing(file) or is_jax(file) for file in files) and is_served(frame)


def _is_servers(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and (name.partition(".")[0] in _SERVERS or name.startswith(_SERVER_MODULES))


def is_generated(frame: FrameType) -> bool:
    """Whether the call is made in a generator: it makes what something else goes over."""
    return any(each.f_code.co_flags & CO_GENERATOR for each in frames(frame))


def evaluates(name: str, *, training: bool = False) -> bool:
    """Whether a function's name says that it evaluates, in a program of which it is known that it trains.

    One that predicts evaluates what was trained; in a program that does not train, predictions are its work.
    """
    own = name.removesuffix(".__call__").rpartition(".")[2]
    words = _CAMEL.sub("_", own).lower()
    return _EVALUATES.search(words) is not None or (training and _PREDICTS.search(words) is not None)
