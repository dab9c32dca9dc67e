"""Runs a rehearsal in a process of its own, and compares what `jaxobs diagnose` says with the truth."""

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxobs.base.errors import JaxobsError
from jaxobs.ops import diagnosis
from jaxobs.ops.diagnosis import Inputs
from jaxobs.ops.diagnosis.result import Diagnosis
from jaxobs.ops.gameday.fault_types import Fault

PAUSE = 0.1
"""Seconds that the training rests after each step, so that it costs little."""
ONSET = (60.0, 180.0)
"""The fault begins at some second between these."""
QUICK_ONSET = (1.0, 3.0)
QUICK_SETTINGS = {"JAXOBS_SAMPLE_INTERVAL": "0.2", "JAXOBS_STUCK_SECONDS": "3", "JAXOBS_STUCK_STEPS": "10"}
QUICK_PAUSE = 0.005
QUICK_SECONDS = 240.0
"""Seconds of the longest quick rehearsal; most are over as soon as something is found."""
FIRST_STEP = "step 0:"
"""Text of the log that says that the program trains."""
_READY = 180.0


class RehearsalError(JaxobsError):
    """The program of a rehearsal did not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Result of a rehearsal."""

    fault: str
    seed: int
    folder: str
    minutes: float
    exit_code: int | None
    """Exit code of the program; None if it ran until the end."""
    diagnosis: Diagnosis
    is_named: bool
    """Whether the first cause is the truth."""


class Rehearsal:
    """Program with a fault, from its start to its end; a context manager.

    Args:
      folder: for its log and its event log; it is made.
      quick: as fast as it goes, for CI.
      after: seconds from the start of the training until the fault begins; drawn by the seed if None.

    Raises:
      RehearsalError: it does not start.
    """

    def __init__(
        self, name: str, fault: Fault, seed: int, folder: Path, *, port: int, addr: str = "127.0.0.1",
        quick: bool = False, after: float | None = None,
    ) -> None:  # fmt: skip
        self.name, self.fault, self.seed, self.folder, self.quick = name, fault, seed, folder, quick
        drawn = random.Random(seed).uniform(*(QUICK_ONSET if quick else ONSET))
        self.onset = drawn if after is None else after
        self.url = f"http://{addr}:{port}"
        self.log, self.event_log = folder / "run.log", folder / "events.jsonl"
        self._started = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = [
            sys.executable, "-m", "jaxobs", "run", "--port", str(port), "--addr", addr,
            "--event-log", str(self.event_log), "-m", "jaxobs.ops.gameday.rehearsal",
            name, str(seed), f"{self.onset:g}", f"{QUICK_PAUSE if quick else PAUSE:g}", str(folder),
        ]  # fmt: skip
        with self.log.open("ab") as log:
            # Ctrl-C is for the game day, which stops the program itself.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment(),
                start_new_session=True,
            )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        settings = {name: value.replace("{folder}", str(self.folder)) for name, value in self.fault.settings.items()}
        return dict(os.environ) | (QUICK_SETTINGS if self.quick else {}) | settings

    @property
    def exit_code(self) -> int | None:
        """Exit code of the program; None as long as it runs."""
        assert self._process is not None
        return self._process.poll()

    def wait_until_ready(self) -> None:
        """Returns when the program makes steps.

        Raises:
          RehearsalError: it ended before, or makes no steps.
        """
        end = time.monotonic() + _READY
        while time.monotonic() < end:
            if FIRST_STEP in self._tail():
                return
            if self.exit_code is not None:
                break
            time.sleep(0.1)
        raise RehearsalError(f"The program did not start. The end of `{self.log}`: {self._tail(300)}")

    def wait(self, minutes: float, stopped: Callable[[], bool] = lambda: False) -> None:
        """Returns when the time is up or `stopped`; a quick one also when the fault is named, or it ended."""
        end = time.monotonic() + (QUICK_SECONDS if self.quick else minutes * 60)
        while time.monotonic() < end:
            if self.quick and (self.exit_code is not None or self._shows()):
                return
            if stopped():
                return
            time.sleep(0.5)

    def _shows(self) -> bool:
        if time.monotonic() - self._started <= self.onset:
            return False
        causes = self.diagnose().causes
        return bool(causes) and causes[0].id in self.fault.causes

    def diagnose(self) -> Diagnosis:
        """Returns what `jaxobs diagnose` says now of its log, its event log, and the process if it runs."""
        running = self.exit_code is None
        inputs = Inputs(
            logs=(str(self.log),), event_logs=(str(self.event_log),), targets=(self.url,) if running else ()
        )
        return diagnosis.diagnose(diagnosis.gather(inputs))

    def end(self) -> Ended:
        """Diagnoses the program while it is as it is."""
        found, exit_code = self.diagnose(), self.exit_code
        named = [each.id for each in found.causes]
        return Ended(
            fault=self.name, seed=self.seed, folder=str(self.folder), exit_code=exit_code, diagnosis=found,
            minutes=(time.monotonic() - self._started) / 60,
            is_named=bool(named) and named[0] in self.fault.causes,
        )  # fmt: skip

    def close(self) -> None:
        """Stops the program, if it runs. Idempotent."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _tail(self, most: int = 10_000) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-most:]


@contextlib.contextmanager
def rehearsal(name: str, fault: Fault, seed: int, folder: Path, *, port: int, addr: str = "127.0.0.1",
              quick: bool = False, after: float | None = None) -> Iterator[Rehearsal]:  # fmt: skip
    """Runs a rehearsal, and stops it at the end of the block."""
    running = Rehearsal(name, fault, seed, folder, port=port, addr=addr, quick=quick, after=after)
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.close()
