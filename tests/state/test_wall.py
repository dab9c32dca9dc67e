"""The account of a process's time: every second in exactly one category, whatever happens meanwhile."""

import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import pytest
from helpers.clock import ByHand
from helpers.run_programs import run
from helpers.threads import elsewhere

from jaxobs.base.process import process_age, started
from jaxobs.facts.wall import TIME_CATEGORIES
from jaxobs.state.rest import MOST_BEHIND
from jaxobs.state.wall import Scope, Wall


@pytest.fixture
def clock() -> ByHand:
    return ByHand()


@pytest.fixture
def wall(clock: ByHand) -> Wall:
    """An account that goes by the clock."""
    return Wall(clock)


def charged(wall: Wall) -> dict[str, float]:
    return {name: round(value, 6) for name, value in wall.seconds().items() if value > 1e-9}


def whole(wall: Wall) -> dict[str, float]:
    before, seconds, after = wall.age(), wall.seconds(), wall.age()
    assert before - 1e-6 <= sum(seconds.values()) <= after + 1e-6
    return seconds


class Model:
    """Account by brute force: a list of what is open, each second charged to the last of it."""

    def __init__(self, clock: ByHand, wall: Wall, dice: random.Random) -> None:
        self.clock, self.wall, self.dice = clock, wall, dice
        self.truth = dict.fromkeys(TIME_CATEGORIES, 0.0)
        self.open = ["idle"]
        self.scrapes: list[dict[str, float]] = []

    def passes(self) -> None:
        seconds = self.dice.choice((0.0, 0.001, 0.1, 1.0, 7.5))
        self.clock.now += seconds
        self.truth[self.open[-1]] += seconds
        if self.dice.random() < 0.3:
            self.scrapes.append(self.wall.counted(self.wall.seconds()))

    def block(self, depth: int) -> None:
        for _ in range(self.dice.randint(0, 3)):
            self.passes()
            if depth:
                self.dice.choice((self.scope, self.scope, self.follow, self.phase, self.late))(depth - 1)
        self.passes()

    def scope(self, depth: int) -> None:
        """Something that is entered and left, sometimes with the end of what is within it lost."""
        category = self.dice.choice(("step", "input_wait", "eval", "checkpoint", "transfer", "init"))
        counts_as = "eval" if category == "step" and self.wall.category == "eval" else category
        scope = self.wall.enter(category)
        self.open.append(counts_as)
        self.block(depth)
        if self.dice.random() < 0.1:
            self.wall.enter("checkpoint")
            self.open.append("checkpoint")
            self.passes()
            self.open.pop()
        self.wall.leave(scope)
        self.open.pop()

    def follow(self, depth: int) -> None:
        """Categories that follow one another without a gap, sometimes with the end of what is within lost."""
        within_eval = self.wall.category == "eval"
        scope = None
        for _ in range(self.dice.randint(1, 4)):
            category = self.dice.choice(("step", "input_wait", "eval"))
            scope = self.wall.follow(scope, category)
            self.open.append("eval" if within_eval and category == "step" else category)
            self.block(depth)
            if self.dice.random() < 0.2:
                self.wall.enter("checkpoint")
            self.open.pop()
        self.wall.leave(scope)

    def phase(self, depth: int) -> None:
        """A phase of JAX, whose begin is told."""
        phase, loaded = self.dice.choice((("trace", False), ("lower", False), ("compile", False), ("compile", True)))
        self.wall.phase_began(phase)
        seconds, own = self.unknown(depth)
        self.wall.phase_ended(phase, seconds, loaded=loaded)
        self.truth["cache_load" if loaded else {"lower": "trace"}.get(phase, phase)] += own

    def late(self, depth: int) -> None:
        category = self.dice.choice(("trace", "compile", "checkpoint"))
        seconds, own = self.unknown(depth)
        self.wall.move(category, seconds)
        self.truth[category] += own

    def unknown(self, depth: int) -> tuple[float, float]:
        """A block of which it is known afterwards what it was: its seconds, and those that nothing within it took."""
        name = f"unknown {len(self.open)}"
        self.truth[name] = 0.0
        self.open.append(name)
        began = self.clock.now
        self.block(depth)
        self.open.pop()
        return self.clock.now - began, self.truth.pop(name)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_adds_up_to_the_wall_time(seed: int, clock: ByHand, wall: Wall) -> None:
    wall.leave(wall.enter("step"))  # the preparations are over
    model = Model(clock, wall, random.Random(seed))
    for _ in range(4):
        model.block(4)
    found = wall.seconds()
    assert sum(found.values()) == pytest.approx(clock.now - 100.0)
    assert found == pytest.approx(model.truth)
    for before, after in zip(model.scrapes, model.scrapes[1:], strict=False):
        assert all(after[name] >= before[name] for name in TIME_CATEGORIES)
    assert sum(wall.counted(found).values()) == pytest.approx(clock.now - 100.0)


