"""Loops: the slow tick works out what the steps' marks say, and reports them as events."""

import dataclasses
import math
import statistics
import time
from time import perf_counter

from jaxobs.facts.compilations import Compilation
from jaxobs.facts.steps import Step
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.loops.step_calls import StepCalls
from jaxobs.sources.support.source import Source
from jaxobs.state.loops import Loop, Loops, SlowStep

MOST_NAMED = 3
MOST_FUNCTIONS = 8
STANDING_SECONDS = 60.0
"""Between two tellings of how the whole process is."""


class LoopsSource(Source):
    """The source: one `step` event for each loop and sample interval, and one for each slow step."""

    _costs = False

    def _begin(self) -> None:
        self._stood = -math.inf
        self._step_calls = StepCalls(self._store)

    def start(self) -> None:
        """On a CPU the cost of a program is read only where it took long to compile: with a peak, all are wanted."""
        if self._store.settings.peak_flops is not None and not self._costs:
            self._store.costs_wanted += 1
            self._costs = True
        self._store.step_calls = self._step_calls.calls

    def stop(self) -> None:
        """Wants no costs any more, and sees no calls."""
        self._store.step_calls = self._store.calls
        self._step_calls.rest()
        if self._costs:
            self._store.costs_wanted -= 1
            self._costs = False

    def after_fork(self) -> None:
        """In a forked child, whose calls are its own."""
        self._step_calls.rest()
        super().after_fork()
        self._store.step_calls = self._step_calls.calls

    def sample(self) -> None:
        """Takes in the calls of functions, or, where the program reports its loops, says what they did."""
        self._step_calls.grant()
        self._tell(self._store.settings.sample_interval)
        if not any(loop.looks > 0 for loop in self._store.part(Loops).all()):
            self._step_calls.rest()

    def ending(self) -> None:
        """Reports the last steps."""
        self._tell(0.0)

    def _tell(self, least: float) -> None:
        loops = self._store.part(Loops)
        if not loops.any:
            self._store.part(FoundLoops).count(self._store.calls())
            return
        self._store.part(FoundLoops).forget()
        if loops.dropped:
            dropped, loops.dropped = loops.dropped, 0
            self._store.drop("loops", dropped)
        for loop in loops.all():
            for slow in loop.slow_steps():
                self._store.record(self._slow(slow))
            if (event := self._together(loop, least)) is not None:
                self._store.record(self._with_standing(event))

    def _with_standing(self, event: Step) -> Step:
        """The event as it is, or, once a minute and if it is logged, with how the process is."""
        now = time.monotonic()
        if self._store.settings.event_log is None or now - self._stood < STANDING_SECONDS:
            return event
        self._stood = now
        return dataclasses.replace(event, standing=self._store.standing())

    def _together(self, loop: Loop, least: float) -> Step | None:
        if (found := loop.stretch(least)) is None:
            return None
        stretch, last = found
        return Step(
            time=time.time(), loop=loop.name, count=len(stretch.seconds), last=last, seconds=sum(stretch.seconds),
            least_seconds=min(stretch.seconds), most_seconds=max(stretch.seconds),
            median_seconds=statistics.median(stretch.seconds), items=stretch.items,
            compilations=len(self._compilations(stretch.began, perf_counter())),
        )  # fmt: skip

    def _slow(self, slow: SlowStep) -> Step:
        compilations = sorted(self._compilations(slow.began, slow.ended), key=lambda each: -sum(each.phases.values()))
        return Step(
            time=time.time() - (perf_counter() - slow.ended), loop=slow.loop, count=1, last=slow.number,
            seconds=slow.seconds, least_seconds=slow.seconds, most_seconds=slow.seconds, median_seconds=slow.seconds,
            compilations=len(compilations),
            functions=tuple(dict.fromkeys(each.function for each in compilations))[:MOST_FUNCTIONS], slow=True,
            typical_seconds=slow.usual, outside_seconds=max(0.0, slow.entered - slow.began),
            reason=_reason(slow, compilations),
        )  # fmt: skip

    def _compilations(self, began: float, ended: float) -> list[Compilation]:
        """Returns the compilations that ended between two times by `perf_counter`."""
        to_clock = time.time() - perf_counter()
        found, _, _ = self._store.events(kind="compilation")
        return [
            each
            for each in found
            if isinstance(each, Compilation) and began + to_clock <= each.time <= ended + to_clock
        ]


def _reason(slow: SlowStep, compilations: list[Compilation]) -> str:
    told = [f"It took {slow.seconds:.3g} s instead of the typical {slow.usual:.3g} s."]
    outside = slow.entered - slow.began
    if outside > slow.seconds / 2 and slow.seconds <= slow.ended - slow.began:
        told.append(f"{outside:.3g} s of it passed before its scope: waiting for input, or work between two steps.")
    for each in compilations[:MOST_NAMED]:
        told.append(f"`{each.function}` compiled in {sum(each.phases.values()):.3g} s ({each.cause}).")
    if len(compilations) > MOST_NAMED:
        told.append(f"{len(compilations) - MOST_NAMED} more compiled.")
    return " ".join(told)


source = LoopsSource
