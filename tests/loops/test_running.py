"""Whether threads run; and looks in the middle of what they do."""

import sys
import threading
import time

import pytest
from helpers.waiting import until

from jaxobs.base import threads
from jaxobs.loops.running import HELD_SECONDS, NAPS, Running


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of other threads")
@pytest.mark.parametrize(("probe", "runs"), [(False, True), (True, False)])
def test_a_thread_that_is_blocked_is_known_from_one_that_runs(probe: bool, runs: bool) -> None:
    running, stop = Running(), threading.Event()

    def work() -> None:
        while runs and not stop.is_set():
            sum(range(1000))
        stop.wait()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ident = thread.ident or 0

    def found() -> bool:
        time.sleep(0.02)
        return running.runs(ident, probe=probe)

    until(lambda: found() is runs, found)
    stop.set()
    thread.join()


def test_nothing_is_asked_of_the_system_between_a_nap_and_its_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question would release Python's lock, and the other thread run on to where it releases the lock itself."""
    running, made = Running(), list[str]()
    monkeypatch.setattr(threads, "nap", lambda _: made.append("nap") or 0.0)
    monkeypatch.setattr(running, "_own", type("Own", (), {"waited": lambda _: made.append("asks") or 0.0})())
    running.interrupt(1.0, threads.Event(), lambda: made.append("glance"))
    assert made == ["glance"], "there was nothing to see"
    made.clear()
    running.interrupt(1.0, threads.Event(), lambda: made.append("glance") or 1)
    assert made == ["glance", "asks", *len(NAPS) * ["nap", "glance", "asks"]]


def test_naps_end_when_another_thread_holds_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look in time needs none, nor does one that waited for a processor; else there are a few, of growing length."""
    running, stopped = Running(), threads.Event()
    naps: list[float] = []
    glances = [*range(20), 3, 2, 1, 0, 9]
    late = [0.0, 0.0, 1.0, 0.0]
    monkeypatch.setattr(threads, "nap", lambda seconds: naps.append(seconds) or late[len(naps) - 1])
    monkeypatch.setattr(running, "_own", type("Own", (), {"waited": lambda _: waited.pop(0)})())
    waited = 20 * [0.0]
    assert running.interrupt(HELD_SECONDS / 2, stopped, glances.pop) == 9
    assert not naps
    assert running.interrupt(1.0, stopped, glances.pop) == 3, "the glance after the third nap"
    assert len(naps) == 3 and all(nap < most for nap, most in zip(naps, NAPS, strict=False))
    waited[:] = [1.0]
    running.interrupt(1.0, stopped, glances.pop)
    assert len(naps) == 3, "it waited for a processor"
    waited[:] = 20 * [1.0]
    late[:] = 20 * [0.0]
    naps.clear()
    running.interrupt(1.0, stopped, glances.pop)
    assert len(naps) == len(NAPS)
    stopped.set()
    running.interrupt(1.0, stopped, glances.pop)
    assert len(naps) == len(NAPS)
