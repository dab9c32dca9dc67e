"""Facts that the checks read (environment, packages, files below a root, limits, probes), and the findings they make.

Each fact is read when asked. It is an attribute that a test may set, so that a check can be tried with machines that
are not here.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import re
import resource
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.drivers import nvml
from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.verdicts import SEVERITIES
from jaxobs.ops.doctor import probes
from jaxobs.ops.doctor.probes import Imported, Parsed

MOST_LETTERS = 2**20
TABLES: Mapping[str, Any] = tomllib.loads((resources.files(__package__) / "variables.toml").read_text(encoding="utf-8"))
"""Knowledge of variables and settings that no installed package declares."""
LEVELS = ("ok", *reversed(SEVERITIES))
"""Severities, and `ok` for a check that passed. `critical`: the job dies, hangs, computes wrong numbers, or silently
runs on the CPU. `warning`: it is slow, loses something, or dies under load."""


@dataclass(frozen=True, slots=True)
class Package:
    """Installed distribution."""

    name: str
    """Normalized as PyPI does: lower case, hyphens."""
    version: str
    place: str
    """The directory that it was found in."""
    requires: tuple[str, ...] = ()
    """Requirements of JAX on libtpu; empty for other packages."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a device file open."""

    pid: int
    command: str
    device: str


