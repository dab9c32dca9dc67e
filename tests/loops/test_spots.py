"""Spots: the stacks of real reads, and what they say."""

import bz2
import contextlib
import dis
import functools
import io
import json
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]

from jaxobs.loops import call_places
from jaxobs.loops.spots import MOST_SPOTS, Spot, Spots, awaited


def _stack(of: Callable[[], Any], spots: Spots) -> tuple[Spot, Any]:
    """Returns where a thread stays longest, and the array that it waits for there."""
    thread = threading.Thread(target=of, daemon=True)
    thread.start()
    last: Spot | None = None
    array = None
    while thread.is_alive():
        time.sleep(0.05)
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is None:
            continue
        here, found = spots.of(frame), awaited(frame)
        del frame
        if here is last:
            array = found
            break
        last = here
    thread.join()
    assert last is not None
    return last, array


@jax.jit
def _slow(x: Any) -> Any:
    return jax.lax.fori_loop(0, 1_500, lambda _, y: jnp.tanh(y @ y), jnp.full((200, 200), x)).sum()


@pytest.mark.parametrize(
    ("read", "waits"),
    [
        (float, False), (jax.device_get, False), (lambda x: f"{x}", False), (lambda x: x.item(), False), (bool, False),
        (jax.block_until_ready, True), (lambda x: x.block_until_ready(), True),
    ],
    ids=["float", "device_get", "format", "item", "bool", "block_until_ready", "the method"],
)  # fmt: skip
def test_a_read_is_known_by_its_stack(read: Callable[[Any], Any], waits: bool) -> None:
    """With the line that reads, and the array, unless it only waits for that."""
    result = _slow(jnp.float32(1.0))
    spot, array = _stack(lambda: read(result), Spots())
    assert spot.reads and spot.waits == waits
    assert spot.line.startswith(f"{__file__}:")
    assert waits or array is result


def test_what_sleeps_does_not_read() -> None:
    spot, array = _stack(lambda: time.sleep(0.3), Spots())
    assert not (spot.reads or spot.waits or spot.in_jax) and array is None
    assert spot.line.startswith(f"{__file__}:")


@pytest.mark.parametrize(
    ("files", "is_in_jax"),
    [
        (("<attrs generated>", dis.__file__, jax.__file__), True), ((jax.__file__,), True),
        (("<attrs generated>",), False), ((__file__, jax.__file__), False), ((dis.__file__,), False),
        ((optimize.__file__, jax.__file__), False),
    ],
    ids=["generated, and Python's own", "its own", "generated", "the user's", "Python's own", "another library's"],
)  # fmt: skip
def test_what_jax_has_python_do_is_in_jax(files: tuple[str, ...], is_in_jax: bool) -> None:
    """The files of the innermost functions, called by a line of this file."""
    spots = Spots()
    call: Callable[[], Spot] = lambda: spots.of(sys._getframe(1))  # noqa: E731
    for file in files:
        scope = {"call": call}
        exec(compile("def made(): return call()", file, "exec"), scope)
        call = scope["made"]
    exec(compile("def user(): return call()", __file__, "exec"), scope := {"call": call})
    assert scope["user"]().in_jax == is_in_jax


class _File:
    """A file of a bucket, as `pickle` and NumPy write into it."""

    def __init__(self, at: Callable[[], None]) -> None:
        self._at = at

    def write(self, data: Any) -> int:
        self._at()
        return len(data)


def _save_state(at: Callable[[], None]) -> None:
    at()


def _log(at: Callable[[], None]) -> None:
    at()


@pytest.mark.parametrize(
    ("work", "saves"),
    [
        (lambda at: pickle.dump([1.0], _File(at)), True), (lambda at: np.save(_File(at), np.ones(3)), True),
        (lambda at: json.dump({"a": 1}, _File(at)), True), (_save_state, True), (_log, False),
        (lambda at: json.dumps({}, default=at()), False),
    ],
    ids=["pickle", "NumPy", "JSON", "the user's", "the user's log", "JSON in memory"],
)  # fmt: skip
def test_a_save_is_known_by_its_function(work: Callable[[Callable[[], None]], Any], saves: bool) -> None:
    """Within what the loop calls; a loop that is in such a function itself trains."""
    spots, found, call = Spots(), set[tuple[bool, bool]](), call_places.place(sys._getframe(0))

    def at() -> None:
        spot = spots.of(sys._getframe(1))
        found.add((spot.is_saving(call), spot.is_saving(spot.place)))

    for _ in range(2):
        work(at)
    assert found == {(saves, False)}


