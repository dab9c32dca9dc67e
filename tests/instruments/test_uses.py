"""A scope object in several uses at once, and functions as scopes: every use is its own, and the account is right."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.clock import ByHand
from helpers.threads import at_once

import jaxobs
from jaxobs.instruments import uses
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.loops import Loops
from jaxobs.state.store import current
from jaxobs.state.wall import Wall


@pytest.fixture
def clock(fresh: None) -> ByHand:
    """The one that the account of time goes by."""
    clock = ByHand()
    current()._parts[Wall] = Wall(clock)
    with jaxobs.step("first"):
        pass  # the preparations are over
    return clock


def charged() -> dict[str, float]:
    """Seconds by category, those that have some."""
    return {name: value for name, value in current().part(Wall).seconds().items() if value}


def steps(name: str = "train") -> tuple[int, int]:
    """How many steps were finished, and how many failed."""
    state = current().part(Loops).loop(name, current().part(Wall), current().calls).frozen()
    return state.steps, state.failed


@dataclass(frozen=True)
class Kind:
    """A sort of scope: how one is made, what it is charged as, and how many were counted."""

    make: Callable[[], Any]
    category: str
    count: Callable[[], int]


KINDS = {
    "step": Kind(lambda: jaxobs.step("train"), "step", lambda: steps()[0]),
    "phase": Kind(
        lambda: jaxobs.phase("checkpoint"),
        "checkpoint",
        lambda: sum(current().part(Checkpoints).frozen()["phase"].counts),
    ),
    "request": Kind(
        lambda: jaxobs.request("predict"),
        "idle",
        lambda: next(each.total for each in jaxobs.snapshot().routes if each.route == "predict"),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def expect(kind: Kind, clock: ByHand, uses: int, seconds: float, rest: float = 0.0) -> None:
    clock.now += 100.0
    idle = 100.0 + (seconds if kind.category == "idle" else rest)
    charged_to_it = {kind.category: seconds} if seconds else {}
    assert charged() == pytest.approx({**charged_to_it, "idle": idle})
    assert current().part(Wall).at_rest
    assert kind.count() == uses
    assert jaxobs.snapshot().requests_in_flight in (None, 0)


def test_one_object_inside_itself(kind: Kind, clock: ByHand) -> None:
    """In one statement, in several, one after the other, and in an exit stack, which ends in an order of its own."""
    scope = kind.make()
    with scope:
        clock.now += 1.0
        with scope, scope:
            clock.now += 2.0
        clock.now += 4.0
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(scope)
            clock.now += 2.0
        with scope:
            clock.now += 2.0
    expect(kind, clock, 7, 15.0)


def test_one_object_in_a_recursion(kind: Kind, clock: ByHand) -> None:
    scope = kind.make()

    def work(depth: int) -> None:
        with scope:
            clock.now += 1.0
            if depth == 0:
                raise KeyError
            with contextlib.suppress(KeyError):
                work(depth - 1)
            clock.now += 1.0

    work(3)
    assert kind.category != "step" or steps() == (3, 1)
    expect(kind, clock, 3 if kind.category == "step" else 4, 7.0)


def test_one_object_in_two_generators(kind: Kind, clock: ByHand) -> None:
    scope = kind.make()

    def work() -> Iterator[None]:
        with scope:
            yield

    one, two = work(), work()
    next(one)
    clock.now += 1.0
    next(two)
    clock.now += 2.0
    assert list(one) == []
    clock.now += 4.0
    assert list(two) == []
    expect(kind, clock, 2, 7.0)


def test_one_object_in_interleaved_tasks(kind: Kind, clock: ByHand) -> None:
    scope = kind.make()

    async def work(begin: asyncio.Event, end: asyncio.Event, begun: asyncio.Event) -> None:
        await begin.wait()
        with scope:
            begun.set()
            await end.wait()

    async def main() -> None:
        begin, end, begun = ([asyncio.Event() for _ in range(3)] for _ in range(3))
        tasks = [asyncio.create_task(work(begin[n], end[n], begun[n])) for n in range(3)]
        for n in range(3):
            begin[n].set()
            await begun[n].wait()
            clock.now += 1.0
        for n in range(3):
            end[n].set()
            await tasks[n]
            clock.now += 10.0

    asyncio.run(main())
    clock.now -= 10.0
    expect(kind, clock, 3, 23.0)


@pytest.mark.parametrize("main_first", [True, False])
def test_one_object_on_two_threads(kind: Kind, clock: ByHand, main_first: bool) -> None:
    """The charged thread's time is charged, whoever begins and ends first; uses of both are counted."""
    scope = kind.make()
    with ThreadPoolExecutor(1) as other, contextlib.ExitStack() as theirs:
        if not main_first:
            other.submit(theirs.enter_context, scope).result()
        with scope:
            clock.now += 1.0
            if main_first:
                other.submit(theirs.enter_context, scope).result()
            else:
                other.submit(theirs.close).result()
            clock.now += 2.0
        other.submit(theirs.close).result()
    expect(kind, clock, 2, 3.0)


