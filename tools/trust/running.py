"""Runs a hostile program without jaxobs and with it, and compares output, exit code, time and memory."""

from __future__ import annotations

import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tools import environments
from tools.ports import free_port
from tools.quick_xla import quick
from tools.trust.case import HERE, Case

ROOT = Path(__file__).resolve().parents[2]
PLAIN, INSTALL, START, RUN = WAYS = ("plain", "install", "start", "run")
FIRST = {
    PLAIN: "pass",
    INSTALL: "import jaxobs; jaxobs.install()",
    START: "import jaxobs; jaxobs.start(port=0)",
    RUN: "pass",
}
MOST_SECONDS = 240.0
"""A program without jaxobs takes some seconds: who takes so long hangs."""
CPU_SHARE, CPU_SECONDS = 0.25, 1.0
"""By how much the processor's time may grow: so much of the program's own, and what loading jaxobs takes, ..."""
WALL_SHARE, WALL_SECONDS = 0.5, 5.0
"""... the time by the clock, which other work of the machine lengthens, ..."""
MEMORY_SHARE, MEMORY_MIB = 0.1, 32.0
"""... and the peak of resident memory."""
TOGETHER = False
"""Whether the ways of a case run at one time: what else the machine does slows all of them alike."""
ATTEMPTS = 3
"""Time and memory count as exceeded if they are in each of them."""


@dataclass
class Ran:
    """A program's run."""

    output: str
    errors: str
    code: int
    wall: float
    cpu: float
    peak: float
    """MiB."""


@dataclass
class Judged:
    """A case, and what did not hold."""

    case: Case
    impossible: str = ""
    """Why it could not run here."""
    wrong: list[str] = field(default_factory=list)
    runs: dict[str, Ran] = field(default_factory=dict)


def judge(case: Case) -> Judged:
    """Runs a case in each way and compares with the one without jaxobs."""
    judged = Judged(case)
    judged.impossible, python = _python(case)
    if judged.impossible:
        return judged
    ways = [way for way in WAYS if way not in case.without]
    first: dict[str, Ran] = {}
    if TOGETHER:
        with ThreadPoolExecutor(len(ways)) as pool:
            first = dict(zip(ways, pool.map(lambda way: run(case, way, python), ways), strict=True))
    plain = judged.runs[PLAIN] = first.get(PLAIN) or run(case, PLAIN, python)
    if case.python:  # the first run of an environment writes bytecode
        plain = judged.runs[PLAIN] = _better(plain, run(case, PLAIN, python))
    if plain.code == -signal.SIGKILL:
        judged.wrong.append("plain: hangs without jaxobs too")
        return judged
    for way in ways[1:]:
        ran = judged.runs[way] = first.get(way) or run(case, way, python)
        judged.wrong += [f"{way}: {text}" for text in _differences(plain, ran)]
        for attempt in range(1, ATTEMPTS):
            costs = _costs(plain, ran, case.processes)
            if not costs or ran.output != plain.output:
                break
            if attempt == ATTEMPTS - 1:
                judged.wrong += [f"{way}: {text}" for text in costs]
                break
            plain, ran = _better(plain, run(case, PLAIN, python)), _better(ran, run(case, way, python))
            judged.runs |= {PLAIN: plain, way: ran}
    return judged


def _differences(plain: Ran, ran: Ran) -> list[str]:
    """Returns what a user sees differ."""
    found = []
    if ran.code != plain.code:
        hangs = " (hangs)" if ran.code == -signal.SIGKILL else ""
        found.append(f"exit code {ran.code} instead of {plain.code}{hangs}")
    for what in ("output", "errors"):
        had, has = getattr(plain, what), getattr(ran, what)
        if had != has:
            lines, theirs = had.splitlines(), has.splitlines()
            differ = [f"-{line}" for line in lines if line not in theirs]
            differ += [f"+{line}" for line in theirs if line not in lines]
            found.append(f"{what} differs: {' | '.join(differ)[:600] or 'in order or number of lines'}")
    return found


def _costs(plain: Ran, ran: Ran, processes: int) -> list[str]:
    """Returns which bounds of time and memory are exceeded."""
    bounds = (
        ("processor time", plain.cpu, ran.cpu, plain.cpu * (1 + CPU_SHARE) + CPU_SECONDS * processes, "s"),
        ("time", plain.wall, ran.wall, plain.wall * (1 + WALL_SHARE) + WALL_SECONDS * processes, "s"),
        ("peak memory", plain.peak, ran.peak, plain.peak * (1 + MEMORY_SHARE) + MEMORY_MIB, "MiB"),
    )
    return [f"{what} {is_:.1f} {unit} instead of {was:.1f}" for what, was, is_, most, unit in bounds if is_ > most]


