"""The persistent compilation cache: whether there is one, and whether it can help the next start."""

import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

from jaxobs.compile_cache import checkup, directory
from jaxobs.compile_cache.complaints import Complaint, Setting
from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, Machine, ok
from jaxobs.views.terminal.text import size

DEFAULT_SECONDS = 1.0
LARGE_ENTRY = 2**20
"""A threshold above it leaves out programs that take seconds to compile."""
LEAST_FREE = 2**30
_RIGHTS = {
    "not_writable": ("u+rwx", "   # unless this job only reads"), "unreadable": ("u+rwx", ""),
    "unreadable_entries": ("u+r", ""),
}  # fmt: skip
"""Advice by the kind of problem."""
MOST_REMOVED = 20
"""Names in one command."""
_REMOTE = ("gs://", "s3://", "hdfs://", "az://", "http://", "https://")
_CLIENTS = {"gs": "gcsfs", "s3": "s3fs", "az": "adlfs"}
"""The package with which fsspec reaches a bucket, by scheme."""
_RECOMPILED = "The next start compiles what it could have loaded."
_WHY = {"writable_by_others": "Whoever changes an entry runs code in the next job that loads it."}
"""Why a problem with the directory matters, by its kind, where it is another reason."""


def check(machine: Machine) -> Iterator[Finding]:
    """By JAX's own settings as the environment sets them. Entries are read and never loaded."""
    imported = machine.imported
    if imported.trouble is not None:
        yield Finding(
            severity="info", title="The cache's settings are not known", evidence="`import jax` fails", entity="jax",
            fix="Fix the import first",
        )  # fmt: skip
        return
    for flag in machine.flags:
        if re.search(r"cache_(dir|file)=|autotune_results_from=", flag):
            yield from _without_version(machine, flag.partition("=")[2], flag.partition("=")[0])
    place = machine.setting("jax_compilation_cache_dir")
    if not place or machine.setting("jax_enable_compilation_cache") is False:
        yield Finding(
            severity="warning" if machine.nvidia_devices or machine.tpu_devices else "info",
            title="There is no persistent compilation cache", entity="JAX_COMPILATION_CACHE_DIR",
            evidence=f"jax_compilation_cache_dir={place!r}, "
            f"jax_enable_compilation_cache={machine.setting('jax_enable_compilation_cache')}",
            why="Every start compiles every program from scratch.",
            fix="unset JAX_ENABLE_COMPILATION_CACHE" if place else _elsewhere(machine),
        )  # fmt: skip
        return
    place = str(place)
    yield from _thresholds(machine)
    if place.startswith(_REMOTE):
        yield from _bucket(machine, place)
        return
    yield from _directory(machine, Path(_local(place)))


def _elsewhere(machine: Machine) -> str:
    """Names a directory that works."""
    return f"export JAX_COMPILATION_CACHE_DIR=$HOME/.cache/jax/{machine.imported.jax}"


def _local(place: str) -> str:
    """Returns the path of an address of a local file, as JAX reads it where `etils` is installed."""
    has_addresses = importlib.util.find_spec("etils") is not None
    return place.removeprefix("file://") if has_addresses and place.startswith("file:///") else place