def test_one_object_on_many_threads(kind: Kind, clock: ByHand) -> None:
    scope = kind.make()

    def work(_: int) -> None:
        for _ in range(500):
            with scope, scope:
                pass

    at_once(4, work, interval=1e-5)
    expect(kind, clock, 4000, 0.0)
    assert scope._taken is False


def test_the_first_use_ends_while_another_begins(kind: Kind, clock: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object is free afterwards: the end of the first use takes no lock."""
    scope = kind.make()
    first = contextlib.ExitStack()

    class Meanwhile(uses.Uses):
        def __init__(self, own: bool) -> None:
            super().__init__(own)
            first.close()

    monkeypatch.setattr(uses, "Uses", Meanwhile)
    first.enter_context(scope)
    with scope:
        assert isinstance(scope._taken, Meanwhile)
    assert scope._taken is False
    expect(kind, clock, 2, 0.0)


def test_one_object_by_calls_of_its_methods(kind: Kind, clock: ByHand) -> None:
    """As callbacks do that are called at the beginning and at the end: two threads, each in its own use."""
    scope = kind.make()

    def end() -> None:
        scope.__exit__(None, None, None)

    with ThreadPoolExecutor(1) as other:
        scope.__enter__()
        other.submit(lambda: (scope.__enter__(), scope.__enter__())).result()
        clock.now += 1.0
        end()
        clock.now += 2.0
        scope.__enter__()
        clock.now += 4.0
        other.submit(lambda: (end(), end())).result()
    end()
    end()  # once too often
    expect(kind, clock, 4, 7.0 if kind.category == "idle" else 5.0, rest=2.0)


def test_a_scope_of_one_task_goes_on_when_that_of_another_ends(clock: ByHand) -> None:
    """Different objects too: a checkpoint that began before a step and ends within it."""

    async def save(saved: asyncio.Event) -> None:
        with jaxobs.phase("checkpoint"):
            await saved.wait()

    async def main() -> None:
        saved = asyncio.Event()
        task = asyncio.create_task(save(saved))
        await asyncio.sleep(0)
        clock.now += 1.0
        with jaxobs.step("train"):
            clock.now += 2.0
            saved.set()
            await task
            clock.now += 4.0

    asyncio.run(main())
    assert charged() == {"checkpoint": 1.0, "step": 6.0}
    assert current().part(Wall).at_rest


def test_a_phase_of_jax_that_never_ended_ends_with_the_scope_around_it(clock: ByHand) -> None:
    wall = current().part(Wall)
    generator = (_ for _ in [0])

    def work() -> Iterator[None]:
        wall.enter("compile")  # its end is lost
        with jaxobs.step("train"):
            wall.enter("trace")  # so is that of this
            yield

    with jaxobs.phase("checkpoint"):
        generator = work()
        next(generator)
        clock.now += 1.0
    clock.now += 2.0  # the generator is in the middle of its step
    generator.close()
    clock.now += 4.0
    assert charged() == {"trace": 1.0, "step": 2.0, "idle": 4.0}
    assert wall.at_rest


def test_an_iterator_that_lies_about_is_not_charged(clock: ByHand) -> None:
    batches = iter(jaxobs.steps(range(10), "eval"))
    for _ in range(2):
        with jaxobs.phase("eval"):
            next(batches)
            clock.now += 1.0
        clock.now += 2.0
    assert charged() == {"eval": 2.0, "idle": 4.0}


def test_an_interrupt_while_a_step_begins_leaves_none_open(clock: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> float:
        raise KeyboardInterrupt

    scope = jaxobs.step("train")
    with monkeypatch.context() as patch:
        patch.setattr(Wall, "apart", interrupted)
        current().part(Wall).known_apart = None  # so that the step asks
        with pytest.raises(KeyboardInterrupt), scope:
            pass
    assert current().part(Wall).at_rest
    with scope:
        clock.now += 1.0
    assert steps() == (1, 0) and charged() == {"step": 1.0}


def test_items_told_within_a_step_are_those_of_that_step(clock: ByHand) -> None:
    scope = jaxobs.step("train", items=1)
    with scope as outer:
        outer.items = 10
        with scope as inner:
            pass
        assert inner is not outer
        with scope as inner:
            inner.items = 100
    with scope:
        pass
    scope.items = 1000
    for _ in range(2):
        with scope:
            pass
    loop = current().part(Loops).loop("train", current().part(Wall), current().calls)
    assert loop.frozen().items == 10 + 1 + 100 + 1 + 2000


def test_what_one_request_tells_is_no_part_of_the_next(fresh: None) -> None:
    scope = jaxobs.request("predict", queue_seconds=1.0)
    with scope as outer:
        outer.queue_seconds, outer.outcome, outer.batch = 10.0, "client_error", (1, 2)
        with scope as inner:
            inner.queue_seconds = 100.0
    with scope:
        pass
    (route,) = jaxobs.snapshot().routes
    assert route.requests == {"unknown": {"client_error": 1, "ok": 2}}
    assert route.queue_seconds == 111.0 and (route.batch_used, route.batch_size) == (1, 2)


def test_an_object_made_before_a_reset_counts_after_it(clock: ByHand) -> None:
    scope, batches = jaxobs.step("train"), iter(jaxobs.steps(range(4), "turns"))
    with scope:
        next(batches)
    current().reset()
    for _ in range(2):
        with scope:
            pass
        next(batches)
    batches.close()
    assert steps() == (2, 0) and steps("turns") == (2, 0)
    assert current().part(Wall).at_rest


def test_functions_of_every_sort_are_in_their_scope_until_they_end(kind: Kind, clock: ByHand) -> None:
    @kind.make()
    def function(a: int, *, b: int = 1) -> int:
        """Adds."""
        clock.now += 1.0
        return a + b

    @kind.make()
    async def coroutine(a: int) -> int:
        await asyncio.sleep(0)
        clock.now += 2.0
        return a

    @kind.make()
    def generator(a: int) -> Any:
        try:
            got = yield a
        except KeyError:
            got = "caught"
        clock.now += 4.0
        yield got
        return "returned"

    @kind.make()
    async def stream(a: int) -> AsyncIterator[Any]:
        try:
            got = yield a
        except KeyError:
            got = "caught"
        clock.now += 8.0
        yield got

    assert function(1, b=2) == 3
    assert (function.__name__, function.__doc__) == ("function", "Adds.")
    assert str(inspect.signature(function)) == "(a: 'int', *, b: 'int' = 1) -> 'int'"
    assert inspect.iscoroutinefunction(coroutine) and asyncio.run(coroutine(1)) == 1
    assert inspect.isgeneratorfunction(generator) and inspect.isasyncgenfunction(stream)

    sent = generator(1)
    assert (next(sent), sent.send("sent")) == (1, "sent")
    with pytest.raises(StopIteration, match="returned"):
        next(sent)
    thrown = generator(1)
    assert (next(thrown), thrown.throw(KeyError())) == (1, "caught")
    thrown.close()

    async def streams() -> None:
        sent: Any = stream(1)
        assert (await anext(sent), await sent.asend("sent")) == (1, "sent")
        assert [each async for each in sent] == []
        thrown: Any = stream(1)
        assert (await anext(thrown), await thrown.athrow(KeyError())) == (1, "caught")
        await thrown.aclose()

    asyncio.run(streams())
    # A generator that is closed before its end is a step that was not finished.
    expect(kind, clock, 4 if kind.category == "step" else 6, 1.0 + 2.0 + 8.0 + 16.0)


def test_a_decorator_without_its_name_is_told_at_once() -> None:
    with pytest.raises(TypeError, match=r"needs a route, such as `@jaxobs.request\(\"predict\"\)`, but got function"):

        @jaxobs.request  # type: ignore[arg-type]
        def predict() -> None: ...


def test_calls_of_a_decorated_function_are_told_apart(fresh: None) -> None:
    @jaxobs.request("predict", queue_seconds=0.5)
    async def predict(error: type[BaseException] | None) -> str:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return "answer"

    async def main() -> list[Any]:
        calls = (predict(None), predict(ValueError), predict(asyncio.CancelledError), predict(None))
        return await asyncio.gather(*calls, return_exceptions=True)

    answers = asyncio.run(main())
    assert [each if isinstance(each, str) else type(each) for each in answers] == [
        "answer", ValueError, asyncio.CancelledError, "answer"
    ]  # fmt: skip
    (route,) = jaxobs.snapshot().routes
    assert route.requests == {"unknown": {"ok": 2, "error": 1, "cancelled": 1}}
    assert route.queue_seconds == 2.0


def test_turns_of_async_for_are_steps_and_waits(clock: ByHand) -> None:
    closed = []

    async def loader() -> AsyncIterator[list[int]]:
        try:
            for number in range(4):
                clock.now += 1.0
                await asyncio.sleep(0)
                yield [number] * 3
        finally:
            closed.append(True)

    async def main() -> None:
        found = []
        async for batch in jaxobs.steps(loader(), "train", items=len):
            clock.now += 10.0
            found.append(batch[0])
        assert found == [0, 1, 2, 3]
        async for _ in jaxobs.steps(loader(), "short", items=5):
            clock.now += 10.0
            break
        assert current().part(Wall).at_rest
        async with contextlib.aclosing(jaxobs.steps(loader(), "closed")) as batches:  # type: ignore[type-var]
            async for _ in batches:
                break
        assert closed[-1:] == [True] and current().part(Wall).at_rest
        with pytest.raises(RuntimeError):
            async for _ in jaxobs.steps(loader(), "raises"):
                raise RuntimeError
        assert current().part(Wall).at_rest

    asyncio.run(main())
    assert steps() == (4, 0) and steps("short") == (1, 0) and steps("closed") == (1, 0) and steps("raises") == (1, 0)
    loop = current().part(Loops).loop("train", current().part(Wall), current().calls).frozen()
    assert loop.items == 12 and loop.recent == (11.0, 11.0, 11.0)
    assert charged() == {"input_wait": 7.0, "step": 50.0}


def test_what_an_asynchronous_loader_raises_reaches_the_program(clock: ByHand) -> None:
    async def loader(error: type[BaseException]) -> AsyncIterator[int]:
        yield 1
        clock.now += 1.0
        raise error

    async def main(over: Any, error: type[BaseException]) -> None:
        with pytest.raises(error):
            async for _ in over(loader(error)):
                pass
        assert current().part(Wall).at_rest

    for over in (jaxobs.steps, jaxobs.data):
        for error in (OSError, asyncio.CancelledError):
            asyncio.run(main(over, error))
    assert steps() == (2, 0) and charged() == {"input_wait": 4.0}


def test_waits_for_an_asynchronous_input_are_counted_among_tasks(clock: ByHand) -> None:
    class Loader:
        """Gives iterators, can be measured, and is no iterator."""

        def __init__(self, gates: list[asyncio.Event]) -> None:
            self.gates = gates

        def __len__(self) -> int:
            return len(self.gates)

        async def __aiter__(self) -> AsyncIterator[int]:
            for number, gate in enumerate(self.gates):
                await gate.wait()
                yield number

    async def read(over: Any, into: list[int]) -> None:
        async for each in over:
            into.append(each)

    async def main() -> None:
        gates = [[asyncio.Event() for _ in range(2)] for _ in range(2)]
        inputs = [jaxobs.data(Loader(each), f"input {n}") for n, each in enumerate(gates)]
        assert [len(each) for each in inputs] == [2, 2] and isinstance(inputs[0], Loader)
        assert not hasattr(inputs[0], "__iter__") and not hasattr(aiter(inputs[0]), "__next__")
        found: list[list[int]] = [[], []]
        tasks = [asyncio.create_task(read(each, into)) for each, into in zip(inputs, found, strict=True)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for turn in range(2):
            for gate in (gates[0][turn], gates[1][turn]):
                clock.now += 1.0
                gate.set()
                for _ in range(4):
                    await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        assert found == [[0, 1], [0, 1]]

    asyncio.run(main())
    clock.now += 100.0
    assert charged() == {"input_wait": 4.0, "idle": 100.0}
    assert [(each.name, each.batches) for each in jaxobs.snapshot().inputs] == [("input 0", 2), ("input 1", 2)]
