"""Forked and spawned children: silent until they use JAX, then themselves; never in the parent's way."""

from __future__ import annotations

import pathlib
import textwrap

import pytest
from helpers.run_programs import events, run_file

# JAX and newer versions of Python warn of every fork; whether that is wise is not what is tested here.
BEGIN = """
import multiprocessing, os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import jaxobs

def compile_something(size=3):
    import jax
    jax.jit(lambda x: x * 2 + size)(1.0)

def silent(): pass
def works(): compile_something()
def fails(): compile_something(); raise ValueError("worker's own")
def leaves(): compile_something(); sys.exit(4)

def wait(child):
    deadline = time.monotonic() + 100
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, 9)
            raise AssertionError("the child hangs")
        time.sleep(0.02)
    assert os.WIFEXITED(ended[1]), ended
    return os.WEXITSTATUS(ended[1])
"""


def _run(program: str, folder: pathlib.Path) -> str:
    """Runs a script with an event log and a metrics file in the folder; its output."""
    files = {"JAXOBS_EVENT_LOG": str(folder / "log"), "JAXOBS_METRICS_FILE": str(folder / "prom")}
    script = folder / "program.py"
    script.write_text(BEGIN + textwrap.dedent(program), encoding="utf-8")
    ran = run_file(script, **files)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _by_pid(folder: pathlib.Path) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for event in events(folder / "log"):
        found.setdefault(event["pid"], []).append(event["event"])
    return found


@pytest.mark.parametrize("end", ["sys.exit(5)", "os._exit(5)"])
def test_a_child_that_does_not_use_jax_is_silent(end: str, tmp_path: pathlib.Path) -> None:
    """No line, no file, no thread; its exit handlers run and say nothing, and the parent's last word is its own."""
    out = _run(
        f"""
        import jax
        jaxobs.install(sample_interval=0.05)
        child = os.fork()
        if child == 0:
            time.sleep(0.2)
            assert [each.name for each in threading.enumerate()] == ["MainThread"]
            {end}  # once the backend is awake, JAX alone crashes here
        print(os.getpid(), wait(child))
        compile_something()
        """,
        tmp_path,
    )
    pid, code = map(int, out.split())
    assert code == 5
    assert list(_by_pid(tmp_path)) == [pid]
    assert _by_pid(tmp_path)[pid][-1] == "exit"


def test_a_child_that_uses_jax_logs_under_its_own_pid(tmp_path: pathlib.Path) -> None:
    """From its own first event on, numbered from 1, with a manifest and an exit of its own."""
    out = _run(
        """
        import jax
        jaxobs.install()
        child = os.fork()
        if child == 0:
            compile_something()
            compile_something()
            assert sum(each.compiled for each in jaxobs.snapshot().functions) == 2
            print(os.getpid(), flush=True)
            sys.exit(0)
        assert wait(child) == 0
        compile_something()
        assert sum(each.compiled for each in jaxobs.snapshot().functions) == 1
        print(os.getpid())
        """,
        tmp_path,
    )
    child, parent = map(int, out.split())
    found = _by_pid(tmp_path)
    assert found[child].count("compilation") == 2
    assert found[child].count("manifest") == 1
    assert found[child][0] == "compilation" and found[child][-1] == "exit"
    assert found[parent].count("compilation") == 1
    numbers = [event["sequence"] for event in events(tmp_path / "log") if event["pid"] == child]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "jax_compilations_total{" in (tmp_path / "prom").read_text(encoding="utf-8")


def test_the_metrics_file_stays_the_parents(tmp_path: pathlib.Path) -> None:
    _run(
        """
        import jax
        jaxobs.install(metrics_interval=0.05, sample_interval=0.05)
        @jaxobs.jit
        def parents(x): return x + 1
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            childs = jaxobs.jit(lambda x: x + 2, name="childs")
            childs(1.0)
            time.sleep(0.4)
            sys.exit(0)
        parents(1.0)
        wait(child)
        """,
        tmp_path,
    )
    text = (tmp_path / "prom").read_text(encoding="utf-8")
    assert 'function="__main__.parents"' in text
    assert "childs" not in text
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["jaxobs-end-program.py.json", "log", "program.py", "prom"]


