"""Jobs of several processes on this machine."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from helpers.paths import PROGRAMS, ROOT
from jaxobs.findings import all_kinds
from jaxobs.findings.fleet.support.view import View
from tools.ports import free_port

RUN = (
    "-m", "jaxobs", "run", "--port", "0", "--sample-interval", "0.2", "--stuck-seconds", "2", "--stuck-steps", "5",
)  # fmt: skip
KINDS = {each.NAME for each in all_kinds.needing(View)}


class Job:
    """Processes of `fleet_program.py`, killed at the end: such a job does not end by SIGTERM."""

    def __init__(self, folder: pathlib.Path, mode: str, count: int, *, plain: bool = False) -> None:
        """Starts them.

        Args:
          folder: for their logs and output.
          mode: what is wrong or unusual, as the program says.
          count: how many.
          plain: whether it is `plain_fleet.py`, which knows nothing of jaxobs, under `jaxobs run`.
        """
        self.folder, self.count = folder, count
        self.processes: list[subprocess.Popen[str]] = []
        port = free_port()
        program = PROGRAMS / ("plain_fleet.py" if plain else "fleet_program.py")
        root = str(ROOT)
        environment = {**os.environ, "PYTHONPATH": root, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
        for index in range(count):
            command = [sys.executable, str(program), str(index), str(count), str(port), mode, str(folder)]
            if plain:
                command[1:1] = [*RUN, "--event-log", f"{folder}/{index}.jsonl", "--flight-recorder", str(folder)]
            with open(folder / f"{index}.out", "w") as out:
                self.processes.append(
                    subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, text=True)
                )

    def findings(self) -> list[dict[str, Any]]:
        told = []
        for path in self.folder.glob("*.jsonl"):
            told += [json.loads(line) for line in path.read_text().splitlines() if '"event": "finding"' in line]
        return [each for each in told if each["finding"] in KINDS]

    def until(self, done: Callable[[list[dict[str, Any]]], bool], seconds: float = 120.0) -> list[dict[str, Any]]:
        """The findings once they are complete."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            told = self.findings()
            if done(told):
                return told
            time.sleep(0.2)
        outputs = "\n".join((self.folder / f"{index}.out").read_text()[-1500:] for index in range(self.count))
        raise AssertionError(f"only {self.findings()} after {seconds} s\n{outputs}")

    def kill(self) -> None:
        for each in self.processes:
            each.send_signal(signal.SIGKILL)
        for each in self.processes:
            each.wait(120)
