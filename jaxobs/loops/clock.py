"""The clock: a thread that looks at the program's thread some ten times a second, and says what its seconds are.

A second of a loop is `step` (or `eval`) if a device computed in it or the host was dispatching to one. What is left is
`input_wait` where the loop waits for the next element or for anything else outside of Python, `transfer` where it reads
arrays that have been computed, and `idle` where Python runs, also where a compiled program calls it back, or where JAX
dispatches operations outside of all loops. Nothing of this is charged on the program's thread: a look reads the stack,
and draws the seconds since the look before from those in no scope (see `jaxobs.state.rest`). What the looks saw before
a loop was known is kept, and counted once it is.
"""

import random
import time
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from operator import itemgetter
from time import perf_counter
from typing import Protocol

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.arrivals import arrived
from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import EAGER
from jaxobs.facts.loops import HostLine, HostWait
from jaxobs.loops.answering import MOST_THREADS as MOST_ANSWERING
from jaxobs.loops.answering import Answering
from jaxobs.loops.early_looks import EarlyLooks
from jaxobs.loops.intervals import pause
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.positions import IN_CALL, IN_INPUT, IN_LIBRARY, IN_LOOP, shared
from jaxobs.loops.running import MOST_THREADS, Running
from jaxobs.loops.seen import Seen
from jaxobs.loops.spots import Glance, InJax, Look, Spot, Spots, awaited, calls_back, outermost
from jaxobs.state.wall import Wall

QUIET_SECONDS = 10.0
"""After so long without a call, a program is quiet."""
MOST_STEPPED = 4096
"""Looks at steps that are kept."""
ASK_PAUSE, MOST_ARRAYS = 300.0, 64
"""JAX is not asked for its newest arrays again for so many times what the last answer cost; how many are asked."""
USUAL = 1.5
"""A step continues as usual for so many times the median."""
COMPUTED_LOOKS = 8
"""Looks from one question to the next whether the devices have computed for long."""
FEWEST_LOOKS, MOST_LINES, MOST_EVALUATIONS = 20, 512, 8
MOST_SHOWN, LEAST_SHOWN, LEAST_COMPILED, LEAST_SECONDS = 12, 0.005, 0.02, 10.0
"""Lines of a snapshot, shares of the time that each has at least, and the seconds of a category's first line."""


class Calls(Protocol):
    """The calls that were seen."""

    _wall: Wall | None
    serves: bool
    functions: dict[str, Seen]
    latest: Seen | None
    threads: set[int]

    def alone(self, called: Seen | None, at: tuple[int, int]) -> None:
        """See `SeenCalls.alone`."""


