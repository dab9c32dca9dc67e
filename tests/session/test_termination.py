"""`on_sigterm`: last words, then the death that SIGTERM brings, in real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from helpers.paths import ROOT
from helpers.waiting import HANG_SECONDS

START = """
import os, signal, sys, threading, time
from jaxobs.session.termination import on_sigterm

def last_words():
    print("told", flush=True)

undo = on_sigterm(last_words)
"""
READY = 'print("ready", flush=True)\n'
WAITS = f"\n{READY}time.sleep(3600)\n"
# To lock a mutex twice is never interrupted, and lets other threads have the interpreter.
STUCK = f"""
import ctypes
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(mutex)
{READY}libc.pthread_mutex_"""
FOREVER = f"{STUCK}lock(mutex)\n"
THREE_SECONDS = f"{STUCK}timedlock(mutex, (ctypes.c_long * 2)(int(time.time()) + 3, 0))\n"


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with an empty `jax`, whose import is what matters here, and a `trio` as particular as the real one."""
    (tmp_path / "jax.py").write_text("")
    (tmp_path / "trio.py").write_text("import signal\ndef run(): print('found', signal.set_wakeup_fd(-1))")
    return tmp_path


def run(source: str, modules: Path) -> tuple[str, str, int, float]:
    """Output, error output, return code and seconds from SIGTERM, sent if `ready` was printed, to the end."""
    with subprocess.Popen(
        # From 3.12 on, a fork beside any thread is warned of.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + textwrap.dedent(source)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=modules,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(modules), str(ROOT)))},
    ) as process:  # fmt: skip
        try:
            before = ""
            assert process.stdout is not None
            while not before.endswith("ready\n") and (line := process.stdout.readline()):
                before += line
            sent = time.monotonic()
            if before.endswith("ready\n"):
                time.sleep(0.1)
                process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=HANG_SECONDS)
            return before + out, err, process.returncode, time.monotonic() - sent
        finally:
            process.kill()


BLOCKED = "{<Signals.SIGTERM: 15>}\n"
CASES: dict[str, tuple[str, str, int]] = {
    "last words and death": (f"{WAITS}print('never')", "ready\ntold\n", -15),
    "a busy main thread does not go on": (
        "os.kill(os.getpid(), signal.SIGTERM); print('never', flush=True)", "told\n", -15,
    ),
    "no thread before JAX": (
        "print(threading.active_count(), signal.set_wakeup_fd(-1)); import jax; print(threading.active_count())",
        "1 -1\n2\n", 0,
    ),
    "the callback gets a lock that the interrupted code held": ("""
        lock = threading.Lock()
        def last_words():
            with lock:
                print("told with the lock", flush=True)
        undo()
        on_sigterm(last_words)
        with lock:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(3600)
        """, "told with the lock\n", -15),
    "a handler of the program's that calls the one before it": ("""
        def handler(signum, frame):
            print("own", flush=True)
            before(signum, frame)
        before = signal.signal(signal.SIGTERM, handler)
        os.kill(os.getpid(), signal.SIGTERM)
        """, "own\ntold\n", -15),
    "undo takes handler, wakeup descriptor and thread away": ("""
        import jax
        undo(); undo()
        time.sleep(0.2)
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.set_wakeup_fd(-1), threading.active_count())
        print("ready", flush=True)
        time.sleep(3600)
        """, "True -1 1\nready\n", -15),
    "undo leaves the program's handler": ("""
        import jax, socket
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        one, two = socket.socketpair()
        one.setblocking(False)
        signal.set_wakeup_fd(one.fileno())
        undo()
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN, signal.set_wakeup_fd(-1) == one.fileno())
        """, "True True\n", 0),
    # Handlers cannot be changed there: the callback is taken out, and the next one put in.
    "undo off the main thread": ("""
        import jax
        thread = threading.Thread(target=undo)
        thread.start(); thread.join()
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        on_sigterm(lambda: print("the next", flush=True))
        os.kill(os.getpid(), signal.SIGTERM)
        """, "-15\nthe next\n", -15),
    "nothing is installed off the main thread": ("""
        undo()
        thread = threading.Thread(target=on_sigterm, args=(last_words,))
        thread.start(); thread.join()
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
        """, "True\n", 0),
    "a wakeup descriptor of the program's stays": ("""
        import socket
        one, two = socket.socketpair()
        one.setblocking(False)
        signal.set_wakeup_fd(one.fileno())
        import jax
        print(signal.set_wakeup_fd(-1) == one.fileno(), threading.active_count(), flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        """, "True 1\ntold\n", -15),
    "asyncio takes the wakeup descriptor and is not fought": ("""
        import asyncio, jax
        async def main():
            got = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.wait_for(got.wait(), 5)
            print("loop done", flush=True)
        asyncio.run(main())
        os.kill(os.getpid(), signal.SIGTERM)
        """, "loop done\ntold\n", -15),
    "trio, imported after JAX, finds no wakeup descriptor": ("import jax, trio; trio.run()", "found -1\n", 0),
    "trio, imported before JAX, finds no wakeup descriptor": ("import trio, jax; trio.run()", "found -1\n", 0),
    "a timer of a thousand signals a second": ("""
        import jax, resource
        handled = []
        signal.signal(signal.SIGALRM, lambda *a: handled.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        while time.monotonic() - started < 1:
            time.sleep(0.01)
        # Once for the main thread, and not once more for the watcher.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before < 1.5 * len(handled) + 100
        print("ready", flush=True)
        while True:
            time.sleep(0.01)
        """, "ready\ntold\n", -15),
    # However soon after the fork a child is terminated, it dies of it, and the parent is not taken for it.
    "forked children die silently": ("""
        import jax
        for number in range(100):
            child = os.fork()
            if child == 0:
                time.sleep(3600)
                os._exit(0)
            if number % 2:
                time.sleep(0.005)
            os.kill(child, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == -15
        if os.fork() == 0:
            print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.set_wakeup_fd(-1), flush=True)
            os._exit(0)
        os.wait()
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
        time.sleep(2)
        print("ready", flush=True)
        time.sleep(3600)
        """, "True -1\nset()\nready\ntold\n", -15),
    "SIGTERM that the program has blocked stays blocked in parent and child": ("""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        if os.fork() == 0:
            print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
            os._exit(0)
        os.wait()
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
        """, BLOCKED + BLOCKED, 0),
}  # fmt: skip
"""Programs, what they print, and their return codes."""


