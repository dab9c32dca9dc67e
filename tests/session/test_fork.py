"""Forked and spawned children: silent until they use JAX, then themselves; never in the parent's way."""

import pathlib
import textwrap

import pytest
from helpers.run_programs import events, programs, run_file

PROGRAMS = programs(__file__)

BEGIN = PROGRAMS["begin"]


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


CHECKED: dict[str, str] = PROGRAMS["checked"]
CHECKED["an endpoint without more stays the parent's"] = CHECKED["the endpoint stays the parent's"].replace(
    "jaxobs.install()\n", ""
)
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