def test_python_itself_has_no_line() -> None:
    """As at the end of the program, where it waits for its threads."""
    spot, _ = _stack(functools.partial(threading.Event().wait, 0.3), Spots())
    assert spot.place and not spot.line


@pytest.mark.parametrize(
    ("stays", "works"),
    [
        (lambda: bz2.BZ2File(io.BytesIO(), "wb").write(bytes(80_000_000)), True),
        (lambda: sorted(range(6_000_000), key=lambda each: -each), True),
        (lambda: queue.Queue[int]().get(timeout=0.4), False),
        (lambda: subprocess.run([sys.executable, "-c", "import time; time.sleep(0.4)"], check=True), False),
        (lambda: time.sleep(0.4), False),
    ],
    ids=["Python's library", "the program", "a queue", "a process", "a sleep"],
)
def test_a_thread_works_where_it_does_not_wait(stays: Callable[[], Any], works: bool) -> None:
    def run() -> None:
        with contextlib.suppress(queue.Empty):
            stays()

    spot, _ = _stack(run, Spots())
    assert spot.line and spot.works is works


def test_a_sleep_for_a_difference_keeps_a_pace_in_a_function_too() -> None:
    """A sleep in the loop keeps a pace in any case; other functions that sleep may be slow."""
    spots = Spots()

    def loop(read: Callable[[], None]) -> None:
        read()

    def due() -> None:
        left = time.monotonic() + 0.3 - time.monotonic()
        time.sleep(left)

    def slow() -> None:
        time.sleep(0.3)

    lines = {each: _stack(functools.partial(loop, each), spots)[0].line for each in (due, slow)}
    assert spots.pausing([loop.__code__]) == {lines[due]: True}
    assert spots.pausing([slow.__code__]) == {lines[due]: True, lines[slow]: False}


def test_a_function_stands_for_all_of_its_lines() -> None:
    """The line is the largest of that function; a line of which nothing is known stands for itself."""
    spots = Spots()

    def many() -> list[str]:
        return [
            spots.of(sys._getframe(0)).line,
            spots.of(sys._getframe(0)).line,
        ]

    def one() -> str:
        return spots.of(sys._getframe(0)).line

    (first, second), alone = many(), one()
    assert spots.line_with_most({alone: 3.0, first: 2.0, second: 2.5}) == second
    assert spots.line_with_most({alone: 5.0, first: 2.0, second: 2.5}) == alone
    assert spots.line_with_most({"gone.py:1": 5.0, first: 2.0, second: 2.5}) == "gone.py:1"


def test_a_stack_is_read_once_and_no_more_are_kept_than_there_is_room_for() -> None:
    spots = Spots()
    found = [spots.of(sys._getframe(0)) for _ in range(3)]
    assert found[0] is found[1] is found[2]
    code = "def here(): return frame()"
    for _ in range(MOST_SPOTS + 10):
        namespace: dict[str, Any] = {"frame": lambda: sys._getframe(1)}
        exec(code, namespace)
        spots.of(namespace["here"]())
    assert len(spots._known) <= MOST_SPOTS


@pytest.mark.parametrize(
    "solve",
    [
        *(functools.partial(optimize.minimize, method=each) for each in ("BFGS", "L-BFGS-B", "SLSQP", "CG", "TNC")),
        lambda *args, **given: optimize.least_squares(*args, **given),
        lambda *args, **given: optimize.root(*args, method="lm", **given),
        lambda f, x, **given: optimize.curve_fit(lambda _, *p: f(np.array(p)), *np.tile(x, (2, 2)), x, **given),
    ],
)
def test_finite_differences_are_known_by_their_stack(solve: Callable[..., Any]) -> None:
    """With the line that calls SciPy; not where SciPy is given the derivative, nor over few parameters."""
    spots, of_one, lines = Spots(), isinstance(solve, functools.partial), set()

    def value(x: Any) -> Any:
        lines.add(spots.of(sys._getframe()).differences)
        return float(((x**3 - 1.5) ** 2).sum()) if of_one else np.tile(x**3 - 1.5, 2)

    def derivative(x: Any, *more: Any) -> Any:
        return 6 * x**2 * (x**3 - 1.5) if of_one else np.tile(np.diag(3 * np.array(more or x) ** 2), (2, 1))

    for size, given in ((9, {"jac": derivative}), (4, {})):
        solve(value, np.full(size, 0.3), **given)
        assert lines == {""}
    solve(value, np.full(9, 0.3))
    assert len(lines) == 2 and all(each.startswith(f"{__file__}:") for each in lines - {""})