def test_a_counter_never_falls_and_catches_up(clock: ByHand, wall: Wall) -> None:
    step = wall.enter("step")
    clock.now += 60.0
    shown = wall.counted(wall.seconds())
    assert shown["step"] == 60.0
    wall.move("compile", 50.0)
    shown = wall.counted(wall.seconds())
    assert (shown["step"], shown["compile"], wall.seconds()["compile"]) == (60.0, 0.0, 50.0)
    clock.now += 20.0
    shown = wall.counted(wall.seconds())
    assert shown["step"] == 60.0 and shown["compile"] == pytest.approx(20.0)
    clock.now += 80.0
    assert wall.counted(wall.seconds()) == pytest.approx(wall.seconds())
    wall.leave(step)


def test_preparations_end_with_the_first_work(clock: ByHand) -> None:
    wall = Wall(clock, age=5.0)
    clock.now += 1.0
    wall.phase_began("compile")
    clock.now += 2.0
    wall.phase_ended("compile", 2.0)
    wall.leave(wall.enter("checkpoint"))
    clock.now += 1.0
    wall.leave(wall.enter("step"))
    clock.now += 1.0
    evaluation = wall.enter("eval")
    with_step = wall.enter("step")
    clock.now += 4.0
    wall.leave(with_step)
    wall.leave(evaluation)
    assert charged(wall) == {"init": 7.0, "compile": 2.0, "idle": 1.0, "eval": 4.0}
    assert wall.steps == 1


def test_what_another_thread_has_ended_is_not_charged_when_a_step_follows(clock: ByHand, wall: Wall) -> None:
    wall.leave(wall.enter("step"))
    waiting = wall.enter("input_wait")
    clock.now += 1.0
    other = threading.Thread(target=wall.leave, args=(waiting,))
    other.start()
    other.join()
    clock.now += 2.0
    step = wall.follow(waiting, "step")
    clock.now += 4.0
    wall.leave(step)
    assert charged(wall) == {"input_wait": 1.0, "idle": 2.0, "step": 4.0}


def test_steps_that_follow_waits_are_counted_as_if_entered(clock: ByHand, wall: Wall) -> None:
    scope = None
    for number in range(6):
        clock.now += 1.0
        scope = wall.follow(scope, ("input_wait", "step")[number % 2])
        assert scope is not None and scope.began == clock.now
    wall.leave(scope)
    evaluation = wall.enter("eval")
    step = wall.follow(wall.enter("input_wait"), "step")
    clock.now += 1.0
    wall.leave(step)
    wall.leave(wall.follow(wall.enter("step"), "step"))
    wall.leave(evaluation)
    assert wall.steps == 3
    assert charged(wall) == {"init": 1.0, "input_wait": 3.0, "step": 2.0, "eval": 1.0}


def test_what_was_left_too_late_or_never_does_not_unbalance(clock: ByHand, wall: Wall) -> None:
    outer = wall.enter("eval")
    wall.enter("checkpoint")  # never left
    clock.now += 1.0
    wall.leave(outer)
    wall.leave(outer)
    wall.leave()
    wall.leave()
    clock.now += 2.0
    outer = wall.enter("eval")
    wall.enter("checkpoint")
    lost = wall.enter("input_wait")
    wall.leave(outer)
    wall.leave(wall.follow(lost, "step"))
    assert wall.category == "idle"
    stranger = Wall(clock).enter("step")
    assert stranger is not None
    wall.leave(stranger)
    assert wall.category == "idle"
    assert charged(wall) == {"checkpoint": 1.0, "idle": 2.0}


def test_a_generator_that_is_collected_on_another_thread_ends_its_own_scope_only(clock: ByHand, wall: Wall) -> None:
    def steps() -> Iterator[None]:
        scope = wall.enter("step")
        try:
            yield
        finally:
            clock.now += 1.0
            wall.leave(scope, alone=True)

    holder: list[Iterator[None]] = []

    def begin() -> None:
        holder.append(steps())
        next(holder[0])

    begin()
    evaluation = wall.enter("eval")
    elsewhere(holder.clear)
    clock.now += 2.0
    wall.leave(evaluation)
    clock.now += 4.0
    assert wall.category == "idle"
    assert charged(wall) == {"eval": 3.0, "idle": 4.0}
    begin()
    clock.now += 8.0
    elsewhere(holder.clear)
    clock.now += 16.0
    wall.leave(wall.enter("eval"))
    assert charged(wall) == {"eval": 3.0, "step": 9.0, "idle": 20.0}


