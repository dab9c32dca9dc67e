"""Loops that are found in a program that reports none: the slow tick takes in the calls that were seen."""

import statistics
import threading
from time import perf_counter

from jaxobs.base import threads
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.internals import post_hook
from jaxobs.loops.call_names import EAGER_LOOPS
from jaxobs.loops.call_places import frames, is_served
from jaxobs.loops.found_loops import CHARGED, FoundLoops, Going, Total
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.positions import is_task
from jaxobs.loops.seen import Seen
from jaxobs.loops.seen_calls import FEWEST_CALLS, SeenCalls
from jaxobs.sources.support.source import Subscriber
from jaxobs.state.call_stats import label
from jaxobs.state.loops import Loops
from jaxobs.state.utilization import ProgramFlops
from jaxobs.state.wall import Wall
from jaxobs.state.watched import Watched

_WAITING_FRAMES = 4


class FoundLoopsSource(Subscriber):
    """The source: calls of `jax.jit` functions in, where the setting `find_loops` wants that."""

    rank = -1  # before the samples of memory, whose growth is compared with the calls until then

    _can = _watching = False

    def _begin(self) -> None:
        self._calls = SeenCalls(self._store.name_of, self._store.part(LoopOutputs))

    def start(self) -> None:
        """Begins to see calls, if JAX lets us and the setting wants it."""
        self._can = post_hook.can_hook()
        super().start()
        self.sample()

    def stop(self) -> None:
        """Sees no calls any more."""
        super().stop()
        self._rest()

    def _rest(self) -> None:
        if self._watching:
            self._calls.stop()
            self._calls.forget()
            self._watching = False

    def after_fork(self) -> None:
        """In a forked child: its calls are its own."""
        if self._watching:
            self._calls.after_fork()
            self._watching = False

    def sample(self) -> None:
        """Takes in what was seen; grants more."""
        wanted = self._can and self._store.settings.find_loops and not self._store.part(Loops).any
        if not wanted:
            self._rest()
            return
        if self._watching:
            self._take_in(self._calls.fold())
            self._look()
            self._see_answers()
        self._watching = True
        self._calls.watch(self._store.part(Wall))

    def concluding(self) -> None:
        """The program has ended: reports what arrived, and releases the rest (see `Devices.concluding`)."""
        self._look()
        self._store.part(LoopOutputs).forget()
        if self._watching:
            self._calls.adopt()
            self._see_answers()
            self._calls.stop()

    def _look(self) -> None:
        """Reports what turned NaN, unless the program watches its values itself."""
        found = self._store.part(LoopOutputs).look()
        if not self._store.part(Watched).frozen():
            for event in found:
                self._store.record(event)

    def _see_answers(self) -> None:
        if self._calls.clock is not None:
            self._store.part(Wall).answering = self._calls.clock.answering.lines()

    def _on_event(self, event: Event) -> None:
        """On the thread that compiled, also between two bursts: what it traced may have taken it out of our sight."""
        if self._watching and isinstance(event, Compilation):
            post_hook.repair()
            name = label(event.function) if not event.eager else EAGER_LOOPS.get(event.function)
            if name is not None and event.transform is None:
                alike = event.cause in ("new_function", "static_argument")
                self._calls.compiled(name, perf_counter(), alike=alike)

    def _take_in(self, functions: list[Seen]) -> None:
        programs, counted = self._store.part(ProgramFlops), self._store.calls()
        whole_since = self._calls.whole_since
        functions = self._without_answers(functions)
        totals = {}
        tasks = any(each.folded >= FEWEST_CALLS and is_task(each.place or ()) for each in functions)
        wall = self._store.part(Wall)
        wall.serves = wall.serves or self._calls.serves or tasks
        for function in functions:
            if function.name in counted:
                totals[function.name] = Total(counted[function.name], True)
                continue
            # The call that compiles is none that C++ serves.
            first, made = programs.made(function.name)
            calls = function.calls + max(made, function.compiled)
            totals[function.name] = Total(calls, first is not None and first > whole_since)
        found = self._store.part(FoundLoops)
        going = found.see(functions, programs.work, totals)
        charged = found.charged()
        self._adopt(going, functions, any_charged=bool(charged))
        if charged:
            within = {name for each in charged for name in each.within}
            self._charge(charged, within)

    def _without_answers(self, functions: list[Seen]) -> list[Seen]:
        """Returns what is left without a server's answers: with the main thread in a server, another one batches them.

        A thread that trains carries arrays from call to call.
        """
        aside = [each for each in functions if each.window and each.window[-1][1] != CHARGED]
        if not aside:
            return functions
        with threads.current_frames() as frames:
            main = frames.get(threading.main_thread().ident or 0)
            served = main is not None and is_served(main)
            del main
        if not served:
            return functions
        training = {each.window[-1][1] for each in aside if each.carries}
        for function in aside:
            if function.folded >= FEWEST_CALLS and function.window[-1][1] not in training:
                function.answers()
                self._calls.serves = True
        return [each for each in functions if not each.ignored]

    def _charge(self, loops: list[Going], within: set[str], thread: int | None = None) -> None:
        self._store.part(FoundLoops).clock = self._calls.clock
        ordered = sorted(loops, key=lambda loop: -sum(loop.seconds))
        self._calls.charge([loop.seen for loop in ordered], within, min(loop.median for loop in loops), thread)

    def _adopt(self, going: list[Going], functions: list[Seen], *, any_charged: bool) -> None:
        """Charges the thread of a loop where the charged one calls nothing: a trainer's thread, and no loader's.

        Of several threads that train by one function, the busiest stands for all: they compute at the same time.
        """
        busy = any(each.window and each.window[-1][1] == CHARGED for each in functions)
        main = threading.main_thread().ident
        made_by = [(each, {mark[1] for mark in each.seen.window}) for each in going]
        loops = [each for each, made in made_by if len(made) == 1 or (made and each.seen.carries)]
        if busy or not loops or _waits_for_a_queue(main):
            return
        loop = max(loops, key=lambda each: sum(each.seconds))
        if not self._store.part(ProgramFlops).is_large(loop.seen.name, self._calls.charged()):
            return
        thread = statistics.mode(mark[1] for mark in loop.seen.window)
        if not any_charged or thread == main:
            self._charge([loop], loop.within, thread)


def _waits_for_a_queue(thread: int | None) -> bool:
    """Returns whether a thread takes what another thread makes."""
    with threads.current_frames() as innermost:
        frame = None if thread is None else innermost.get(thread)
        return any(each.f_globals.get("__name__") == "queue" for each in frames(frame, _WAITING_FRAMES))


source = FoundLoopsSource
