"""Position of a thread in a turn of a loop: in its input, in the call, at a line, or not in the loop."""

import dis
import queue
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.run_programs import programs

from jaxobs.internals.source_files import line_of
from jaxobs.loops.call_places import Place, place
from jaxobs.loops.positions import (
    IN_CALL,
    IN_INPUT,
    IN_LIBRARY,
    IN_LOOP,
    _all_loops,
    calls,
    interrupted,
    is_task,
    locks,
    position,
    takes_difference,
)

LOOPS = {
    "a generator": ("for x in generated():\n    step()", IN_INPUT),
    "an iterator": ("for x in Batches():\n    step()", IN_INPUT),
    "one within another": ("for number, x in enumerate(zip(generated(), Batches())):\n    step()", IN_INPUT),
    "a loader that starts slowly": ("for y in range(2):\n    for x in Loader():\n        step()", IN_INPUT),
    "next of a generator": ("it = generated()\nfor _ in range(2):\n    x = next(it)\n    step()", IN_INPUT),
    "next of a map": ("it = map(look, range(2))\nfor _ in range(2):\n    x = next(it)\n    step()", IN_INPUT),
    "next, elsewhere": ("it = Batches()\nfor _ in range(2):\n    x = fetched(it)\n    step()", IN_INPUT),
    "a generator that trains": ("for x in trained():\n    pass", IN_LOOP),
    "a line": ("for x in range(2):\n    y = x\n    look()\n    step()", IN_LOOP),
    "a sum": ("for x in range(2):\n    y = sum(look() for _ in range(2))\n    step()", IN_LOOP),
    "one call, through the same line": ("for x in range(2):\n    for f in (slow, train):\n        f()", IN_LOOP),
    "the call itself": ("for x in range(2):\n    step(look)", IN_CALL),
    "a while": ("it = generated()\nwhile (x := next(it, None)) is not None:\n    step()", IN_INPUT),
    "another loop behind it": ("for x in range(2):\n    step()\nfor x in generated():\n    pass", None),
    "next behind it": ("for x in range(2):\n    step()\nx = next(generated())", None),
    "a loop around it": ("for y in generated():\n    for x in range(2):\n        step()", IN_INPUT),
    "a loop within": ("for x in range(2):\n    step()\n    for y in generated():\n        pass", IN_INPUT),
    "a turn": ("def turn(it):\n    x = next(it)\n    step()\nit = generated()\nturn(it)\nturn(it)", IN_INPUT),
    "behind the function with the loop": ("all_turns()\nfor x in Batches():\n    pass", None),
    "behind it, in a loop": ("for y in range(2):\n    all_turns()\n    fetched(Batches())", IN_LOOP),
    "another cell": ("def run(cell):\n    cell()\nlist(map(run, (all_turns, slow)))", None),
    "a trainer's method": ("for x in range(2):\n    train_batch()", IN_LIBRARY),
    "what a trainer's method calls": ("for x in range(2):\n    train_batch_and(slow)", IN_LOOP),
    "a trainer's loop": ("fit()", IN_LOOP),
    "behind the loop": ("for x in range(2):\n    step()\nlook()", None),
    "behind one with a handler": ("for x in range(2):\n    try: step()\n    except OSError: continue\nlook()", None),
    "behind it, a handler before": ("try: y = 0\nexcept OSError: pass\nfor x in range(2): step()\nlook()", None),
    "a handler": ("for x in 0, 1:\n    step()\n    try: 1 / 0\n    except KeyError: pass\n    except: look()", IN_LOOP),
}

HELPERS = programs(__file__)["helpers"]

LIBRARY = """
def train_batch():
    look()
    step()

def train_batch_and(callback):
    callback()
    step()

def fit():
    for x in range(2):
        look()
        step()
"""


@pytest.mark.parametrize("name", LOOPS)
def test_where_a_thread_is_in_a_turn(name: str) -> None:
    source, expected = LOOPS[name]
    looks, calls = _ran(source)
    assert looks and calls
    for look in looks:
        found = position(look, calls[-1])
        assert found == expected


def _ran(source: str) -> tuple[list[Place], list[Place]]:
    looks: list[Place] = []
    calls: list[Place] = []

    def look(*_: Any) -> int:
        if calls:  # before the first there is no turn
            looks.append(place(sys._getframe(1)))
        return 0

    def step(inside: Any = None) -> None:
        here = place(sys._getframe(1))
        calls.append(here)
        if inside is not None:
            looks.append((*place(sys._getframe(0))[:1], *here))

    namespace: dict[str, Any] = {"look": look, "step": step}
    exec(compile(HELPERS, "<helpers>", "exec"), namespace)
    exec(compile(LIBRARY, f"{sysconfig.get_path('purelib')}/trainers.py", "exec"), namespace)
    exec(compile(source, "<loop>", "exec"), namespace)
    return looks, calls


def test_a_task_of_a_pool_is_no_turn_unless_it_makes_turns() -> None:
    def looped() -> list[Place]:
        found = []
        for _ in range(2):
            found.append(place(sys._getframe()))
        return found

    with ThreadPoolExecutor(1) as pool:
        assert is_task(pool.submit(lambda: place(sys._getframe())).result())
        assert not is_task(pool.submit(looped).result()[0]) and not is_task(looped()[0])


