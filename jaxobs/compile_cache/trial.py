"""Runs a command as it is, in a cache directory of ours, with every Python in it under observation.

Nothing of the command changes. `PYTHONPATH` begins with a folder that holds a `sitecustomize`, which Python imports
before the program. A Python that ignores its environment (`-I`, `-E`, `-S`), or whose environment is made afresh, is
not seen.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from jaxobs.base.errors import JaxobsError

FOLDER_VARIABLE = "_JAXOBS_VERIFY_FOLDER"
CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
GRACE_SECONDS = 5.0
"""How long a command may take to end when told to; then it is killed."""

_INJECTED = Path(__file__).parent / "injected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of the command that is over."""

    started: float
    """Seconds since the epoch."""
    seconds: float
    code: int
    """As the shell tells it: 128 and the signal's number where a signal ended it."""
    timed_out: bool = False


def environment(base: Mapping[str, str], folder: Path, cache: Path) -> dict[str, str]:
    """Returns the variables of a run: those of `base`, with the cache in `cache` and observations to `folder`."""
    paths = [str(_INJECTED), *([base["PYTHONPATH"]] if base.get("PYTHONPATH") else [])]
    ours = {FOLDER_VARIABLE: str(folder), CACHE_VARIABLE: str(cache), "PYTHONPATH": os.pathsep.join(paths)}
    return {**base, **ours}


def run(
    command: Sequence[str], variables: Mapping[str, str], *, timeout: float | None = None,
    stdout: IO[bytes] | int | None = None, stderr: IO[bytes] | int | None = None,
) -> Run:  # fmt: skip
    """Runs the command in a process group of its own, which ends with us; raises `JaxobsError` if it can't start."""
    began, clock = time.time(), time.monotonic()
    # On a thread of its own: an interruption while it starts reaches this one, which then still knows what to end.
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(
            subprocess.Popen, command, env=variables, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=os.name == "posix",
        )  # fmt: skip
        timed_out = False
        try:
            code = _started(starting, command).wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            code = _end(starting.result(), signal.SIGTERM)
        except JaxobsError:
            raise
        except BaseException:
            _end(_started(starting, command), signal.SIGINT)
            raise
    return Run(
        started=began, seconds=time.monotonic() - clock, code=code if code >= 0 else 128 - code, timed_out=timed_out
    )


def _started(starting: Future[subprocess.Popen[bytes]], command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return starting.result()
    except OSError as error:
        raise JaxobsError(
            f"`{command[0]}` cannot be started: {error.strerror or error}. Name a program on the PATH, or its path."
        ) from None


def _end(process: subprocess.Popen[bytes], number: signal.Signals) -> int:
    """Ends the command and all that it started: by a signal, and by SIGKILL what is left."""
    _signal(process, number)
    try:
        process.wait(GRACE_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    return process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()