class Machine:
    """This machine, as the job would find it: its environment, its Python, its files."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, root: Path = Path("/"), directory: Path | None = None
    ) -> None:
        self.environment = os.environ if environment is None else environment
        self.root = root
        self.directory = Path.cwd() if directory is None else directory
        self.now = time.time()
        self.python = sys.version_info[:3]

    # ------------------------------------------------------------------------------------------------ files

    def path(self, name: str) -> Path:
        """Returns a file of the machine by its absolute name."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """Returns the text of a small file, of a large one the beginning; None if it cannot be read."""
        try:
            with self.path(name).open(errors="replace") as file:
                return file.read(MOST_LETTERS).strip()
        except OSError:
            return None

    def names(self, folder: str, pattern: str) -> list[str]:
        """Absolute names of what lies in a folder and fits a regular expression."""
        try:
            found = sorted(os.listdir(self.path(folder)))
        except OSError:
            return []
        return [f"{folder.rstrip('/')}/{name}" for name in found if re.fullmatch(pattern, name)]

    @cached_property
    def temporary(self) -> Path:
        """Returns the directory of temporary files."""
        return Path(self.environment.get("TMPDIR") or tempfile.gettempdir())

    # --------------------------------------------------------------------------------------------- packages

    @cached_property
    def packages(self) -> tuple[Package, ...]:
        """Returns all distributions that are installed, the ones that win first."""
        found = []
        for distribution in importlib.metadata.distributions():
            name = distribution.metadata["Name"]
            if name:
                place = str(Path(str(distribution.locate_file(""))).resolve())
                wants = [
                    each for each in (distribution.requires or () if name == "jax" else ()) if each.startswith("libtpu")
                ]
                found.append(Package(normal(name), distribution.version, place, tuple(wants)))
        return tuple(found)

    def versions(self, pattern: str) -> dict[str, str]:
        """Versions by name of those whose whole name fits a regular expression."""
        found: dict[str, str] = {}
        for package in self.packages:
            if re.fullmatch(pattern, package.name):
                found.setdefault(package.name, package.version)
        return found

    def version(self, name: str) -> str | None:
        """Returns a package; None if it is not installed."""
        return self.versions(re.escape(name)).get(name)

    # -------------------------------------------------------------------------------------------- variables

    def number(self, name: str) -> float | None:
        """Returns a variable as a number; None if it is unset.

        Raises:
          ValueError: it is not one.
        """
        text = self.environment.get(name)
        return None if text is None or not text.strip() else float(text)

    def known_variables(self, table: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
        """Yields each variable that is set and that a table has, by a pattern of its name: name, the row, value."""
        for pattern, row in table.items():
            for name in filter(re.compile(pattern).fullmatch, sorted(self.environment)):
                if self.environment[name].strip():
                    yield name, *row, self.environment[name].strip()

    @property
    def flags(self) -> list[str]:
        """The flags in `XLA_FLAGS`, or in the file that it names."""
        text = self.environment.get("XLA_FLAGS", "").strip()
        if text and not text.startswith("-"):
            text = self.read(str(self.directory / text)) or ""
        # As XLA splits them: quotes around a value keep its spaces together.
        return re.findall(r"""-[\w-]*=(?:'[^']*'|"(?:\\.|[^"\\])*")|\S+""", text)

    @property
    def platforms(self) -> list[str]:
        """The platforms that `platform_variable` names; empty if it is unset."""
        text = self.environment.get(self.platform_variable, "")
        return [each for each in text.replace(" ", "").lower().split(",") if each]

    @property
    def platform_variable(self) -> str:
        """`JAX_PLATFORMS`, or its deprecated predecessor if only that is set."""
        only_old = not self.environment.get("JAX_PLATFORMS") and self.environment.get("JAX_PLATFORM_NAME")
        return "JAX_PLATFORM_NAME" if only_old else "JAX_PLATFORMS"

    @cached_property
    def added_platforms(self) -> frozenset[str]:
        """Platforms that installed packages add to JAX, by the entry points that it looks for."""
        return frozenset(each.name for each in importlib.metadata.entry_points(group="jax_plugins"))

    @property
    def is_distributed(self) -> bool:
        """Whether the environment says that the job has several processes."""
        names = (
            "JAX_COORDINATOR_ADDRESS",
            "JAX_NUM_PROCESSES",
            "OMPI_COMM_WORLD_SIZE",
            "SLURM_NTASKS",
            "TPU_WORKER_ID",
        )
        found = {name: self.environment[name] for name in names if self.environment.get(name)}
        return bool(found) and set(found.values()) != {"1"}

    @property
    def hosts(self) -> int:
        """Number of hosts of the job, as launchers say; 1 if none says more."""

        def said(name: str) -> int:
            text = self.environment.get(name, "")
            return int(text) if text.isdecimal() else 0

        counts = [said(name) for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "NNODES", "MEGASCALE_NUM_SLICES")]
        counts.append(len(self.environment.get("TPU_WORKER_HOSTNAMES", "").split(",")))
        counts.append(said("OMPI_COMM_WORLD_SIZE") // (said("OMPI_COMM_WORLD_LOCAL_SIZE") or 10**9))
        return max(1, *counts)

    # ------------------------------------------------------------------------------------------ accelerators

    @cached_property
    def nvidia_devices(self) -> list[str]:
        """Device files of NVIDIA GPUs."""
        return self.names("/dev", r"nvidia\d+")

    @cached_property
    def amd_devices(self) -> list[str]:
        """Device files of AMD GPUs, where the kernel driver of ROCm is loaded."""
        return self.names("/dev/dri", r"renderD\d+") if self.names("/dev", "kfd") else []

    @cached_property
    def tpu_devices(self) -> list[str]:
        """Device files of TPUs: `/dev/accel*`, or `/dev/vfio/*` on a machine with a chip of Google's on its PCI bus."""
        accelerators = self.names("/dev", r"accel\d+")
        return accelerators or (self.names("/dev/vfio", r"\d+") if self._has_google_chip() else [])

    def _has_google_chip(self) -> bool:
        vendors = (self.read(f"{name}/vendor") for name in self.names("/sys/bus/pci/devices", r".*"))
        return "0x1ae0" in vendors

    @cached_property
    def gpus(self) -> list[AcceleratorState] | str:
        """Returns what the driver says of each GPU; or why it was not asked."""
        if not self.nvidia_devices:
            return "there is no /dev/nvidia0"
        try:
            return [each.read() for each in nvml.open_devices()]
        except (MissingExtraError, nvml.Unavailable) as error:
            return str(error)

    @cached_property
    def holders(self) -> list[Holder]:
        """Returns the processes that have a device file of an accelerator open, as far as this user may see."""
        devices, found = {*self.nvidia_devices, *self.tpu_devices}, []
        for folder in self.names("/proc", r"\d+") if devices else []:
            pid = int(folder.rpartition("/")[2])
            opened = {self._target(each) for each in self.names(f"{folder}/fd", r"\d+")} & devices
            if opened and pid != os.getpid():
                command = (self.read(f"{folder}/cmdline") or "?").replace("\0", " ").strip()
                found += [Holder(pid, command[:120], each) for each in sorted(opened)]
        return found

    def _target(self, name: str) -> str:
        try:
            return str(os.readlink(self.path(name)))
        except OSError:
            return ""

    # --------------------------------------------------------------------------------------------- resources

    @cached_property
    def open_files(self) -> tuple[int, int]:
        """Soft and hard limit of open files; -1 for none."""
        return resource.getrlimit(resource.RLIMIT_NOFILE)

    @cached_property
    def cpus(self) -> int:
        """CPUs that this process may run on."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def free_bytes(self, path: Path) -> tuple[int, int] | None:
        """Free bytes and size of the file system of a path, or of the first of its parents that is there."""
        for folder in (path, *path.parents):
            try:
                found = os.statvfs(folder)
            except OSError:
                continue
            return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
        return None

    # ------------------------------------------------------------------------------------------------ probes

    @cached_property
    def imported(self) -> Imported:
        """Returns what `import jax` finds here, in a process of its own. No backend is initialized."""
        return probes.import_jax(self.environment, self.directory)

    @cached_property
    def defaults(self) -> Imported:
        """Returns what `import jax` finds without variables of JAX's: its own defaults."""
        others = {name: value for name, value in self.environment.items() if not name.startswith("JAX")}
        return self.imported if len(others) == len(self.environment) else probes.import_jax(others, self.directory)

    @property
    def given_settings(self) -> dict[str, str]:
        """Settings of JAX's that the environment sets to another value than the default, with their variables."""
        settings, defaults = self.imported.settings, self.defaults.settings if self._sets_any() else {}
        return {
            name: name.upper() for name, value in settings.items()
            if name.upper() in self.environment and name in defaults and repr(defaults[name]) != repr(value)
        }  # fmt: skip

    def _sets_any(self) -> bool:
        return any(name.upper() in self.environment for name in self.imported.settings)

    @cached_property
    def parsed(self) -> Parsed:
        """Returns whether XLA takes its flags, by a CPU client in a process of its own."""
        return probes.parse_flags(self.environment, self.directory)

    def setting(self, name: str) -> Any:
        """Returns one of JAX's settings at its start; None if JAX cannot be imported or has not any of it name."""
        return self.imported.settings.get(name)


def normal(name: str) -> str:
    """Returns a package's name as PyPI normalizes it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def release(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version, to compare: `0.10.2.dev1+x` is (0, 10, 2)."""
    matched = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(each) for each in matched[1].split(".")) if matched else ()


def listed(names: Sequence[str], most: int = 6) -> str:
    """Returns a few names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result for one thing that was looked at."""

    severity: str
    title: str
    """Title in one sentence, which says what is so."""
    evidence: str
    """Text that was read, and where."""
    why: str = ""
    """Effect on a job; empty if all is well."""
    fix: str = ""
    """The command or setting that fixes it; empty where there is nothing to fix."""
    entity: str = ""
    """Subject: a package, a variable, a device, a path."""
    id: str = ""
    """Name of the check."""

    def of(self, check: str) -> Finding:
        """Returns the finding with its check's name."""
        return dataclasses.replace(self, id=self.id or check)


def ok(title: str, evidence: str, entity: str = "") -> Finding:
    """Returns the finding that all is well."""
    return Finding(severity="ok", title=title, evidence=evidence, entity=entity)