def test_a_wait_for_another_coroutine_is_no_loop_and_many_handlers_take_no_time() -> None:
    """Python writes an `await` as a loop that sends. Time grows with the code, not with its square: a minute else."""

    async def once(step: Any) -> None:
        await step()

    assert _all_loops(once.__code__) == ()
    scope: dict[str, Any] = {}
    exec("def handles(x):\n    for n in x:\n        n()\n" + "    with x:\n        x = 1\n" * 3000, scope)
    (loop,) = _all_loops(scope["handles"].__code__)
    assert 0 < len(loop) < 12


def test_stacks_that_are_too_deep_or_have_nothing_in_common_say_nothing() -> None:
    def deep(depth: int) -> Place:
        return place(sys._getframe(0)) if depth == 0 else deep(depth - 1)

    here = place(sys._getframe(0))
    assert position(deep(200), deep(200)) is None
    assert position(deep(3), here) is not None
    assert position(((deep.__code__, 0),), here) is None


def test_the_name_of_what_is_called() -> None:
    """A method or a function, whatever its arguments call; another name for it is another."""

    def named(_: Any = None) -> bool:
        frame = sys._getframe(1)
        assert calls(frame.f_code, frame.f_lasti)
        return calls(frame.f_code, frame.f_lasti, "named")

    holder = SimpleNamespace(named=named)
    other = holder.other = named
    assert [named(), named(abs(len(LOOPS))), holder.named(max(1, 2))] == [True] * 3
    assert [other(), holder.other(named)] == [False] * 2


def test_a_thread_is_interrupted_where_a_loop_or_a_function_begins_anew() -> None:
    """There it waits for nothing; in a call it may."""

    def called() -> None: ...

    def loops() -> None:
        for _ in range(10):
            called()

    at = {each.opname: each.offset for each in dis.get_instructions(loops)}
    assert [interrupted(loops.__code__, at[name]) for name in ("JUMP_BACKWARD", "RESUME", "CALL")] == [
        True,
        True,
        False,
    ]


def test_code_is_taken_apart_only_for_a_loop_or_a_name_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look costs the same in a module of 10,000 instructions, whose disassembly takes a second under tracemalloc."""
    scope: dict[str, Any] = {"sys": sys, "place": place}
    exec("def large():\n" + "    str(1)\n" * 2000 + "    return place(sys._getframe())", scope)
    monkeypatch.setattr("dis._get_instructions_bytes", None)
    (code, at), *_ = scope["large"]()
    assert calls(code, at) and not calls(code, at, "sleep") and _all_loops(code) == ()
    with pytest.raises(TypeError):
        calls(code, at, "place")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("with lock:\n        pass", True),
        ("lock.acquire()", True),
        ("with condition:\n        pass", True),
        ("empty.get()", False),
        ("time.sleep(60)", False),
    ],
)
def test_a_thread_that_takes_a_lock(text: str, taken: bool) -> None:
    """A queue takes one as well, and waits for its other end."""
    names: dict[str, Any] = {
        "lock": threading.Lock(), "condition": threading.Condition(), "empty": queue.Queue(), "time": time,
    }  # fmt: skip
    exec(compile(f"def waits():\n    {text}", "train.py", "exec"), names)
    thread = threading.Thread(target=names["waits"], daemon=True)
    with names["lock"], names["condition"]:
        thread.start()
        seen = []
        while len(seen) < 20:  # the last of them are at rest
            time.sleep(0.01)
            seen.append(locks(place(sys._current_frames()[thread.ident or 0])))
    assert seen[-1] is taken


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("left = due - now()\n    if left > 0:\n        sleep(left)", True),
        ("sleep(max(0.0, due - now()))", True),
        ("took = now() - due\n    sleep(0.5)", False),
        ("period = 1 / due\n    sleep(period)", False),
        ("sleep(due)", False),
    ],
)
def test_a_sleep_that_lasts_for_a_difference(text: str, taken: bool) -> None:
    """A variable that has a difference is one; a difference that another line takes is none of the sleep's."""
    stack: list[bool] = []

    def sleep(seconds: float) -> None:
        frame = sys._getframe(1)
        assert calls(frame.f_code, frame.f_lasti, "sleep")
        stack.append(takes_difference(frame.f_code, frame.f_lasti))

    names: dict[str, Any] = {"sleep": sleep, "now": lambda: 1.0}
    exec(compile(f"def turn(due):\n    {text}", "train.py", "exec"), names)
    names["turn"](2.0)
    module = text.replace("\n    ", "\n")
    exec(compile(module, "train.py", "exec"), names | {"due": 2.0})
    assert stack == [taken, taken], "in a function, and in a script"


def test_each_instruction_has_a_line_of_the_program() -> None:
    source = "first = 1\nfor x in (1, 2):\n    for y in (3, 4):\n        step()\n        if y:\n            look()\n"
    code = compile(source, "program.py", "exec")
    lines = {line_of(code, at) for at in range(-1, len(code.co_code))}
    assert lines == {1, 2, 3, 4, 5, 6}
    without = [each for each in dis.get_instructions(code) if each.positions and each.positions.lineno is None]
    assert [line_of(code, each.offset) for each in without] == [3] * len(without)
    assert len(without) == (sys.version_info < (3, 12))  # the inner loop's jump back
