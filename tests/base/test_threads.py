"""Waiting for threads of ours at the program's end."""

import gc
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


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collects between two instructions of Python only")
@pytest.mark.parametrize("enabled", [True, False])
def test_nothing_is_collected_while_stacks_are_read(enabled: bool) -> None:
    """Until the last of several blocks ends; a program that turned collections off keeps them off."""
    usual = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with threads.current_frames() as frames:
            with threads.current_frames() as others:
                assert threading.get_ident() in frames and threading.get_ident() in others and not gc.isenabled()
            assert not gc.isenabled() and not others
        assert gc.isenabled() == enabled and not frames
    finally:
        (gc.enable if usual else gc.disable)()


READS_STACKS = """
import gc, jax, numpy as np, sys, threading, time
from jaxobs.base import threads

class Kept:
    pass

def called(depth):
    kept = Kept()
    kept.kept, kept.array = kept, None if depth % 4 else jax.device_put(ones)
    return called(depth - 1) if depth else None

def calls():
    for _ in range(20):
        yield called(40)

def read():
    while not stopped:
        with threads.current_frames() as frames:
            for frame in list(frames.values()):
                while frame is not None:
                    code, frame = frame.f_code, frame.f_back

ones, stopped = np.ones(1000, np.float32), False
sys.setswitchinterval(1e-5)
gc.set_threshold(20, 2, 2)
thread, until = threading.Thread(target=read), time.monotonic() + 20
thread.start()
while time.monotonic() < until:
    list(calls())
stopped = True
thread.join()
print(gc.isenabled(), end="")
"""


@pytest.mark.slow
def test_stacks_are_read_while_arrays_in_cycles_are_freed() -> None:
    """Without the pause of collections, Python 3.11 crashes in most such runs."""
    ran = subprocess.run([sys.executable, "-c", READS_STACKS], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "True"), ran.stderr


@pytest.mark.parametrize("enabled", [True, False])
def test_a_child_that_is_forked_meanwhile_collects_as_its_parent(enabled: bool) -> None:
    program = f"""
    import gc, os
    from jaxobs.base import threads
    {"gc.enable()" if enabled else "gc.disable()"}
    with threads.current_frames():
        pid = os.fork()
        if not pid:
            with threads.current_frames():
                pass
            os._exit(0 if gc.isenabled() is {enabled} else 1)
        print(os.waitpid(pid, 0)[1], end="")
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert ran.stdout == "0", ran.stderr


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
