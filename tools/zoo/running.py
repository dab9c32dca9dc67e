"""Runs a program of the zoo with jaxobs and without."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxobs.facts import renamed
from jaxobs.views import report, story, terminal
from tools import environments
from tools.ports import free_port
from tools.quick_xla import quick
from tools.zoo import stopwatch
from tools.zoo.entry import Entry

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
EXAMPLES = ROOT / "examples" / "systems"
"""Programs of the zoo that `docs/systems` shows."""
SECONDS = 600


@dataclass(frozen=True)
class Outcome:
    """Outcome of one process."""

    code: int | None
    """Exit code; None if the process was killed after `SECONDS`."""
    out: str
    errors: str
    seconds: dict[str, float]
    """By the stopwatch."""
    programs: int
    """Programs that JAX counted as compiled or loaded from a cache."""
    events: tuple[dict[str, Any], ...] = ()
    """Events of jaxobs."""
    metrics: str = ""
    verdict: str = ""
    """As `jaxobs explain` says it."""
    explained: str = ""
    """All that `jaxobs explain` prints about an example, under the path that it has here."""


@dataclass(frozen=True)
class Pair:
    """All processes of a program, without jaxobs and with it."""

    plain: tuple[Outcome, ...]
    """The watched ones where the program was not run without jaxobs."""
    watched: tuple[Outcome, ...]


def run(name: str, entry: Entry, folder: Path, *, plain: bool = True) -> Pair:
    """Runs a program of the zoo with jaxobs, and before that without.

    Args:
      folder: receives what it leaves.
      plain: run it without jaxobs, too.
    """
    python = str(environments.environment(entry.row))
    folder.mkdir(parents=True)
    script = folder / f"{name}.py"
    script.write_text(stopwatch.with_marks(program_of(name).read_text()))
    if plain:
        _processes([python, str(script)], entry, folder / "plain")
    _processes([python, "-m", "jaxobs", "run", *_FLAGS, str(script)], entry, folder / "watched")
    return left(entry, folder)


def program_of(name: str) -> Path:
    """The file of a program."""
    example = EXAMPLES / f"{name}.py"
    return example if example.exists() else PROGRAMS / example.name


_FLAGS = (
    "--port",
    "0",
    "--event-log",
    "events-{index}.jsonl",
    "--metrics-file",
    "metrics-{index}.prom",
)


def _processes(command: list[str], entry: Entry, folder: Path) -> None:
    folder.mkdir()
    port, started = free_port(), []
    for index in range(entry.processes):
        job = [str(index), str(entry.processes), f"127.0.0.1:{port}"] if entry.processes > 1 else []
        with open(folder / f"out-{index}", "w") as out, open(folder / f"errors-{index}", "w") as errors:
            started.append(
                subprocess.Popen(
                    [*(each.replace("{index}", str(index)) for each in command), *job],
                    cwd=folder, env=_environment(entry, folder / f"stopwatch-{index}"), stdout=out, stderr=errors,
                    stdin=subprocess.DEVNULL,
                )
            )  # fmt: skip
    deadline = time.monotonic() + SECONDS
    for index, each in enumerate(started):
        (folder / f"code-{index}").write_text(json.dumps(_ended(each, deadline)))


def _ended(process: subprocess.Popen[bytes], deadline: float) -> int | None:
    try:
        return process.wait(max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _environment(entry: Entry, watch: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA_", "KERAS_"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join((str(stopwatch.FOLDER), str(ROOT))),
        "JAX_PLATFORMS": "cpu",
        "JAXOBS_SAMPLE_INTERVAL": "1",
        "XLA_FLAGS": quick(jaxlib=entry.row.jax),
        "ZOO_STOPWATCH": str(watch),
        **entry.variables,
    }


def left(entry: Entry, folder: Path) -> Pair:
    """Returns the outcomes that an earlier run of a program left in its folder."""
    plain, watched = folder / "plain", folder / "watched"
    return Pair(_left(entry, plain if plain.exists() else watched), _left(entry, watched))


def _left(entry: Entry, folder: Path) -> tuple[Outcome, ...]:
    return tuple(_outcome(folder, index) for index in range(entry.processes))


def _outcome(folder: Path, index: int) -> Outcome:
    code, watch, events, metrics = (
        folder / each
        for each in (f"code-{index}", f"stopwatch-{index}", f"events-{index}.jsonl", f"metrics-{index}.prom")
    )
    seconds, programs = stopwatch.seconds(watch) if watch.exists() else ({}, 0)
    verdict, explained = _explained(events) if events.exists() else ("", "")
    return Outcome(
        code=json.loads(code.read_text()), seconds=seconds, programs=programs,
        # Each of the two runs has a folder of its own.
        out=(folder / f"out-{index}").read_text().replace(str(folder), "."),
        errors=(folder / f"errors-{index}").read_text().replace(str(folder), "."),
        events=tuple(_events(events)) if events.exists() else (),
        metrics=metrics.read_text() if metrics.exists() else "",
        verdict=verdict, explained=explained,
    )  # fmt: skip


def _explained(log: Path) -> tuple[str, str]:
    """Returns the verdict on the process of a log, and what `jaxobs explain` prints about it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "events.jsonl"
        here = str(log.parent.parent)
        # A finding whose identity has the path in it is read from the compilations again, under the other path.
        lines = (each for each in log.read_text().splitlines(True) if f'"subject": "{here}' not in each)
        copy.write_text("".join(lines).replace(here, str(EXAMPLES.relative_to(ROOT))))
        made = report.read(str(copy))
    told = [story.tell(each, None, None if at is None else at.snapshot()) for each, at in made.processes.items()]
    laid_out = story.lay_out(told, copy.name, [], terminal.plain_surface(io.StringIO()), all_of=False)
    return told[0].verdict.verdict, terminal.as_text(laid_out)


def _events(log: Path) -> Iterator[dict[str, Any]]:
    """Under the names of this version, also where an earlier one has left the log."""
    return (renamed.current(json.loads(line)) for line in log.read_text().splitlines())


def clear(folder: Path) -> None:
    """Removes what earlier runs left."""
    shutil.rmtree(folder, ignore_errors=True)