def test_a_child_of_a_parent_without_jax_is_seen_when_it_imports_jax(tmp_path: pathlib.Path) -> None:
    """Installed first, forked, and JAX imported on the other side only."""
    out = _run(
        """
        jaxobs.install()
        child = os.fork()
        if child == 0:
            compile_something()
            print(os.getpid(), sum(each.compiled for each in jaxobs.snapshot().functions), flush=True)
            sys.exit(0)
        assert wait(child) == 0
        assert "jax" not in sys.modules
        """,
        tmp_path,
    )
    child, compiled = map(int, out.split())
    assert compiled == 1
    first, *others, end = _by_pid(tmp_path)[child]
    assert (first, end) == ("manifest", "exit")
    # A last sample, where there was time for it, tells of memory and, in a manifest, of the devices.
    assert [each for each in others if each not in ("memory", "manifest")] == ["compilation"]


SERVES = """
    import socket, urllib.request
    INSTALL
    handle = jaxobs.serve(port=0)
    slow = socket.create_connection(("127.0.0.1", handle.port))
    time.sleep(0.1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        assert handle.closed
        links = [os.readlink(each.path) for each in os.scandir("/proc/self/fd") if os.path.lexists(each.path)]
        assert sum(link.startswith("socket:") for link in links) == 1, links  # its copy of `slow`
        os._exit(0)
    assert urllib.request.urlopen(handle.url + "healthz").read() == b"ok\\n"
    slow.sendall(b"GET /healthz HTTP/1.0\\r\\n\\r\\n")
    slow.settimeout(120)
    answer = b""
    while part := slow.recv(4096):
        answer += part
    assert answer.endswith(b"ok\\n")
    handle.close()
    again = jaxobs.serve(port=handle.port)
    again.close()
    socket.create_server(("127.0.0.1", handle.port)).close()
    os.write(writing, b"x")
    assert wait(child) == 0
    """
CHECKED = {
    "wrapped functions count anew": """
        import jax
        jaxobs.install()
        @jaxobs.jit
        def step(x): return x + 1
        def calls():
            return [each.calls for each in jaxobs.snapshot().functions if each.name == "__main__.step"]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            assert calls() == [0], calls()
            for _ in range(5): step(1.0)
            assert calls() == [5], calls()
            os._exit(0)
        for _ in range(3): step(1.0)
        os.write(writing, b"x")
        assert wait(child) == 0
        for _ in range(3): step(1.0)
        assert calls() == [6], calls()
        """,
    # The child holds neither the port nor a connection: the parent's end frees it.
    "the endpoint stays the parent's": SERVES.replace("INSTALL", "jaxobs.install()"),
    "an endpoint without more stays the parent's": SERVES.replace("INSTALL", ""),
    "a child may serve an endpoint that tells of the child": """
        import json, urllib.request
        handle = jaxobs.start(port=0)
        def told_by(handle):
            return json.load(urllib.request.urlopen(handle.url + "api/v1/snapshot"))["process"]["pid"]
        child = os.fork()
        if child == 0:
            own = jaxobs.start(port=0)
            assert own is not handle and own.port != handle.port
            assert told_by(own) == os.getpid()
            os._exit(0)
        assert wait(child) == 0
        assert told_by(handle) == os.getpid()
        """,
    # Threads record, log, scrape, fail and sample all the time; forty children do the same at once and end.
    "a fork while every lock is taken": """
        import logging, urllib.request
        from jaxobs.base import guard
        from jaxobs.state import store
        from jaxobs.exporters.forms.exposition import Renderer
        from jaxobs.facts.compilations import Compilation
        logging.disable(logging.CRITICAL)
        handle = jaxobs.start(port=0, sample_interval=0.05)
        import jax
        event = Compilation(time=1.0, function="f", cause="shape", reason="x" * 2000)
        stats, renderer, stop = store.current().call_stats("f"), Renderer(store.current()), False
        def everything():
            store.current().record(event)
            stats.failed(ValueError())
            stats.drain()
            guard.internal_error("here", ValueError())
            renderer.render()
            jaxobs.snapshot()
        def again_and_again(work):
            while not stop: work()
        works = [everything] * 3 + [lambda: urllib.request.urlopen(handle.url + "metrics").read()]
        threads = [threading.Thread(target=again_and_again, args=(work,)) for work in works]
        for thread in threads: thread.start()
        children = []
        for _ in range(40):
            child = os.fork()
            if child == 0:
                renderer = Renderer(store.current())
                everything()
                jaxobs.install(max_events=5)
                jaxobs.uninstall()
                os._exit(0)
            children.append(child)
            time.sleep(0.01)
        stop = True
        for thread in threads: thread.join()
        assert [wait(child) for child in children] == [0] * 40
        """,
    # Each lock of ours is held by another thread at the moment of the fork.
    "locks that others held are free in the child": """
        from jaxobs.base import guard
        from jaxobs.session import lifecycle
        from jaxobs.state import store
        from jaxobs.facts.compilations import Compilation
        jaxobs.install()
        import jax
        state, stats = store.current(), store.current().call_stats("f")
        holders = [state, stats, lifecycle._session, lifecycle._session._sampler]
        [source] = [each for each in lifecycle._session.sources if type(each).__name__ == "Compilations"]
        locks = [each._lock for each in (*holders, source)] + [guard._lock, lifecycle._lock, store._store_lock]
        held, over = threading.Barrier(len(locks) + 1), threading.Event()
        def hold(lock):
            with lock:
                held.wait()
                over.wait()
        for lock in locks: threading.Thread(target=hold, args=(lock,), daemon=True).start()
        held.wait()
        child = os.fork()
        if child == 0:
            state.record(Compilation(time=1.0, function="f", cause="shape", reason="."))
            stats.failed(ValueError())
            guard.internal_errors()
            compile_something()
            lifecycle._session.sample()
            jaxobs.snapshot()
            jaxobs.install(max_events=5)
            jaxobs.uninstall()
            os._exit(0)
        assert wait(child) == 0
        over.set()
        """,
}
"""Programs that check themselves."""


