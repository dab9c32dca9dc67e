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
# To lock a mutex twice is never interrupted, and lets other threads have the interpreter.
STUCK = """
import ctypes
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(mutex)
print("ready", flush=True)
libc.pthread_mutex_{}
"""
FOREVER = STUCK.format("lock(mutex)")
THREE_SECONDS = STUCK.format("timedlock(mutex, (ctypes.c_long * 2)(int(time.time()) + 3, 0))")


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with an empty `jax`, whose import is what matters here, and a `trio` as particular as the real one."""
    (tmp_path / "jax.py").write_text("")
    (tmp_path / "trio.py").write_text("import signal\ndef run(): print('found', signal.set_wakeup_fd(-1))")
    return tmp_path


def run(source: str, modules: Path, send: signal.Signals | None = None) -> tuple[str, str, int, float]:
    """Output, error output, return code and the seconds from the signal, sent when `ready` was printed, to the end."""
    with subprocess.Popen(
        # From 3.12 on, a fork beside any thread is warned of.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + textwrap.dedent(source)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=modules,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(modules), str(ROOT)))},
    ) as process:  # fmt: skip
        try:
            before = ""
            assert process.stdout is not None
            if send is not None:
                while not before.endswith("ready\n"):
                    line = process.stdout.readline()
                    assert line, process.communicate()
                    before += line
                time.sleep(0.1)
            sent = time.monotonic()
            if send is not None:
                process.send_signal(send)
            out, err = process.communicate(timeout=HANG_SECONDS)
            return before + out, err, process.returncode, time.monotonic() - sent
        finally:
            process.kill()


def test_last_words_and_death(modules: Path) -> None:
    """The callback comes, nothing after it, and the parent sees death by SIGTERM, at once."""
    outcome = run("print('ready', flush=True); time.sleep(3600); print('never')", modules, signal.SIGTERM)
    assert outcome[:3] == ("ready\ntold\n", "", -signal.SIGTERM)


def test_a_busy_main_thread(modules: Path) -> None:
    """The program does not go on after the signal, as it would not without a handler."""
    outcome = run("os.kill(os.getpid(), signal.SIGTERM); print('never', flush=True)", modules)
    assert outcome[:3] == ("told\n", "", -signal.SIGTERM)


def test_a_main_thread_stuck_in_c(modules: Path) -> None:
    """Once JAX is there, a main thread that runs no bytecode does not keep the process alive."""
    out, err, code, seconds = run(f"import jax\n{FOREVER}", modules, signal.SIGTERM)
    assert (out, err, code) == ("ready\ntold\n", "", -signal.SIGTERM)
    assert seconds >= 1


def test_no_thread_before_jax(modules: Path) -> None:
    """A program that never imports JAX gets a handler and nothing else."""
    source = "print(threading.active_count(), signal.set_wakeup_fd(-1)); import jax; print(threading.active_count())"
    assert run(source, modules)[:3] == ("1 -1\n2\n", "", 0)


def test_a_lock_held_by_the_main_thread(modules: Path) -> None:
    """The callback gets the lock that the interrupted code held, since the handler lets go in time."""
    source = """
        lock = threading.Lock()
        def last_words():
            with lock:
                print("told with the lock", flush=True)
        undo()
        on_sigterm(last_words)
        with lock:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(3600)
        """
    out, err, code, _ = run(source, modules)
    assert (out, err, code) == ("told with the lock\n", "", -signal.SIGTERM)


def test_a_callback_that_hangs(modules: Path) -> None:
    """The process dies all the same, after a grace."""
    source = "undo(); on_sigterm(lambda: time.sleep(3600)); print('ready', flush=True); time.sleep(3600)"
    _, err, code, seconds = run(source, modules, signal.SIGTERM)
    assert (err, code) == ("", -signal.SIGTERM)
    assert seconds > 4


def test_a_callback_that_fails(modules: Path) -> None:
    """The process dies of SIGTERM, and the failure is logged."""
    source = "undo(); on_sigterm(lambda: 1 / 0); print('ready', flush=True); time.sleep(3600)"
    _, err, code, _ = run(source, modules, signal.SIGTERM)
    assert code == -signal.SIGTERM
    assert "jaxobs failed in `termination`" in err


@pytest.mark.parametrize("handler", ["lambda *a: sys.exit(7)", "signal.SIG_IGN"])
@pytest.mark.parametrize("when", ["before", "after", "stuck"])
def test_the_programs_own_handler_wins(handler: str, when: str, modules: Path) -> None:
    install = f"signal.signal(signal.SIGTERM, {handler})"
    again = f"undo(); {install}; on_sigterm(last_words)" if when == "before" else install
    wait = THREE_SECONDS if when == "stuck" else "print('ready', flush=True); time.sleep(3)"
    out, err, code, _ = run(f"import jax; {again}\n{wait}\nsys.exit(8)", modules, signal.SIGTERM)
    assert (out, err, code) == ("ready\n", "", 8 if handler == "signal.SIG_IGN" else 7)


def test_a_handler_that_calls_the_one_before_it(modules: Path) -> None:
    """A program that passes the signal on to the handler that it found dies by it."""
    source = """
        def handler(signum, frame):
            print("own", flush=True)
            before(signum, frame)
        before = signal.signal(signal.SIGTERM, handler)
        os.kill(os.getpid(), signal.SIGTERM)
        """
    assert run(source, modules)[:3] == ("own\ntold\n", "", -signal.SIGTERM)


def test_undo(modules: Path) -> None:
    """Handler, wakeup descriptor and thread are gone, and SIGTERM kills without a word."""
    source = """
        import jax
        undo(); undo()
        time.sleep(0.2)
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.set_wakeup_fd(-1), threading.active_count())
        print("ready", flush=True)
        time.sleep(3600)
        """
    assert run(source, modules, signal.SIGTERM)[:3] == ("True -1 1\nready\n", "", -signal.SIGTERM)


def test_undo_leaves_the_programs_handler(modules: Path) -> None:
    source = """
        import jax, socket
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        one, two = socket.socketpair()
        one.setblocking(False)
        signal.set_wakeup_fd(one.fileno())
        undo()
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN, signal.set_wakeup_fd(-1) == one.fileno())
        """
    assert run(source, modules)[:3] == ("True True\n", "", 0)


def test_undo_off_the_main_thread(modules: Path) -> None:
    """Handlers cannot be changed there: the callback is taken out, and the next one put in."""
    source = """
        import jax
        thread = threading.Thread(target=undo)
        thread.start(); thread.join()
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        on_sigterm(lambda: print("the next", flush=True))
        os.kill(os.getpid(), signal.SIGTERM)
        """
    assert run(source, modules)[:3] == ("-15\nthe next\n", "", -signal.SIGTERM)


def test_off_the_main_thread_nothing_is_installed(modules: Path) -> None:
    """There is nothing that could be."""
    source = """
        undo()
        thread = threading.Thread(target=on_sigterm, args=(last_words,))
        thread.start(); thread.join()
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
        """
    assert run(source, modules)[:3] == ("True\n", "", 0)


def test_a_wakeup_descriptor_of_the_program_stays(modules: Path) -> None:
    source = """
        import socket
        one, two = socket.socketpair()
        one.setblocking(False)
        signal.set_wakeup_fd(one.fileno())
        import jax
        print(signal.set_wakeup_fd(-1) == one.fileno(), threading.active_count(), flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        """
    assert run(source, modules)[:3] == ("True 1\ntold\n", "", -signal.SIGTERM)


def test_asyncio_takes_the_wakeup_descriptor_and_is_not_fought(modules: Path) -> None:
    """Signals of a loop arrive, and SIGTERM still has its last words."""
    source = """
        import asyncio, jax
        async def main():
            got = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.wait_for(got.wait(), 5)
            print("loop done", flush=True)
        asyncio.run(main())
        os.kill(os.getpid(), signal.SIGTERM)
        """
    assert run(source, modules)[:3] == ("loop done\ntold\n", "", -signal.SIGTERM)


def test_trio_finds_no_wakeup_descriptor(modules: Path) -> None:
    for modules_in_order in ("jax, trio", "trio, jax"):
        assert run(f"import {modules_in_order}; trio.run()", modules)[:3] == ("found -1\n", "", 0)


def test_many_other_signals(modules: Path) -> None:
    """A program that lives by a timer of a thousand signals a second is not mistaken, and can be ended."""
    source = """
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
        """
    assert run(source, modules, signal.SIGTERM)[:3] == ("ready\ntold\n", "", -signal.SIGTERM)


def test_forked_children_die_silently_and_the_parent_lives(modules: Path) -> None:
    """However soon after the fork a child is terminated, it dies of it, and the parent is not taken for it."""
    source = """
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
        """
    assert run(source, modules, signal.SIGTERM)[:3] == ("True -1\nset()\nready\ntold\n", "", -signal.SIGTERM)


def test_a_mask_of_the_program_survives_a_fork(modules: Path) -> None:
    """SIGTERM that the program itself has blocked stays blocked, in parent and child."""
    source = """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        if os.fork() == 0:
            print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
            os._exit(0)
        os.wait()
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
        """
    blocked = "{<Signals.SIGTERM: 15>}\n"
    assert run(source, modules)[:3] == (blocked + blocked, "", 0)


def test_sigterm_while_the_interpreter_ends(modules: Path) -> None:
    """The process still dies of it, when no thread can be started any more."""
    source = """
        class Last:
            def __del__(self, os=os, getpid=os.getpid, kill=os.kill):
                kill(getpid(), 15)
                for _ in range(10**8): pass
        last = Last()
        """
    assert run(source, modules)[2] == -signal.SIGTERM
