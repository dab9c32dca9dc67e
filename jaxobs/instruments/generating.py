"""Reports of a request on the text that it generates: first token, tokens, reason of the end; from any thread."""

import os
import time
from typing import Any

from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.facts.requests import FINISH_REASONS
from jaxobs.state.generations import Generation
from jaxobs.state.routes import Routes
from jaxobs.state.store import Store

MOST_TOKENS = 1 << 40
"""In one call: more are a mistake."""

_SAME = {
    "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop", "completed": "stop",
    "max_tokens": "length", "max_length": "length", "max_new_tokens": "length",
    "tool_use": "tool_calls", "tool_call": "tool_calls", "function_call": "tool_calls",
    "safety": "content_filter", "cancelled": "abort", "canceled": "abort", "aborted": "abort",
}  # fmt: skip
"""Names of the reasons in other systems."""

# Reentrant: a signal handler of the program may report while this thread is in here.
_lock = threads.RLock()


def _after_fork() -> None:
    """In a child, in which no other thread is left to release the lock."""
    global _lock
    _lock = threads.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Generating:
    """A request as far as it generates text. Before it begins and after it has ended, it takes nothing."""

    __slots__ = ("_generation", "queue_seconds")

    queue_seconds: float | None
    route: str
    _open: bool
    _generation: Generation | None
    _routes: Routes
    _store: Store

    def first_token(self) -> None:
        """The first output token is there now; once is enough, later calls change nothing."""
        if self._open:
            now = time.perf_counter()
            with guarded("request"):
                generation = self._generation or self._generates()
                if generation.first_token is None:
                    generation.first_token = now

    def tokens(self, *, input: int = 0, output: int = 0) -> None:
        """Counts tokens of the prompt and generated tokens, in addition to those counted before.

        Call it once, or for each token: then the rate is that of the moment, and the time between two calls is known.
        """
        if self._open:
            with guarded("request"):
                taken, put = self._number("input", input), self._number("output", output)
                if taken or put:
                    since = None
                    with _lock:
                        generation = self._generation or self._generates()
                        if not generation.settled:
                            generation.settled, route = True, self._route_so_far()
                            generation.counts = None if route is None else self._routes.route(route).generations
                        generation.input += taken
                        generation.output += put
                        if put:
                            now = time.perf_counter()
                            since = None if generation.latest is None else now - generation.latest
                            generation.latest = now
                    if generation.counts is not None:
                        generation.counts.count(taken, put, since)

    def queued(self, seconds: float) -> None:
        """How long it waited in a queue, as `queue_seconds` says it."""
        if self._open:
            self.queue_seconds = seconds

    def finish_reason(self, reason: str) -> None:
        """Why the generation ended: `stop`, `length`, `tool_calls`, `content_filter`, `abort` or `error`.

        What other libraries call the same (`eos`, `max_tokens`, ...) counts as it; anything else is `other`.
        """
        if self._open:
            with guarded("request"):
                name = str(getattr(reason, "value", reason)).strip().lower()
                name = _SAME.get(name, name)
                generation = self._generation or self._generates()
                generation.reason = name if name in FINISH_REASONS else "other"

    def first_part(self, at: float | None) -> None:
        """The first part of a streamed answer was sent then, by `time.perf_counter`; None if that is not yet known."""
        if self._open and at is not None:
            (self._generation or self._generates()).first_part = at

    def _generates(self) -> Generation:
        with _lock:
            if self._generation is None:
                self._generation = Generation()
            return self._generation

    def _route_so_far(self) -> str | None:
        """Returns the request's route, if that is known before it ends."""
        return self.route

    def _number(self, name: str, value: Any) -> int:
        """Tokens as a number; 0, and a note, for what is not one."""
        if value is None:
            return 0
        try:
            number = int(value)
            if number == value and 0 <= number <= MOST_TOKENS:
                return number
        except Exception:  # whatever the program's own type raises
            pass
        with guarded("request"):
            self._store.note(
                f"A request of `{self.route!s:.80}` reports {name}={value!r:.40} tokens; valid are whole numbers."
            )
        return 0