class Clock:
    """The thread that looks; it ends with `stop`, and does not keep the process alive."""

    def __init__(self, calls: Calls, outputs: LoopOutputs) -> None:
        self._calls = calls
        self._outputs = outputs
        self._spots = Spots()
        self._lock = threads.RLock()
        self._early = EarlyLooks()
        self.answering = Answering()
        self._loops: Sequence[Seen] = ()
        self._median = 0.0
        self._made = 0
        """Looks so far."""
        self._ask_again, self._any_computes = 0.0, False
        self._running = Running()
        self.lines: dict[tuple[str, str], float] = {}
        """Seconds by line and category, ..."""
        self._met: dict[tuple[str, str], tuple[float, int]] = {}
        self._ran: dict[tuple[str, str], float] = {}
        """... and the last call before the latest look there, with the number of calls that looks came after."""
        self._backs: set[str] = set()
        """Lines that compiled programs had run."""
        self._in_jax: dict[str, InJax] = {}
        self._differences: defaultdict[str, float] = defaultdict(float)
        """Seconds of finite differences, by the line that has SciPy take them."""
        self._looks: Counter[str] = Counter()
        self._works: Counter[str] = Counter()
        """Looks at dispatching to a CPU, which may compute what it is given at once."""
        self._reads: dict[str, Counter[str]] = {}
        self._stepped: deque[tuple[float, float]] = deque([(0.0, 0.0)], MOST_STEPPED)
        """Moments of looks while devices computed steps, and the seconds of all these looks until then."""
        if calls._wall is not None:
            calls._wall.rest.saw(None)  # what was before is in no look
        self._stopped = threads.Event()
        self._thread = threads.Thread(target=self._run, name="jaxobs-clock")
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, which must not hold anything of the program when the interpreter ends."""
        self._stopped.set()
        self._outputs.wake()
        threads.join(self._thread)
        if (wall := self._calls._wall) is not None:
            wall.rest.saw("idle" if self._loops else None)

    def found(self, loops: Sequence[Seen], median: float) -> None:
        """The charged thread makes the turns of these loops, the first of them being the one that does most.

        Args:
          median: seconds of a turn.
        """
        with self._lock:
            new = not self._loops
            if new:
                self.look()
            self._loops, self._median = loops, median
            wall = self._calls._wall
            if not new or not loops or wall is None:
                return
            began = min(loop.began for loop in loops)
            found = [(self._category(each), each) for each in self._early.since(wall.thread or 0, began)]
            part = wall.loop_found([(category, look.seconds) for category, look in found])
            for category, look in found:
                look.seconds *= part
                self._note(wall, look, category)

    # ------------------------------------------------------------------------------------- looking

    def _run(self) -> None:
        while not self._stopped.is_set():
            until = perf_counter() + self._pause()
            with guarded("clock.outputs"):
                self._outputs.settle_until(until)
            with guarded("clock"):
                glance = self._running.interrupt(perf_counter() - until, self._stopped, self._glance)
                if not self._stopped.is_set():
                    self.look(glance)

    def _pause(self) -> float:
        latest = self._calls.latest
        quiet = latest is not None and perf_counter() - latest.latest > QUIET_SECONDS
        return pause(self._made, quiet=quiet, serves=self._serves())

    def _serves(self) -> bool:
        return self._calls.serves and not self._loops

    def _glance(self) -> Glance | None:
        """Returns the threads as they are at once; None if there is no charged thread, or it is in a scope.

        Whatever releases Python's lock in between lets the threads run on, to where they release the lock themselves.
        """
        wall = self._calls._wall
        if wall is None or wall.thread is None or not wall.at_rest:
            return None  # seconds at rest before the scope count with the next look
        watched = (wall.thread, *([] if self._loops else [*self._calls.threads][: MOST_THREADS - 1]))
        with threads.current_frames() as frames:
            spots = {each: self._spots.of(frames[each]) for each in watched if each in frames}
            awaits = {each for each in spots if not arrived(awaited(frames[each]))}
            stacks = frames.values() if self._loops else ()
            back = next((self._spots.of(each) for each in stacks if calls_back(outermost(each).f_code)), None)
            del stacks
            others = [each for each in frames if each not in spots] if self._serves() else []
            some = random.sample(others, min(len(others), MOST_ANSWERING))
            seen = [*spots.values(), *(self._spots.of(frames[each]) for each in some)]
        return Glance(spots, awaits, back if back is not None and back.line else None, self._computing(), seen)

    def look(self, glance: Glance | None = None) -> None:
        """Looks once, unless what was seen is given."""
        glance = glance or self._glance()
        with self._lock:
            wall = self._calls._wall
            if wall is None or glance is None or wall.thread is None or wall.thread not in glance.spots:
                return
            self._made += 1
            if self._loops:
                look = self._look(wall.thread, glance)
                if (look.computes or self._called(look.spot)) and not look.spot.called_back:
                    look.spot = glance.called_back or look.spot
                category = self._category(look)
                look.seconds = wall.rest.saw(category)
                self._note(wall, look, category)
            else:
                seconds = wall.rest.saw(None)
                for thread in (wall.thread, *[*self._calls.threads][: MOST_THREADS - 1]):
                    if thread in glance.spots:
                        look = self._look(thread, glance)
                        look.seconds = seconds
                        self._early.add(thread, look)
                    else:
                        self._calls.threads.discard(thread)
                if self._made % COMPUTED_LOOKS == 0 and (spot := self._early.computed_long(wall.thread)):
                    self._calls.alone(self._called(spot), spot.at)
                self.answering.saw(glance.others, perf_counter(), lambda: self._computes_any(glance.others))

    def _look(self, thread: int, glance: Glance) -> Look:
        spot, latest = glance.spots[thread], self._calls.latest
        called = 0.0 if latest is None else latest.latest
        computes = bool(glance.computing) or thread in glance.awaits or spot.waits
        runs = spot.runs or self._running.runs(thread, probe=not (computes or spot.in_jax))
        # A read of an array on the CPU has no frame, and the output of the last call is known of some calls only.
        blind = not (computes or runs or spot.in_jax or self._calls.threads - {thread})
        computes = computes or (blind and self._anything_computes())
        return Look(perf_counter(), 0.0, spot, computes, runs, latest, called, glance.computing)

    def _computing(self) -> list[Seen]:
        """Returns the functions whose latest call is computed, as far as it was on the charged thread."""
        found = []
        for function in list(self._calls.functions.values()):
            reference = function.output
            array = None if reference is None else reference()
            if array is not None and not arrived(array):
                found.append(function)
            elif function.output is reference:
                function.output = None
        return found

    def _computes_any(self, spots: Sequence[Spot]) -> bool:
        return any(map(self._called, spots)) or self._anything_computes()

    def _anything_computes(self) -> bool:
        """Returns whether a device computes an array of any call, as of lately."""
        if perf_counter() > self._ask_again:
            began = time.thread_time()
            self._any_computes = bool(internals.computing(MOST_ARRAYS))
            self._ask_again = perf_counter() + ASK_PAUSE * (time.thread_time() - began)
        return self._any_computes

    # ------------------------------------------------------------------------------------- what it means

    def _category(self, look: Look) -> str:
        """Returns the category of a look's seconds; data that is saved holds the program up as a checkpoint does."""
        category = "idle" if look.spot.called_back else self._work(look)
        saves = any(each.place is not None and look.spot.is_saving(each.place) for each in self._loops[:1])
        return "checkpoint" if saves and category in ("idle", "input_wait", "transfer") else category

    def _work(self, look: Look) -> str:
        spot = look.spot
        functions, called = list(self._calls.functions.values()), self._called(spot)
        evaluations = [each for each in functions if each.category == "eval"][-MOST_EVALUATIONS:]
        of = (evaluations and self._nearest(spot, [*evaluations, *filter(None, [called])])) or called or look.latest
        work = "eval" if of is not None and of.category == "eval" else "step"
        at = self._position(spot, (*self._loops, *evaluations))
        if look.steps and (spot.reads or (at == IN_LOOP and not (look.runs or spot.in_jax))):
            return "step"
        if look.computes or called is not None:
            return work
        if at == IN_INPUT:
            return "input_wait"
        line = self._in_jax.get(spot.line, InJax())
        if (spot.reads and not line.is_waiting) or (spot.in_jax and line.is_reading):
            return "transfer"
        dispatches = self._loops[0].name == EAGER or line.dispatched["step"] > self.lines.get((spot.line, "idle"), 0.0)
        dispatches = dispatches and spot.line in self._in_jax  # its Python is between operations
        if spot.reads or at == IN_CALL or dispatches or (spot.in_jax and at is not None):
            return work
        if at is None or (at == IN_LOOP and look.runs):
            return "idle"
        return work if look.runs else "input_wait"

    def _called(self, spot: Spot) -> Seen | None:
        """Returns the function at whose call a thread is."""
        return next((each for each in list(self._calls.functions.values()) if spot.at in each.places), None)

    def _nearest(self, spot: Spot, others: Sequence[Seen]) -> Seen | None:
        """Returns the loop, or other function, whose calls share most of a stack's frames; None if several kinds do."""
        found = {each: shared(spot.place, each.place or ()) for each in (*self._loops, *others)}
        most = [each for each, frames in found.items() if frames == max(found.values())]
        return most[0] if len({each.category for each in most}) == 1 else None

    def _position(self, spot: Spot, functions: Sequence[Seen]) -> str | None:
        found = {spot.position(each.place) for each in functions if each.place is not None}
        return next((each for each in (IN_INPUT, IN_CALL, IN_LIBRARY, IN_LOOP) if each in found), None)

    def _note(self, wall: Wall, look: Look, category: str) -> None:
        spot = look.spot
        self._add(spot.line, category, look.seconds)
        called, met = self._met.get((spot.line, category), (0.0, 0))
        if look.called != called and (spot.line, category) in self.lines:
            self._met[spot.line, category] = look.called, met + 1
        if look.runs and (spot.line, category) in self.lines:
            self._ran[spot.line, category] = self._ran.get((spot.line, category), 0.0) + look.seconds
        if spot.called_back and len(self._backs) < MOST_LINES:
            self._backs.add(spot.line)
        if spot.differences:
            self._differences[spot.differences] += look.seconds
        if category == "eval":
            wall.evaluated(sum(each.made for each in list(self._calls.functions.values()) if each.category == "step"))
        if category == "step" and look.steps:
            self._stepped.append((look.when, self._stepped[-1][1] + look.seconds))
        if spot.in_jax or spot.reads:
            self._note_reading(wall, look, category)
        if look.when - look.called < USUAL * self._median:
            name = self._loops[0].name
            self._looks[name] += 1
            self._works[name] += category == "step" and not spot.reads and internals.default_platform() == "cpu"
            if spot.reads:
                self._reads.setdefault(name, Counter())[spot.line] += 1

    def _note_reading(self, wall: Wall, look: Look, category: str) -> None:
        """Counts as reading, afterwards too, the operations that a line dispatches to read their results at once."""
        spot = look.spot
        line = self._in_jax.get(spot.line)
        if line is None:
            if len(self._in_jax) >= MOST_LINES:
                return
            line = self._in_jax[spot.line] = InJax()
        line.looks += 1
        line.waits += spot.reads and look.computes
        line.reads += spot.reads and not look.computes
        jitted = (called := self._called(spot)) is not None and called.name != EAGER
        if category in ("step", "idle") and not (look.computes or spot.sends or jitted):
            line.dispatched[category] += look.seconds
        if line.is_reading:
            for was, seconds in line.dispatched.items():
                wall.rest.correct(was, "transfer", seconds)
                self._add(spot.line, was, -seconds)
                self._add(spot.line, "transfer", seconds)
            line.dispatched.clear()

    def _add(self, line: str, category: str, seconds: float) -> None:
        key = (line, category)
        if key in self.lines or len(self.lines) < MOST_LINES:
            self.lines[key] = self.lines.get(key, 0.0) + seconds

    def host_lines(self, loop: str) -> tuple[HostLine, ...]:
        """Returns the lines at which the thread spent or compiled most, given the name of the loop that does most."""
        total, wall = self._since_first_step(loop), self._calls._wall
        if not total or wall is None:
            return ()
        compiled = {key: seconds for key, seconds in wall.compiled.copy().items() if seconds > LEAST_COMPILED * total}
        spent = (each for each in (self.lines | compiled).items() if each[0][0])
        lines = sorted(spent, key=itemgetter(1), reverse=True)
        shown = [each for each in lines if each[1] > LEAST_SHOWN * total][:MOST_SHOWN]
        paces, locks = self._spots.pausing(self._loops[0].places.values()), self._spots.locking()
        firsts = {each[0][1]: each for each in reversed(lines)}.values()
        shown += [each for each in firsts if each[1] > LEAST_SECONDS and each not in shown]  # no large part after days
        return tuple(
            HostLine(line=line, category=category, seconds=seconds, share=seconds / total, paces=line in paces,
                     keeps_pace=paces.get(line, False), locks=line in locks,
                     called_back=category == "idle" and line in self._backs,
                     runs=self._ran.get((line, category), 0.0) > seconds / 2,
                     steps=self._met.get((line, category), (0.0, 0))[1])
            for (line, category), seconds in shown
        )  # fmt: skip

    def dispatching(self, loop: str) -> HostLine | None:
        """Returns the seconds of dispatching that counted as steps, at the line with most; None if there were none."""
        return self._spent(loop, {line: each.dispatched.get("step", 0.0) for line, each in self._in_jax.copy().items()})

    def differences(self, loop: str) -> HostLine | None:
        """Returns the seconds in which SciPy took finite differences, at the line that had most of them taken."""
        return self._spent(loop, self._differences.copy())

    def _spent(self, loop: str, spent: Mapping[str, float]) -> HostLine | None:
        if not (total := self._since_first_step(loop)) or not (seconds := sum(spent.values())):
            return None
        return HostLine(line=self._spots.line_with_most(spent), category="step", seconds=seconds, share=seconds / total)

    def _since_first_step(self, loop: str) -> float:
        """Returns the seconds since the first step of the loop that does most, given its name; 0 if it is another."""
        wall = self._calls._wall
        if wall is None or loop not in [each.name for each in self._loops[:1]]:
            return 0.0
        spent = wall.seconds()
        return max(sum(spent.values()) - spent["init"], 1e-9)

    def stepped(self, loop: Seen, began: float, ended: float) -> float:
        """Returns the seconds between two moments for which looks saw devices compute steps of a loop.

        Returns 0 if the looks were few, or other loops make steps, too.
        """
        looks = list(self._stepped)

        def until(when: float) -> tuple[int, float]:
            position = bisect_left(looks, (when,))
            after, seconds = looks[min(position, len(looks) - 1)]
            return position, max(looks[position - 1][1], seconds - max(0.0, after - when))

        (first, before), (last, seconds) = until(began), until(ended)
        alone = [each for each in self._loops if each.category == "step"] == [loop]
        return seconds - before if alone and 0 < first < last - FEWEST_LOOKS else 0.0

    def host_wait(self, loop: str) -> HostWait | None:
        """Returns the waits of a loop's host for arrays; None if there were too few looks."""
        looks = self._looks[loop]
        if looks < FEWEST_LOOKS or not (lines := self._reads.get(loop)):
            return None
        share = lines.total() / looks
        idle = 1 - share - self._works[loop] / looks
        return HostWait(share=share, idle_share=min(share, idle), looks=looks, where=lines.most_common(1)[0][0])
