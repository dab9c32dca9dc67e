"""Waiting for threads of ours at the program's end."""

import random
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from jaxobs.base import threads

COMPUTES_AT_THE_END = """
import jax, jax.numpy as jnp, numpy as np, time
import jaxobs
jaxobs.install(sample_interval=0.05)
from jaxobs.session import lifecycle

class Busy:
    def sample(self):
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            np.asarray(x + 1)

x = jnp.ones((512, 512))
np.asarray(x + 1)
lifecycle._session.sources.append(Busy())
time.sleep(0.3)
"""


def test_a_thread_that_computes_is_waited_for_and_one_that_hangs_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes, within ten seconds; a thread that has ended or never began is no matter."""
    monkeypatch.setattr(threads, "PATIENCE", 0.1)
    done, hang = [], threading.Event()

    def compute() -> None:
        until = time.thread_time() + 0.5
        while time.thread_time() < until:
            sum(range(1000))
        done.append(1)

    worker = threading.Thread(target=compute)
    worker.start()
    threads.join(worker)
    assert done
    threads.join(worker)
    sleeper = threading.Thread(target=hang.wait, daemon=True)
    sleeper.start()
    threads.join(sleeper)
    assert sleeper.is_alive()
    hang.set()


@pytest.mark.slow
def test_a_sample_that_goes_on_at_the_end_does_not_abort_the_program() -> None:
    """The sampler is in JAX for longer than it is waited for if it hangs; the interpreter ends all the same."""
    done = subprocess.run(
        [sys.executable, "-c", COMPUTES_AT_THE_END], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_event_wakes_all_that_wait() -> None:
    """An event wakes those that wait and those that come later, until it is cleared."""
    event = threads.Event()
    waits = [threads.Thread(lambda: event.wait() and event.wait(60.0), "waits") for _ in range(3)]
    for each in waits:
        each.start()
    assert not event.wait(0.01) and not event.is_set() and all(each.is_alive() for each in waits)
    event.set()
    for each in waits:
        each.join(60.0)
    assert not any(each.is_alive() for each in waits) and event.wait(0.0)
    event.clear()
    assert not event.is_set() and not event.wait(0.0)


def test_what_traces_the_programs_threads_does_not_run_in_ours() -> None:
    seen: list[str] = []
    ours = threads.Thread(lambda: textwrap.dedent("  a"), "ours")
    threading.setprofile(lambda frame, *_: seen.append(frame.f_code.co_name))
    ours.start()
    ours.join(60.0)
    threading.setprofile(None)  # type: ignore[arg-type]
    assert "dedent" not in seen and "run" in seen


def test_a_lock_is_reentrant_and_hidden_from_who_replaces_locks() -> None:
    """eventlet looks through whatever has a `__dict__`; another thread gets the lock when all is released."""
    lock = threads.RLock()
    assert not hasattr(lock, "__dict__") and not isinstance(lock, type(threading.RLock()))
    took: list[bool] = []
    other = threads.Thread(lambda: took.append(lock.acquire(timeout=60.0)), "takes")
    with lock:
        with lock:
            other.start()
        assert not took
    other.join(60.0)
    assert took == [True]


def test_a_nap_ends_in_the_middle_of_what_others_do() -> None:
    """Python runs for some milliseconds and naps for a moment, in turns: a usual wait would end in these moments."""
    done, seen = threading.Event(), 0
    work = compile("for _ in range(200_000): pass", "<work>", "exec")

    def turns() -> None:
        while not done.is_set():
            exec(work)
            time.sleep(0.0001)

    thread, usual = threading.Thread(target=turns), sys.getswitchinterval()
    thread.start()
    for _ in range(100):
        threads.nap(random.uniform(0.0, 0.005))
        seen += sys._current_frames()[thread.ident or 0].f_code is work
    done.set()
    thread.join()
    assert seen > 50 and sys.getswitchinterval() == usual


@pytest.mark.parametrize(("setting", "left"), [("fork", "0.005"), ("0.02", "0.02"), ("0.00002", "2e-05")])
def test_a_nap_leaves_the_switch_interval_to_the_program(setting: str, left: str) -> None:
    """A child has the usual one, and a program may set a longer or a shorter one during the nap."""
    program = f"""
    import os, sys, threading, time
    from jaxobs.base import threads
    thread = threading.Thread(target=threads.nap, args=(1.0,))
    thread.start()
    while sys.getswitchinterval() > 0.001:
        time.sleep(0.001)
    if "{setting}" != "fork":
        sys.setswitchinterval(float("{setting}"))
        thread.join()
        print(round(sys.getswitchinterval(), 6))
    elif os.fork():
        os.wait()
    else:
        print(round(sys.getswitchinterval(), 6))
        os._exit(sys.stdout.flush() or 0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{left}\n", done.stderr
