"""Children by spawn and forkserver under `jaxobs run`: observed as forked ones are, and started as ever."""

import pathlib
import pickle
import subprocess
import sys
import textwrap

import pytest
from helpers.run_programs import environment, events, programs

from jaxobs.session import children

WORKERS = programs(__file__)["workers"]


def _run(program: str, folder: pathlib.Path, *options: str) -> list[int]:
    """Runs a program with an event log; the numbers that it prints."""
    script = folder / "program.py"
    script.write_text(WORKERS + "if __name__ == '__main__':\n" + textwrap.indent(textwrap.dedent(program), "    "))
    words = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", "log", *options, str(script)]
    ran = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return [int(word) for word in ran.stdout.split()]


def _by_pid(folder: pathlib.Path) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for event in events(folder / "log"):
        found.setdefault(event["pid"], []).append(event["event"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_are_observed_whichever_way_they_start(method: str, tmp_path: pathlib.Path) -> None:
    """Silent until they use JAX; then with an end of their own, in the parent's log and not in its metrics."""
    silent, works, fails = _run(
        f"""
        os.chdir("/")
        context = multiprocessing.get_context({method!r})
        sys.stderr = open(os.devnull, "w")
        for target in (silent, works, fails):
            child = context.Process(target=target)
            child.start(); child.join()
            if target is not silent: print(child.pid, flush=True)
        """,
        tmp_path, "--metrics-file", "m.prom",
    )  # fmt: skip
    found = _by_pid(tmp_path)
    assert silent not in found
    for pid in (works, fails):
        assert found[pid][-1] == "exit"
        assert found[pid].count("manifest") == 1
        assert "compilation" in found[pid]
    ends = {event["pid"]: (event["reason"], event["detail"]) for event in events(tmp_path / "log", "exit")}
    assert ends[works] == ("normal", None)
    assert ends[fails] == ("exception", "ValueError")
    names = {each.name for each in tmp_path.iterdir() if not each.name.startswith("last-minutes")}
    assert names == {"program.py", "log", "m.prom"}


def test_workers_of_a_pool_and_children_of_children_are_observed(tmp_path: pathlib.Path) -> None:
    """As libraries start them; the children of a child under the same settings."""
    pids = _run(
        """
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            print(pool.submit(works).result(), flush=True)
        child = multiprocessing.get_context("spawn").Process(target=parent_of, args=("forkserver",))
        child.start(); child.join()
        """,
        tmp_path,
    )
    found = _by_pid(tmp_path)
    assert len(pids) == 2
    for pid in pids:
        assert "compilation" in found[pid]


def test_what_goes_to_a_child(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Not the parent's port and metrics; paths that hold wherever it is; none of the main script's functions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAXOBS_CAPTURE_DIRECTORY", "captures")
    given = {
        "port": 9464, "metrics_file": "m.prom", "event_log": "log-{pid}", "flight_recorder": "off", "find_loops": True,
        "instrument": ("train:step", "__main__:step", "model:call"),
    }  # fmt: skip
    assert children._for_child(given, {"__main__", "train"}) == {
        "event_log": f"{tmp_path}/log-{{pid}}", "capture_directory": f"{tmp_path}/captures", "flight_recorder": "off",
        "find_loops": True, "instrument": ["model:call"],
    }  # fmt: skip


def test_a_child_without_jaxobs_starts_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pickle.dumps(children._Entry({"event_log": "/log"}, "train.py"))
    assert isinstance(pickle.loads(entry), children._Entry)
    for name in [each for each in sys.modules if each.partition(".")[0] == "jaxobs"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert pickle.loads(entry) is None


def test_children_by_subprocess_are_none_of_ours(tmp_path: pathlib.Path) -> None:
    program = """
        import subprocess
        code = "import sys; print(0 if any('jaxobs' in each for each in sys.modules) else 1)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    """
    assert _run(program, tmp_path) == [1]