def _better(one: Ran, other: Ran) -> Ran:
    one.wall, one.cpu, one.peak = min(one.wall, other.wall), min(one.cpu, other.cpu), min(one.peak, other.peak)
    return one


def _python(case: Case) -> tuple[str, str]:
    """Returns why the case cannot run here, or an empty text and the interpreter that it runs on."""
    for name in case.needs:
        if not shutil.which(name) and not _importable(name):
            return f"no {name} here", ""
    if not case.python:
        return "", sys.executable
    found = environments.FOLDER / f"{environments.NEWEST}-py{case.python}" / "bin" / "python"
    if found.exists():
        return "", str(found)
    return f"no Python {case.python} with JAX here (tools/newer_python, tools.environments)", ""


def _importable(name: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def run(case: Case, way: str, python: str = sys.executable) -> Ran:
    """Runs a case in one way, in a folder of its own that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="trust-") as made:
        folder = Path(made)
        values = _write(case, way, folder)
        ours = ("-m", "jaxobs", "run", "--port", str(free_port())) if way == RUN else ()
        command = [python, *case.flags, *ours, *(_filled(each, values) for each in (*case.given, *case.arguments))]
        if case.shell:
            command = ["sh", "-c", _filled(case.shell, values), "sh", *command]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAXOBS_", "PYTHON", "XLA_"))}
        kept |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": quick(), "COLUMNS": "120"}
        if case.python:
            kept["PYTHONPATH"] = str(ROOT)
            kept["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
        kept |= {name: _filled(value, values) for name, value in case.environment}
        ran = _run(command, kept, folder, _filled(case.stdin, values))
        own = re.compile(case.prefix) if case.prefix else None
        ran.output, ran.errors = (_same(text, folder, own) for text in (ran.output, ran.errors))
        return ran


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _write(case: Case, way: str, folder: Path) -> dict[str, str]:
    """Writes the program in the forms in which it is given, and returns what the texts of the case may name."""
    first = FIRST[way]
    lines = case.source.split("\n")
    source = "\n".join(first if line == HERE else line for line in lines)
    if HERE not in lines:
        source = first + "\n" + source.lstrip("\n")
    values = {"program": str(folder / "program.py"), "source": source, "folder": str(folder)}
    (folder / "program.py").write_text(source, encoding="utf-8")
    if "{zip}" in case.given:
        values["zip"] = str(folder / "program.pyz")
        with zipfile.ZipFile(values["zip"], "w") as archive:
            archive.writestr("__main__.py", source)
    if "{pyc}" in case.given:
        values["pyc"] = py_compile.compile(values["program"], cfile=str(folder / "compiled.pyc"), doraise=True) or ""
    (folder / "host_package").mkdir()
    (folder / "host_package" / "__init__.py").touch()
    (folder / "host_package" / "__main__.py").write_text(source, encoding="utf-8")
    return values


def _run(command: list[str], environment: dict[str, str], folder: Path, stdin: str) -> Ran:
    """Runs a command to its end, or kills its session when the time is up."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as typed, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        typed.write(stdin.encode())
        typed.seek(0)
        process = subprocess.Popen(
            command, stdin=typed, stdout=out, stderr=errors, cwd=folder, env=environment, start_new_session=True
        )
        timer = threading.Timer(MOST_SECONDS, _kill, (process.pid,))
        timer.start()
        try:
            _pid, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
        wall = time.monotonic() - began
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
        cpu = usage.ru_utime + usage.ru_stime
        return Ran(texts[0], texts[1], process.returncode, wall, cpu, usage.ru_maxrss / 1024)


def _kill(session: int) -> None:
    os.killpg(session, signal.SIGKILL)


def _same(text: str, folder: Path, own: re.Pattern[str] | None) -> str:
    """Leaves out the address that jaxobs says, and what is another one in each process."""
    lines = [line for line in text.splitlines() if not line.startswith("jaxobs: http")]
    if own is not None:
        lines = [line for line in lines if not own.fullmatch(line)]
    text = "\n".join(lines).replace(str(folder), "FOLDER")
    for first in set(FIRST.values()) - {"pass"}:
        text = text.replace(first, "pass")
    return re.sub(r"0x[0-9a-fA-F]+", "0x", text)