@pytest.mark.parametrize("name", CASES)
def test_a_program_ends_as_without_us_after_its_last_words(name: str, modules: Path) -> None:
    source, out, code = CASES[name]
    assert run(source, modules)[:3] == (out, "", code)


@pytest.mark.parametrize("handler", ["lambda *a: sys.exit(7)", "signal.SIG_IGN"])
@pytest.mark.parametrize("when", ["before", "after", "stuck"])
def test_the_programs_own_handler_wins(handler: str, when: str, modules: Path) -> None:
    install = f"signal.signal(signal.SIGTERM, {handler})"
    again = f"undo(); {install}; on_sigterm(last_words)" if when == "before" else install
    wait = THREE_SECONDS if when == "stuck" else f"{READY}time.sleep(3)"
    out, err, code, _ = run(f"import jax; {again}\n{wait}\nsys.exit(8)", modules)
    assert (out, err, code) == ("ready\n", "", 8 if handler == "signal.SIG_IGN" else 7)


def test_a_main_thread_stuck_in_c(modules: Path) -> None:
    """Once JAX is there, a main thread that runs no bytecode does not keep the process alive."""
    out, err, code, seconds = run(f"import jax\n{FOREVER}", modules)
    assert (out, err, code) == ("ready\ntold\n", "", -15)
    assert seconds >= 1


def test_a_callback_that_hangs(modules: Path) -> None:
    """The process dies all the same, after a grace."""
    _, err, code, seconds = run(f"undo(); on_sigterm(lambda: time.sleep(3600)){WAITS}", modules)
    assert (err, code) == ("", -15)
    assert seconds > 4


def test_a_callback_that_fails(modules: Path) -> None:
    """The process dies of SIGTERM, and the failure is logged."""
    _, err, code, _ = run(f"undo(); on_sigterm(lambda: 1 / 0){WAITS}", modules)
    assert code == -15
    assert "jaxobs failed in `termination`" in err


def test_sigterm_while_the_interpreter_ends(modules: Path) -> None:
    """The process still dies of it, when no thread can be started any more."""
    source = """
        class Last:
            def __del__(self, os=os, getpid=os.getpid, kill=os.kill):
                kill(getpid(), 15)
                for _ in range(10**8): pass
        last = Last()
        """
    assert run(source, modules)[2] == -15