def _thresholds(machine: Machine) -> Iterator[Finding]:
    for name, most, shown, why in (
        ("min_compile_time_secs", DEFAULT_SECONDS, "that compile in", "and those near the limit now and then"),
        ("min_entry_size_bytes", LARGE_ENTRY, "of", "however long that takes"),
    ):
        setting = f"jax_persistent_cache_{name}"
        value = machine.setting(setting)
        if isinstance(value, int | float) and value > most:
            least = f"{value:g} s" if most == DEFAULT_SECONDS else size(int(value))
            yield Finding(
                severity="info", title=f"Programs {shown} less than {least} are not stored", entity=setting.upper(),
                evidence=f"{setting}={str(value).removesuffix('.0')}",
                why=f"Every start compiles them from scratch, {why}.", fix=f"export {setting.upper()}=0",
            )  # fmt: skip
    limit = machine.setting("jax_compilation_cache_max_size")
    if isinstance(limit, int) and limit != -1 and importlib.util.find_spec("filelock") is None:
        yield Finding(
            severity="critical", title="The cache's size is limited, but `filelock` is not installed",
            entity="JAX_COMPILATION_CACHE_MAX_SIZE", evidence=f"jax_compilation_cache_max_size={limit}",
            why="JAX warns once and runs without a cache.", fix="pip install filelock",
        )  # fmt: skip
    extra = machine.setting("jax_persistent_cache_enable_xla_caches")
    if extra == "all":
        yield Finding(
            severity="warning", title="All of XLA's own caches are enabled",
            entity="JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", evidence="jax_persistent_cache_enable_xla_caches='all'",
            why="XLA's kernel cache conflicts with JAX's: the first operation raises (jax-ml/jax#28247).",
            fix="unset JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES",
        )  # fmt: skip
    if machine.setting("jax_compilation_cache_check_contents"):
        yield Finding(
            severity="warning", title="JAX recompiles every hit to compare it",
            fix="unset JAX_COMPILATION_CACHE_CHECK_CONTENTS",
            entity="JAX_COMPILATION_CACHE_CHECK_CONTENTS", evidence="jax_compilation_cache_check_contents is on",
            why="The cache saves nothing while it is on.",
        )  # fmt: skip


def _without_version(machine: Machine, place: str, variable: str) -> Iterator[Finding]:
    """Yields that the name of a directory, or of a file, does not say of which version it is."""
    if not any(map(checkup.VERSION.search, Path(place).parts[-2:])):
        better = f"{place.rstrip('/')}/jax-{machine.imported.jax}"
        yield Finding(
            severity="info", title="All versions of JAX share a cache", entity=variable,
            evidence=f"{variable}={place}: there is no version in the name",
            why="After an upgrade nothing in it fits, and nobody knows what can be deleted.",
            fix=f"{variable}={shell.word(better)}" if variable.startswith("-") else shell.export(variable, better),
        )  # fmt: skip


def _bucket(machine: Machine, place: str) -> Iterator[Finding]:
    client = _CLIENTS.get(place.partition("://")[0], "fsspec")
    # etils takes TensorFlow's file system instead where that is installed.
    needed = ["etils"] if importlib.util.find_spec("tensorflow") is not None else ["etils", "fsspec", client]
    missing = [each for each in dict.fromkeys(needed) if importlib.util.find_spec(each) is None]
    if missing:
        yield Finding(
            severity="critical", title="The cache is a bucket, but the packages that reach it are missing",
            entity=place,
            evidence=f"jax_compilation_cache_dir={place!r}; not installed: {', '.join(missing)}",
            why="JAX warns once and runs without a cache.", fix=f'pip install "etils[epath]" fsspec {client}',
        )  # fmt: skip
    else:
        yield from _without_version(machine, place, "JAX_COMPILATION_CACHE_DIR")
        yield ok("The cache is a bucket", "It was not asked; `jaxobs cache verify -- CMD` tries it", place)


def _directory(machine: Machine, path: Path) -> Iterator[Finding]:
    if not path.is_absolute():
        yield Finding(
            severity="warning", title="The cache's directory is a relative path", entity=str(path),
            evidence=f"jax_compilation_cache_dir={str(path)!r}", why="Each working directory has a cache of its own.",
            fix=_absolute(machine, path),
        )  # fmt: skip
    path = machine.directory / path
    if machine.is_distributed and _is_local(machine, path):
        yield Finding(
            severity="warning", title="The job has several processes, but the cache is on a local disk",
            entity=str(path), evidence=f"{path} is on {_file_system(machine, path)}",
            why="Process 0 alone writes: the processes of other hosts compile every program at every start.",
            fix="Name a directory on a file system that all hosts share",
        )  # fmt: skip
    if not path.exists():
        trouble = _cannot_make(path)
        if trouble is not None:
            yield Finding(
                severity="critical", title="The cache's directory cannot be made", entity=str(path),
                evidence=f"As uid {os.geteuid()}: {trouble}", why="JAX warns once and runs without a cache.",
                fix=_elsewhere(machine),
            )  # fmt: skip
        else:
            yield from _without_version(machine, str(path), "JAX_COMPILATION_CACHE_DIR")
            yield ok("The cache begins empty", f"{path} does not exist yet, and can be made", str(path))
        return
    fault = checkup.unusable(path)
    complaints = [fault] if fault is not None else _complaints(machine, path)
    # `_thresholds` has said so.
    complaints = [each for each in complaints if each.kind != "filelock_missing"]
    for problem in complaints:
        is_bad = problem.severity == "warning"
        yield Finding(
            severity="warning" if is_bad else "info", title=f"Cache: {problem.kind.replace('_', ' ')}",
            entity=str(path), evidence=problem.summary, fix=_fix(machine, problem, path),
            why=_WHY.get(problem.kind, _RECOMPILED) if is_bad else "",
        )  # fmt: skip
    free = machine.free_bytes(path)
    if free is not None and free[0] < LEAST_FREE:
        yield Finding(
            severity="warning", title="The cache's disk is nearly full", entity=str(path),
            evidence=f"{size(free[0])} of {size(free[1])} are free",
            why="A half-written entry is never replaced: its program is compiled at every start.",
            fix=f"jaxobs cache inspect {shell.word(str(path))}   # what to delete",
        )  # fmt: skip
    if not complaints and not any(path.iterdir()):
        yield from _without_version(machine, str(path), "JAX_COMPILATION_CACHE_DIR")
    if not any(each.severity == "warning" for each in complaints):
        yield ok("The cache can be read and written", str(path), str(path))


