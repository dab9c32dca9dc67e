"""Captures in processes of their own: SIGUSR2, forked children, devices asleep, and captures under way at the end."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT
from helpers.run_programs import environment, events, run

BEGIN = """
import json, logging, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import jaxobs

def ended():
    while current() is not None:
        time.sleep(0.01)

def current():
    from jaxobs.actions.capturing import runner
    return runner.of(jaxobs.state.store.current())._current

def actions():
    found, _, _ = jaxobs.state.store.current().events(kind="action")
    return [(each.name, each.origin, each.result) for each in found]
"""
STEP = """
import jax, jax.numpy as jnp
@jaxobs.jit
def train_step(x):
    return x * 2
x = train_step(jnp.ones(3))
"""


def outcome(program: str, folder: Path, **variables: str) -> Any:
    given = {"JAXOBS_CAPTURE_DIRECTORY": str(folder / "captures"), "JAXOBS_CAPTURE_INTERVAL": "0"} | variables
    done = run(BEGIN + textwrap.dedent(program), **given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def start(program: str, folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + STEP + textwrap.dedent(program)], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        env=environment(JAXOBS_EVENT_LOG=str(folder / "log")),
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
    return process


def test_sigusr2(tmp_path: Path) -> None:
    """A capture is made and the program goes on; its own handler is called too, and is back after `uninstall`."""
    found = outcome(
        """
        heard = []
        def own(number, frame):
            heard.append(number)
        signal.signal(signal.SIGUSR2, own)
        jaxobs.install(capture_signal="memory")
        os.kill(os.getpid(), signal.SIGUSR2)   # nothing is awake yet
        ended()
        while not actions():
            time.sleep(0.01)
        """
        + textwrap.indent(STEP, " " * 8)
        + """
        os.kill(os.getpid(), signal.SIGUSR2)
        while len(actions()) < 2:
            time.sleep(0.01)
        jaxobs.install(capture_signal="profile")
        os.kill(os.getpid(), signal.SIGUSR2)
        while len(actions()) < 3:
            x = train_step(x)
            time.sleep(0.01)
        jaxobs.install(capture_signal="off")
        off = signal.getsignal(signal.SIGUSR2) is own
        jaxobs.install(capture_signal="memory")
        jaxobs.uninstall()
        print(json.dumps([heard, actions(), off, signal.getsignal(signal.SIGUSR2) is own]))
        """,
        tmp_path,
    )
    told = [["memory", "signal", "refused"], ["memory", "signal", "done"], ["profile", "signal", "done"]]
    assert found == [[signal.SIGUSR2] * 3, told, True, True]
    names = sorted(each.name.partition("-")[0] for each in (tmp_path / "captures").iterdir())
    assert names == ["memory", "profile"]


def test_sigusr2_captures_both_where_nobody_handles_it(tmp_path: Path) -> None:
    found = outcome(
        STEP
        + """
jaxobs.install()
os.kill(os.getpid(), signal.SIGUSR2)
while len(actions()) < 2:
    x = train_step(x)
    time.sleep(0.01)
jaxobs.uninstall()
print(json.dumps([actions(), signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL]))
""",
        tmp_path,
    )
    assert found == [[["memory", "signal", "done"], ["profile", "signal", "done"]], True]


def test_sigusr2_is_left_alone(tmp_path: Path) -> None:
    """The signal stays the program's if captures by it are off, or somebody else has taken it, in Python or in C."""
    found = outcome(
        """
        import faulthandler
        def is_left(handler, **settings):
            jaxobs.install(**settings)
            left = signal.getsignal(signal.SIGUSR2) is handler
            jaxobs.uninstall()
            return left

        off = is_left(signal.SIG_DFL, capture_signal="off")
        own = lambda number, frame: None
        signal.signal(signal.SIGUSR2, own)
        asked = is_left(own)
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
        faulthandler.register(signal.SIGUSR2, file=open(os.devnull, "w"))
        asked = asked and is_left(signal.SIG_DFL)
        faulthandler.unregister(signal.SIGUSR2)

        thread = threading.Thread(target=jaxobs.install, kwargs={"capture_signal": "memory"})
        thread.start(); thread.join()
        elsewhere = signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
        jaxobs.uninstall()

        jaxobs.install(capture_signal="memory")
        signal.signal(signal.SIGUSR2, own)
        jaxobs.uninstall()
        kept = signal.getsignal(signal.SIGUSR2) is own
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)

        faulthandler.register(signal.SIGUSR2, file=open(os.devnull, "w"))
        jaxobs.install(capture_signal="memory")
        in_c = signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
        os.kill(os.getpid(), signal.SIGUSR2)
        notes = [each for each in jaxobs.snapshot().observer.notes if "SIGUSR2" in each]
        print(json.dumps([[off, asked, elsewhere, kept, in_c], notes, actions()]))
        """,
        tmp_path,
    )
    assert (found[0], found[2]) == ([True] * 5, [])
    assert ["main thread" in found[1][0], "faulthandler" in found[1][1]] == [True, True]


