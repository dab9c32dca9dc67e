"""How a process ended, as the next one at its place knows: from real processes, and from files that are damaged."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.paths import ROOT
from helpers.run_programs import programs

from jaxobs.base.process import process_age
from jaxobs.recorder import predecessors
from jaxobs.recorder.predecessors import Life
from tools.quick_xla import quick

PROGRAM = programs(__file__)["program"]


@pytest.mark.slow
def test_each_end_is_known_to_the_next_process(tmp_path: Path) -> None:
    found = []
    for how in ("normal", "killed", "signal", "error", "out_of_memory", "normal"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, how, str(tmp_path / "events.jsonl")], capture_output=True, text=True,
            check=False, timeout=120, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": quick()},
        )  # fmt: skip
        found += [line.partition(": ")[2] for line in done.stdout.splitlines() if line.startswith("last: ")]
    assert found == ["unknown", "normal", "killed", "signal", "error", "out_of_memory"]


@pytest.mark.parametrize(
    ("kills", "group", "end"),
    [(3, "/job", "out_of_memory"), (2, "/job", "killed"), (3, "/other", "killed"), (3, "", "killed")],
)
def test_the_kernel_counts_what_it_killed_for_memory(kills: int, group: str, end: str) -> None:
    """Only a count that rose in the same group says so."""
    before = Life(pid=1, hostname="a", started=1.0, group=group and "/job", kills=2)
    assert before.ended(Life(pid=2, hostname="a", started=2.0, group=group, kills=kills)) == end


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process was started")
def test_a_process_that_nobody_has_waited_for_is_not_alive() -> None:
    """A launcher may start the next process before it waits for the one that was killed."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    life = Life(pid=child.pid, hostname=socket.gethostname(), started=time.time() - (process_age(child.pid) or 0.0))
    assert life.is_alive()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not life.is_alive()
    child.wait()
    assert not life.is_alive()


def test_kills_are_read_from_the_own_group(tmp_path: Path) -> None:
    """Version 2 of control groups; nothing where there is none."""
    own = tmp_path / "cgroup"
    own.write_text("0::/pod/worker\n")
    (tmp_path / "pod/worker").mkdir(parents=True)
    (tmp_path / "pod/worker/memory.events").write_text("low 0\noom 4\noom_kill 2\n")
    assert predecessors.memory_kills(str(tmp_path), str(own)) == ("/pod/worker", 2)
    own.write_text("3:memory:/pod/worker\n")
    assert predecessors.memory_kills(str(tmp_path), str(own)) == ("", 0)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"version": 2}', '{"version": 1, "process": {"pid": -1, "hostname": "a", "started": 1}}',
     '{"version": 1, "process": {"pid": 1, "hostname": "a", "started": 1, "end": "{{ evil }}"}}'],
)  # fmt: skip
def test_a_damaged_file_says_nothing(tmp_path: Path, text: str) -> None:
    """A file of another kind raises one kind of error, and is left as it is."""
    path = tmp_path / "jaxobs-end-x.json"
    path.write_text(text)
    with pytest.raises(ValueError):
        predecessors.read_life(str(path))
