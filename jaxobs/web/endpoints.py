"""Endpoints of this user's processes on this machine: a private file for each, that `jaxobs top` looks for.

The file is removed when the endpoint is closed. One that a killed process left is known by the process's number and the
moment at which that was started. What is read is data: text that does not fit is passed over.
"""

import contextlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from jaxobs.base import private_files
from jaxobs.base.process import start_tick

MOST_BYTES = 4096
MOST_FILES = 256
_NAME = re.compile(r"\d+-\d+\.json")
_URL = re.compile(r"https?://[\w.:\[\]%-]{1,260}/")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint of a process that runs."""

    url: str
    pid: int
    program: str


def announce(url: str, port: int, program: str | None) -> Callable[[], None]:
    """Writes the file of an endpoint, and returns what removes it; raises `OSError` without a private folder."""
    pid = os.getpid()
    named = (program or "")[:200]
    told = {"url": url, "pid": pid, "start_tick": start_tick(), "namespace": _namespace(), "program": named}
    folder = _folder(make=True)
    path = os.path.join(folder, f"{pid}-{port}.json")
    private_files.write_whole(path, [json.dumps(told).encode()])

    def withdraw() -> None:
        if os.getpid() == pid:  # a forked child has it from its parent
            with contextlib.suppress(OSError):
                os.unlink(path)

    return withdraw


def running() -> list[Endpoint]:
    """Returns the endpoints of processes that run, by address; files of those that do not are removed."""
    try:
        folder = _folder(make=False)
        names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))[:MOST_FILES]
    except (AttributeError, OSError):  # the system has no numbers of users
        return []
    found = []
    for name in names:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            endpoint = _read(os.path.join(folder, name))
            if endpoint is not None:
                found.append(endpoint)
    return sorted(found, key=lambda each: (len(each.url), each.url))


def _read(path: str) -> Endpoint | None:
    """Returns the endpoint in a file; None if the process is gone, or belongs to another container."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(number, encoding="utf-8") as file:
        info = os.fstat(number)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
            return None
        told = json.loads(file.read(MOST_BYTES))
    url, pid, program = told["url"], told["pid"], told["program"]
    if type(pid) is not int or not isinstance(program, str) or not _URL.fullmatch(url):
        return None
    if told["namespace"] != _namespace():
        return None
    if not _runs(pid, told["start_tick"]):
        os.unlink(path)
        return None
    return Endpoint(url, pid, "".join(each for each in program if each.isprintable()))


def _runs(pid: int, tick: int | None) -> bool:
    now = start_tick(pid)
    if now is not None or os.path.isdir("/proc/self"):
        return now == tick
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _namespace() -> str:
    """Returns the namespace of the numbers of processes: containers may share the folder."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _folder(make: bool) -> str:
    """Returns the private folder of this user; raises `OSError` if it is not to be had, or open to others."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime) and os.access(runtime, os.W_OK):
        path = os.path.join(runtime, "jaxobs")
    else:
        path = os.path.join(tempfile.gettempdir(), f"jaxobs-{os.getuid()}")
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise PermissionError(f"{path} is not private to this user")
    return path