def test_devices_stay_asleep(tmp_path: Path) -> None:
    found = outcome(
        """
        before = jaxobs.capture("memory").detail
        import jax
        after = [jaxobs.capture(name).detail for name in ("memory", "profile")]
        print(json.dumps([before, *after, jax._src.xla_bridge.backends_are_initialized()]))
        """,
        tmp_path,
    )
    assert [("never initializes a backend" in each) for each in found[:3]] == [True] * 3
    assert found[3] is False
    assert not (tmp_path / "captures").exists()


def test_forked_children(tmp_path: Path) -> None:
    """A child forked with JAX awake captures nothing and hangs nowhere; one that wakes JAX itself may capture."""
    found = outcome(
        """
        def child(what):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.write(write, json.dumps(what()).encode())
                os._exit(0)
            os.waitpid(pid, 0)
            return json.loads(os.read(read, 4096))

        def captures():
            os.kill(os.getpid(), signal.SIGUSR2)
            time.sleep(0.1)
            results = [jaxobs.capture(name).wait(120).result for name in ("memory", "profile")]
            return results, {origin for _, origin, _ in actions()} == {"python"}

        def own():
            import jax
            jax.numpy.ones(3).block_until_ready()
            os.kill(os.getpid(), signal.SIGUSR2)
            while not actions():
                time.sleep(0.01)
            ended()
            return jaxobs.capture("memory").result, len(actions())

        jaxobs.install(capture_signal="memory")
        asleep, itself = child(captures), child(own)
        """
        + textwrap.indent(STEP, " " * 8)
        + """
        under_way = jaxobs.capture("profile", steps=1)
        awake = child(captures)
        train_step(x)
        print(json.dumps([asleep, itself, awake, under_way.wait(120).result]))
        """,
        tmp_path,
    )
    assert found == [[["refused"] * 2, True], ["done", 2], [["refused"] * 2, True], "done"]


@pytest.mark.parametrize(
    ("begin", "end"),
    [("jaxobs.install()", "raise SystemExit(3)"), ("jaxobs.install()", "jaxobs.uninstall()"), ("", "")],
    ids=["installed, an exception", "uninstalled", "never installed"],
)
def test_a_trace_under_way_at_the_end(begin: str, end: str, tmp_path: Path) -> None:
    process = start(
        f"""
        {begin}
        capture = jaxobs.capture("profile", steps=1000)
        train_step(x)
        print("ready", flush=True)
        {end}
        """,
        tmp_path,
    )
    assert process.wait(120) == (3 if "3" in end else 0)
    [folder] = [each for each in tmp_path.iterdir() if each.is_dir()]
    assert folder.name.startswith("profile-")
    assert list(folder.rglob("*.xplane.pb"))
    if begin:
        [event] = events(tmp_path / "log", "action")
        assert (event["result"], event["path"]) == ("done", str(folder))
        assert event["detail"].startswith("1 step of `__main__.train_step` of 1000 in ")


def test_sigterm_under_way(tmp_path: Path) -> None:
    process = start(
        """
        jaxobs.install()
        capture = jaxobs.capture("profile", steps=1000)
        print("ready", flush=True)
        time.sleep(3600)
        """,
        tmp_path,
    )
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(120) == -signal.SIGTERM
    told = events(tmp_path / "log")
    assert [each["event"] for each in told if each["event"] in ("action", "exit")] == ["action", "exit"]
    [path] = [each["path"] for each in told if each["event"] == "action"]
    assert list(Path(path).rglob("*.xplane.pb"))


def test_a_capture_that_hangs_does_not_hold_the_exit(tmp_path: Path) -> None:
    process = start(
        """
        from jaxobs.actions.capturing import runner
        runner.EXIT_SECONDS = 0.5
        jax.profiler.device_memory_profile = lambda: time.sleep(3600)
        threading.Thread(target=jaxobs.capture, args=("memory",), daemon=True).start()
        while current() is None:
            time.sleep(0.01)
        print("ready", flush=True)
        """,
        tmp_path,
    )
    assert process.wait(120) == 0
