"""The tokens that the requests of one route generate: counted while they run, timed when they have ended."""

from collections import Counter

from jaxobs.base import threads
from jaxobs.facts.functions import Histogram
from jaxobs.metrics.buckets import FIRST_TOKEN_BOUNDS, OUTPUT_TOKEN_BOUNDS, TOKEN_BOUNDS
from jaxobs.state.call_stats import MutableHistogram


class Generation:
    """Tokens and times that one request reports: changed under a lock while open, and left alone once it has ended."""

    __slots__ = ("counts", "first_part", "first_token", "input", "latest", "output", "reason", "settled")

    def __init__(self) -> None:
        self.first_token: float | None = None
        """By `time.perf_counter`, as is the next."""
        self.first_part: float | None = None
        """The moment the first part of a streamed answer was sent: the first token, unless the program knows better."""
        self.latest: float | None = None
        """The moment of the latest report of output tokens."""
        self.input = self.output = 0
        self.reason: str | None = None
        """A name from `facts.requests.FINISH_REASONS`."""
        self.counts: Generations | None = None
        """Counters of the route that count the tokens at once; None if the route is known at the end only."""
        self.settled = False
        """Whether `counts` has been looked up."""

    def until_first_token(self, began: float) -> float | None:
        """Seconds, for a request that began then; None if it is not known."""
        first = self.first_part if self.first_token is None else self.first_token
        return None if first is None else max(0.0, first - began)

    def for_each_token(self, began: float, ended: float) -> float | None:
        """Seconds for each output token after the first; None where there is none."""
        first = self.until_first_token(began)
        return None if first is None or self.output < 2 else max(0.0, ended - began - first) / (self.output - 1)


class Generations:
    """The tokens of one route. `count` may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self.input = self.output = 0
        self.finish_reasons: Counter[str] = Counter()
        self._first_token = MutableHistogram(FIRST_TOKEN_BOUNDS)
        self._output_token = MutableHistogram(OUTPUT_TOKEN_BOUNDS)
        self._between = MutableHistogram(OUTPUT_TOKEN_BOUNDS)
        self._tokens = {"input": MutableHistogram(TOKEN_BOUNDS), "output": MutableHistogram(TOKEN_BOUNDS)}

    def count(self, input: int, output: int, since: float | None = None) -> None:
        """Tokens that a request has taken in or put out, so many seconds after the output tokens before."""
        with self._lock:
            self.input += input
            self.output += output
            if since is not None:
                self._between.observe(since)

    def ended(self, began: float, ended: float, outcome: str, generation: Generation) -> None:
        """A request has ended. How fast one failed says nothing; one that was given up may have got its first token."""
        if generation.counts is None:
            self.count(generation.input, generation.output)
        with self._lock:
            for direction, tokens in (("input", generation.input), ("output", generation.output)):
                if tokens:
                    self._tokens[direction].observe(tokens)
        if generation.reason is not None:
            self.finish_reasons[generation.reason] += 1
        first, each = generation.until_first_token(began), generation.for_each_token(began, ended)
        if first is not None and outcome in ("ok", "cancelled"):
            self._first_token.observe(first)
        if each is not None and outcome == "ok":
            self._output_token.observe(each)

    def histograms(self) -> tuple[Histogram | None, ...]:
        """Times to the first token, for each one after it, and between two reports; None where there are none."""
        with self._lock:
            found = [each.frozen() for each in (self._first_token, self._output_token, self._between)]
        return tuple(each if any(each.counts) else None for each in found)

    def request_tokens(self) -> dict[str, Histogram]:
        """Tokens of the requests that have ended, by direction; without one that none reported."""
        with self._lock:
            found = {direction: each.frozen() for direction, each in self._tokens.items()}
        return {direction: each for direction, each in found.items() if any(each.counts)}