def _absolute(machine: Machine, path: Path) -> str:
    """Returns the command that names the same directory from everywhere, without a `~` that nobody expands."""
    if path.parts[:1] == ("~",):
        return f'export JAX_COMPILATION_CACHE_DIR="$HOME"/{shell.word(str(Path(*path.parts[1:])))}'
    return shell.export("JAX_COMPILATION_CACHE_DIR", str(machine.directory / path))


def _fix(machine: Machine, complaint: Complaint, path: Path) -> str:
    """Returns the command, where there is one; otherwise what to do, and what shows the rest."""
    if complaint.kind == "not_a_directory":
        return _elsewhere(machine)
    if complaint.kind == "writable_by_others":
        return f"chmod go-w {shell.word(str(path))}{'/*' if complaint.files else ''}"
    if complaint.removable and 0 < len(complaint.files) <= MOST_REMOVED:
        names = " ".join(shell.word(str(each)) for each in complaint.files)
        return f"rm -f -- {names}   # not while a job stores entries"
    if complaint.kind in _RIGHTS:
        rights, rest = _RIGHTS[complaint.kind]
        inside = "/*" if complaint.files else ""
        if path.stat().st_uid == os.geteuid():
            return f"chmod {rights} {shell.word(str(path))}{inside}{rest}"
        return f"sudo chown {os.geteuid()} {shell.word(str(path))}{inside}{rest}"
    if complaint.kind == "no_namespace":
        return shell.export("JAX_COMPILATION_CACHE_DIR", str(path / f"jax-{machine.imported.jax}"))
    return f"{complaint.advice} (see: jaxobs cache inspect {shell.word(str(path))})"


def _cannot_make(path: Path) -> str | None:
    """Returns why a directory cannot be made. The first that is missing is made for that, and removed."""
    first = next(each for each in (*reversed(path.parents), path) if not each.exists())
    try:
        first.mkdir()
        first.rmdir()
    except OSError as error:
        return f"{first}: {error.strerror or error}"
    return None


def _complaints(machine: Machine, path: Path) -> list[Complaint]:
    contents = directory.scan(path, lambda done, of: None)
    setting = Setting(given=str(path), writers={}, now=machine.now, environment=dict(machine.environment))
    return [each for each in checkup.examine(contents, setting) if each.kind != "empty"]


_NETWORK = ("nfs", "lustre", "ceph", "fuse", "gpfs", "beegfs", "glusterfs", "cifs", "9p", "wekafs", "afs", "smb")


def _is_local(machine: Machine, path: Path) -> bool:
    kind = _file_system(machine, path)
    return kind != "?" and not any(kind.startswith(each) for each in _NETWORK)


def _file_system(machine: Machine, path: Path) -> str:
    """Returns the type of the file system of a path; `?` if it is not known."""
    best, kind = "", "?"
    for line in (machine.read("/proc/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) > 2 and len(fields[1]) > len(best) and path.is_relative_to(fields[1]):
            best, kind = fields[1], fields[2]
    return kind