@pytest.mark.parametrize("name", CHECKED)
def test_parent_and_child_are_apart(name: str, tmp_path: pathlib.Path) -> None:
    _run(CHECKED[name], tmp_path)


# -------------------------------------------------------------------------------------------- multiprocessing


def test_workers_that_are_forked(tmp_path: pathlib.Path) -> None:
    """Silent, or with an exit of their own that says how it came; the parent's lines stay its own."""
    out = _run(
        """
        import jax
        jaxobs.install()
        context = multiprocessing.get_context("fork")
        sys.stderr = open(os.devnull, "w")
        for target in (silent, works, fails, leaves):
            worker = context.Process(target=target)
            worker.start()
            worker.join()
            print(worker.pid, worker.exitcode)
        print(os.getpid(), 0)
        """,
        tmp_path,
    )
    (silent, *_), (works, a), (fails, b), (leaves, c), (parent, _) = [
        map(int, line.split()) for line in out.splitlines()
    ]
    assert (a, b, c) == (0, 1, 4)
    exits = {event["pid"]: event for event in events(tmp_path / "log", "exit")}
    assert exits.keys() == {works, fails, leaves, parent}
    assert silent not in _by_pid(tmp_path)
    assert (exits[works]["reason"], exits[works]["code"]) == ("normal", None)
    assert (exits[fails]["reason"], exits[fails]["detail"], exits[fails]["code"]) == ("exception", "ValueError", 1)
    assert (exits[leaves]["reason"], exits[leaves]["code"]) == ("normal", 4)
    assert _by_pid(tmp_path)[works].count("compilation") == 1


@pytest.mark.slow
def test_workers_that_are_spawned(tmp_path: pathlib.Path) -> None:
    """New interpreters: those that install are observed under their own pid, the others are none of ours."""
    out = _run(
        """
        def installs():
            jaxobs.install()
            works()
        def installs_and_fails():
            jaxobs.install()
            fails()
        if __name__ == "__main__":
            jaxobs.install()
            context = multiprocessing.get_context("spawn")
            os.environ.pop("JAXOBS_METRICS_FILE")
            workers = [context.Process(target=each) for each in (works, installs, installs_and_fails)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            print(*[worker.pid for worker in workers], os.getpid())
        """,
        tmp_path,
    )
    _, installs, fails, parent = map(int, out.split())
    found = _by_pid(tmp_path)
    assert found.keys() == {installs, fails} or found.keys() == {installs, fails, parent}
    for pid in (installs, fails):
        assert found[pid].count("compilation") == 1
        assert found[pid][-1] == "exit"
    exits = {event["pid"]: event["detail"] for event in events(tmp_path / "log", "exit")}
    assert (exits[installs], exits[fails]) == (None, "ValueError")


def test_a_pool_of_workers_that_is_terminated(tmp_path: pathlib.Path) -> None:
    """`Pool.terminate` sends SIGTERM: the workers die of it as they would without us, and the parent goes on."""
    _run(
        """
        import jax
        jaxobs.install()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]
        pool.join()  # no worker ignores SIGTERM
        compile_something()
        """,
        tmp_path,
    )
    assert [event["event"] for event in events(tmp_path / "log")][-1] == "exit"
    assert len(_by_pid(tmp_path)) == 1
