"""The manifest of a run, next to its program: packages, flags, JAX's configuration, devices, the commit.

Nothing here initializes a backend, runs another program, or reports variables of the environment that are not listed.
"""

import importlib.metadata
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from jaxobs import internals
from jaxobs.base.files import absolute

VARIABLES = (
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
    "TF_GPU_ALLOCATOR",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "TPU_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
)
"""Variables that are reported if they are set, with those that begin with `NCCL_`. No others leave the process."""

MOST_TEXT = 500
MOST_VARIABLES = 100
MOST_KINDS = 16
MOST_PROCESSES = 1024

_NCCL = "NCCL_"
_WHEELS = {
    "cuda": "nvidia-cuda-runtime",
    "cudnn": "nvidia-cudnn",
    "cublas": "nvidia-cublas",
    "nccl": "nvidia-nccl",
    "nvcc": "nvidia-cuda-nvcc",
}
"""NVIDIA's packages that JAX's CUDA plugins depend on, without the suffix that names the CUDA version."""
_SUFFIXES = ("", "-cu13", "-cu12")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?$")
_MOST_REFERENCE_BYTES = 4 * 2**20


def packages(plugins: Iterable[str] = ()) -> dict[str, str]:
    """Versions of what a plugin of JAX loads: CUDA's libraries, libtpu; as installed, not as loaded.

    Args:
      plugins: names of JAX's plugins. Without one for CUDA its libraries are another framework's.
    """
    found: dict[str, str] = {}
    if any("cuda" in each for each in plugins):
        for name, wheel in _WHEELS.items():
            version = next(filter(None, (_installed(wheel + suffix) for suffix in _SUFFIXES)), None)
            if version is not None:
                found[name] = version
    libtpu = _installed("libtpu") or _installed("libtpu-nightly")
    return found | ({} if libtpu is None else {"libtpu": libtpu})


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of the allow-list that are set, and their values, bounded."""
    environment = os.environ if environment is None else environment
    names = [name for name in environment if name in VARIABLES or name.startswith(_NCCL)]
    return {name: environment[name][:MOST_TEXT] for name in sorted(names)[:MOST_VARIABLES] if environment[name]}


def topology() -> dict[str, Any]:
    """Fields of a `Manifest`: the default backend and its devices in the whole job; none before it is initialized."""
    platform = internals.default_platform()
    if platform is None:
        return {}
    devices = [each for client in internals.clients() if client.platform == platform for each in client.devices()]
    kinds = Counter(str(getattr(each, "device_kind", platform)) for each in devices)
    processes = Counter(int(each.process_index) for each in devices)
    return {
        "platform": platform,
        "devices": dict(kinds.most_common(MOST_KINDS)),
        "devices_by_process": {str(index): processes[index] for index in sorted(processes)[:MOST_PROCESSES]},
    }


def commit(directory: str | None = None) -> str | None:
    """The commit that the program's directory is at, by git's own files; None outside of a repository.

    Whether files were changed since is not known: only git itself can say.
    """
    folder = absolute(directory or _program_directory())
    while True:
        found = _git_directory(os.path.join(folder, ".git"))
        if found is not None:
            return _head(found)
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _program_directory() -> str:
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(absolute(file)) if file else absolute(".")


def _git_directory(path: str) -> str | None:
    """Returns where git keeps its files: `.git`, or what that file names in a work tree or submodule."""
    if os.path.isdir(path):
        return path if os.path.exists(os.path.join(path, "HEAD")) else None
    told = _read(path)
    if told is None or not told.startswith("gitdir:"):
        return None
    return os.path.join(os.path.dirname(path), told.removeprefix("gitdir:").strip())


def _head(folder: str) -> str | None:
    head = _read(os.path.join(folder, "HEAD")) or ""
    if not head.startswith("ref:"):
        return head if _COMMIT.match(head) else None
    name = head.removeprefix("ref:").strip()
    shared = _read(os.path.join(folder, "commondir"))
    for root in (folder, *([os.path.join(folder, shared)] if shared else [])):
        told = _read(os.path.join(root, name)) or _packed(os.path.join(root, "packed-refs"), name)
        if told is not None:
            return told if _COMMIT.match(told) else None
    return None


def _packed(path: str, name: str) -> str | None:
    for line in (_read(path) or "").splitlines():
        value, _, reference = line.partition(" ")
        if reference == name:
            return value
    return None


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_REFERENCE_BYTES).strip()
    except OSError:
        return None