def test_signal_handlers_may_use_it_at_any_moment() -> None:
    wall = Wall(age=0.0)
    interrupted = 0

    def handler(signum: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted += 1
        scope = wall.enter("checkpoint")
        wall.move("transfer", 1e-7)
        wall.leave(scope)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    try:
        while interrupted <= 500:
            step = wall.enter("step")
            wall.leave(wall.enter("input_wait"))
            wall.move("compile", 1e-7)
            wall.leave(wall.follow(step, "input_wait"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert wall.category == "idle"
    assert all(value >= -1e-6 for value in whole(wall).values())


def test_other_threads_read_it_whole_and_are_not_charged() -> None:
    wall = Wall(age=0.0)
    wrong: list[float] = []
    entered: list[Scope | None] = []
    stop = threading.Event()

    def read() -> None:
        shown: dict[str, float] = {}
        while not stop.is_set():
            before = wall.age()
            seconds = wall.seconds()
            if not before - 1e-6 <= sum(seconds.values()) <= wall.age() + 1e-6:
                wrong.append(sum(seconds.values()) - before)
            found = wall.counted(seconds)
            if any(found[name] < value for name, value in shown.items()):
                wrong.append(-1.0)
            shown = found
            entered.append(wall.enter("eval"))
            entered.append(wall.enter("step"))
            wall.move("compile", 10.0)
            time.sleep(0)

    wall.leave(wall.enter("step"))
    threads = [threading.Thread(target=read) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        while len(entered) <= 2000:
            step = wall.enter("step")
            wall.leave(wall.enter("input_wait"))
            wall.leave(wall.follow(step, "input_wait"))
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not any(entered)
    assert wrong == []
    assert set(charged(wall)) <= {"init", "step", "input_wait", "idle"}


def test_the_thread_that_makes_the_first_step_is_charged() -> None:
    wall = Wall(age=0.0)
    preparing = wall.enter("init")

    def train() -> None:
        wall.leave(wall.enter("input_wait"))
        step = wall.enter("step")
        time.sleep(0.05)
        wall.leave(step)

    trainer = elsewhere(train, threading.get_ident)
    wall.leave(preparing)
    assert wall.enter("eval") is None
    assert wall.thread == trainer
    seconds = whole(wall)
    assert seconds["step"] >= 0.05 and seconds["eval"] == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process was started")
def test_the_account_begins_with_the_process() -> None:
    """Imports count, in a child of one's own too; a process that is not there has no age."""
    program = """
        import os, time
        time.sleep(0.3)
        from jaxobs.state.store import current
        from jaxobs.state.wall import Wall
        scope = current().part(Wall).enter("step")
        print(current().part(Wall).seconds()["init"])
        forked = time.perf_counter()
        child = os.fork()
        if child == 0:
            own = current().part(Wall)
            own.leave(scope)  # of another process's account
            found = own.seconds()
            within = sum(found.values()) <= time.perf_counter() - forked + 0.02  # the system tells to 10 ms
            os._exit(0 if own.category == "unattributed" and within and found["step"] == 0.0 else 1)
        assert os.waitpid(child, 0)[1] == 0
    """
    began = time.perf_counter()
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert 0.3 <= float(done.stdout) <= time.perf_counter() - began + 0.02
    age = process_age()
    assert age is not None and age > 0.3
    assert process_age(2**22 + 1) is None


def test_when_a_process_was_started_stays_the_same() -> None:
    """A restart is told by it: it may not change by a millisecond, whatever is asked and installed meanwhile."""
    first = started()
    time.sleep(0.02)
    assert started() == first
    before, age, after = time.time(), process_age(), time.time()
    assert age is None or before - age - 0.1 <= first <= after - age + 0.1


def test_what_is_not_known_is_never_taken_for_preparations(clock: ByHand, wall: Wall) -> None:
    clock.now += 8.0
    assert charged(wall) == {"unattributed": 8.0} and wall.category == "unattributed"
    assert wall.counted(wall.seconds())["unattributed"] == 8.0
    clock.now += 2.0
    with_step = wall.enter("step")
    clock.now += 5.0
    wall.leave(with_step)
    assert charged(wall) == {"init": 10.0, "step": 5.0}
    shown = wall.counted(wall.seconds())
    assert (shown["unattributed"], shown["init"], shown["step"]) == pytest.approx((8.0, 2.0, 5.0))
    clock.now += 3.0
    shown = wall.counted(wall.seconds())
    assert (shown["init"], shown["step"], shown["idle"]) == pytest.approx((2.0, 5.0, 3.0))


def test_what_other_threads_compile_counts_while_the_charged_one_does_nothing_known(clock: ByHand, wall: Wall) -> None:
    """Once, however many do; what the charged thread is in comes first; loading turns out at the end."""

    def passes(seconds: float) -> Callable[[], None]:
        return lambda: setattr(clock, "now", clock.now + seconds)

    def within() -> None:
        assert wall.category == "trace"
        elsewhere(
            lambda: wall.phase_began("compile"), passes(2.0), lambda: wall.phase_ended("compile", 2.0, loaded=True)
        )

    clock.now += 1.0
    elsewhere(lambda: wall.phase_began("trace"), passes(3.0), within, lambda: wall.phase_ended("trace", 5.0))
    clock.now += 4.0
    assert charged(wall) == {"unattributed": 5.0, "trace": 3.0, "cache_load": 2.0}
    elsewhere(passes(1.0), lambda: wall.phase_ended("compile", 0.5))  # nobody said that it began
    assert charged(wall) == {"unattributed": 5.5, "trace": 3.0, "cache_load": 2.0, "compile": 0.5}
    step = wall.enter("step")
    assert charged(wall) == {"init": 5.5, "trace": 3.0, "cache_load": 2.0, "compile": 0.5}
    elsewhere(lambda: wall.phase_began("compile"), passes(6.0))
    assert wall.category == "step"
    wall.leave(step)
    clock.now += 2.0
    assert wall.category == "compile"
    assert charged(wall) == {"init": 5.5, "trace": 3.0, "cache_load": 2.0, "compile": 2.5, "step": 6.0}
    wall.move("step", 2.0)  # turns that were found afterwards
    clock.now += 1.0
    wall.nothing_open()
    clock.now += 1.0
    assert charged(wall) == {
        "init": 5.5, "trace": 3.0, "cache_load": 2.0, "compile": 1.5, "step": 8.0, "idle": 1.0
    }  # fmt: skip
    assert sum(wall.counted(wall.seconds()).values()) == pytest.approx(clock.now - 100.0)


def test_what_a_sampler_sees_counts_for_seconds_in_no_scope(clock: ByHand, wall: Wall) -> None:
    """Once each: scopes, phases of other threads and what was moved come first; a correction moves the rest."""
    clock.now += 3.0
    wall.rest.saw(None)  # nothing is known yet
    clock.now += 2.0
    looks = [("input_wait", wall.rest.saw(None))]
    wall.move("compile", 0.5)
    wall.loop_found(looks)
    assert charged(wall) == {"init": 2.5, "input_wait": 2.0, "compile": 0.5}
    scope = wall.enter("checkpoint")
    clock.now += 1.0
    wall.leave(scope)
    clock.now += 4.0
    assert wall.rest.saw("step") == 4.0 and wall.category == "step"
    clock.now += 1.0

    def passes() -> None:
        clock.now += 6.0
        assert wall.category == "trace" and wall.rest.saw("input_wait") == 0.0

    elsewhere(lambda: wall.phase_began("trace"), passes, lambda: wall.phase_ended("trace", 6.0))
    clock.now += 0.5
    wall.rest.correct("step", "transfer", 3.0)
    assert charged(wall) == {
        "init": 2.5, "input_wait": 2.5, "compile": 0.5, "checkpoint": 1.0, "step": 2.0, "transfer": 3.0, "trace": 6.0
    }  # fmt: skip
    assert sum(wall.seconds().values()) == pytest.approx(clock.now - 100.0)


def test_no_second_counts_twice_if_looks_saw_what_turned_out_to_be_of_another_category(
    clock: ByHand, wall: Wall
) -> None:
    wall.rest.saw(None)
    clock.now += 4.0
    looks = [("step", wall.rest.saw(None))]
    wall.move("compile", 3.0)
    wall.loop_found(looks)
    assert charged(wall) == {"step": 1.0, "compile": 3.0}


def test_a_sampler_speaks_for_what_passes_after_its_look_but_not_for_long(clock: ByHand, wall: Wall) -> None:
    wall.rest.saw("step")
    clock.now += MOST_BEHIND - 1.0
    assert charged(wall) == {"step": MOST_BEHIND - 1.0}
    clock.now += 100.0
    assert charged(wall) == {"unattributed": MOST_BEHIND + 99.0}
