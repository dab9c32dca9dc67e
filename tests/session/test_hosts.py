"""Programs that take from jaxobs what it stands on, its threads or the working directory: neither of them notices."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import PROGRAMS
from helpers.run_programs import environment


@pytest.mark.slow
@pytest.mark.parametrize("library", ["gevent", "eventlet"])
@pytest.mark.parametrize("when", ["first", "late"])
def test_greenlets_replace_threads(library: str, when: str, tmp_path: Path) -> None:
    """Compilations, metrics and event log are whole, and no greenlet gives way to another one inside jaxobs."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAMS / "greenlets.py"), library, when, str(tmp_path)],
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[20.0, 160.0, 540.0] 3.0 [] {}\n"), done.stderr
    assert "Traceback" not in done.stderr
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert events[-1]["event"] == "exit" and events[-1]["reason"] == "normal"


LEFT = """
import os, shutil, tempfile, time
folder = tempfile.mkdtemp()
os.chdir(folder)
shutil.rmtree(folder)
import jax, jax.numpy as jnp
source = "step = jax.jit(lambda x, n: x * n, static_argnums=1)\\n[step(jnp.ones(3), n) for n in range(4)]"
exec(compile(source, "relative.py", "exec"))
print("whole")
"""


@pytest.mark.parametrize("way", ["run", "start", "run in a directory that is gone"])
def test_the_working_directory_is_gone(way: str, tmp_path: Path) -> None:
    """Nothing is written to standard error but the page's address: there was no internal error."""
    (tmp_path / "left.py").write_text(LEFT)
    gone = tmp_path / "gone"
    gone.mkdir()
    program = "import jaxobs; jaxobs.start(port=0)\n" + LEFT if way == "start" else LEFT
    command = [sys.executable, "-"] if way == "start" else [sys.executable, "-m", "jaxobs", "run", "--port", "0", "-"]
    if "gone" in way:
        command = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *command[:-1], str(tmp_path / "left.py")]
    done = subprocess.run(
        command, cwd=gone, env=environment(), input=program, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("jaxobs: http://")] == []


CLOSED = """
import os, signal, sys, time
import jaxobs
jaxobs.start(port=0, event_log=sys.argv[1])
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x)
step(1.0)
size = 0
while size != (size := os.path.getsize(sys.argv[1])):  # nothing of it is being written
    time.sleep(0.5)
os.closerange(3, 256)
files = [open(f"{sys.argv[1]}.{number}", "w+b", buffering=0) for number in range(20)]
step(jnp.ones(2))
signal.signal(signal.SIGALRM, lambda *given: None)
time.sleep(0.3)
signal.raise_signal(signal.SIGALRM)
jaxobs.uninstall()
print({file.write(b"mine") for file in files}, {os.fstat(file.fileno()).st_size for file in files})
"""


def test_the_program_closes_all_descriptors(tmp_path: Path) -> None:
    """Nothing of jaxobs writes to, closes, or waits for the files that have their numbers then."""
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, str(tmp_path / "log")],
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "{4} {4}\n"), done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("jaxobs: http://")] == []
    assert '"cause": "shape"' in (tmp_path / "log").read_text()  # of the compilation behind it
