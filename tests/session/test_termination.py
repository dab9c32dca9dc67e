"""`on_sigterm`: last words, then the death that SIGTERM brings, in real processes."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from helpers.paths import ROOT
from helpers.run_programs import programs
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


CASES = programs(__file__)["cases"]
"""Programs, what they print, and their return codes."""


@pytest.mark.parametrize("name", CASES)
def test_a_program_ends_as_without_us_after_its_last_words(name: str, modules: Path) -> None:
    case = CASES[name]
    assert run(case["program"], modules)[:3] == (case["out"], "", case["code"])


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
