"""Checks of a cache directory: what is wrong with its files, and what to do about it. They only look."""

import importlib.util
import os
import re
import shlex
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jaxobs.compile_cache.complaints import Check, Complaint, Setting, count, examples, user
from jaxobs.compile_cache.directory import Contents, Leftover
from jaxobs.compile_cache.entries import BROKEN, UNCHECKED, UNREADABLE
from jaxobs.views.terminal.text import size

MAX_SIZE = "JAX_COMPILATION_CACHE_MAX_SIZE"

RECENT_SECONDS = 60.0
"""JAX writes entries in place: one that was touched so lately may be half written by a process that is at it."""

_OF_VOLUMES = re.compile(r"lost\+found|\.snapshots?|\.Trash.*|\.gitkeep|\.gitignore|\.keep|\.\.(data|\d.*)")
"""Names that a new volume has."""
VERSION = re.compile(r"\d+\.\d+")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_TEMPORARY = re.compile(r"(\.nfs|tmp|\.~|#).*|.*(\.tmp|\.temp|\.part|\.partial|\.swp|~)|.+-[0-9a-f]{64}.*")


def unusable(path: Path) -> Complaint | None:
    """Returns why the directory cannot be looked into, if it cannot."""
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return Complaint(
                kind="not_a_directory", severity="warning",
                summary=f"`{path}` is not a directory. JAX warns once (FileExistsError) and runs without a cache.",
                advice="Name a directory in jax_compilation_cache_dir, or move this file away.",
            )  # fmt: skip
        with os.scandir(path) as found:
            next(found, None)
    except OSError as error:
        return Complaint(
            kind="unreadable", severity="warning",
            summary=f"`{path}` cannot be read: {error.strerror or error}. JAX runs without a cache there.",
            advice=f"Give this user (uid {user()}) access: it needs to list, read and write the directory.",
        )  # fmt: skip
    return None


def examine(contents: Contents, setting: Setting) -> list[Complaint]:
    """Returns all complaints, warnings first."""
    found = [complaint for check in _CHECKS for complaint in check(contents, setting)]
    return sorted(found, key=lambda complaint: complaint.severity != "warning")


def _identity(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    if contents.nested:
        yield Complaint(
            kind="nested", severity="info",
            summary=f"Subdirectories contain their own caches: {examples([str(path) for path in contents.nested])}.",
            advice="Each is a separate cache: inspect them one by one.",
        )  # fmt: skip
    if contents.is_cache or contents.nested:
        return
    names = [path.name for path in (*(each.path for each in contents.others), *contents.folders)]
    names = [each for each in names if not _OF_VOLUMES.fullmatch(each)]
    if not names:
        yield Complaint(
            kind="empty", severity="info", summary="The directory is empty: no program has been stored in it.",
            advice="JAX stores only what took jax_persistent_cache_min_compile_time_secs (1 s) or "
                   "longer to compile. `jaxobs cache verify -- CMD` shows what a command does not "
                   "store, and why.",
        )  # fmt: skip
    else:
        yield Complaint(
            kind="not_a_cache", severity="warning",
            summary=f"This is not a JAX persistent cache: none of {count(len(names), 'name', 'names')} in it is an "
            f"entry (`*-cache`), but {examples(names)}.",
            advice="Name the directory that jax_compilation_cache_dir is set to.",
        )  # fmt: skip


def _broken(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    broken = [entry for entry in contents.entries if entry.reading.state == BROKEN]
    if not broken:
        return
    fresh = sum(setting.now - entry.written < RECENT_SECONDS for entry in broken)
    wait = f" {fresh} changed in the last minute: if a job is storing entries now, check again first." if fresh else ""
    told = examples([f"{entry.function}: {entry.reading.problem}" for entry in broken])
    yield Complaint(
        kind="broken_entries", severity="warning", files=tuple(entry.path for entry in broken), removable=True,
        summary=f"JAX cannot read {len(broken):,} of {count(len(contents.entries), 'entry', 'entries')}: {told}",
        advice="JAX never replaces an existing entry, so the program is recompiled at every start. "
        f"Delete broken entries.{wait}",
    )  # fmt: skip


def _unreadable(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    unreadable = [entry for entry in contents.entries if entry.reading.state == UNREADABLE]
    if unreadable:
        told = examples([f"{entry.function}: {entry.reading.problem}" for entry in unreadable])
        yield Complaint(
            kind="unreadable_entries", severity="warning", files=tuple(entry.path for entry in unreadable),
            summary=f"This user (uid {user()}) cannot read {count(len(unreadable), 'entry', 'entries')}: {told}",
            advice="Their programs are recompiled at every start by this user. Make the files "
                   "readable (`chmod`, or a umask of 022 in the job that stores them).",
        )  # fmt: skip
    unchecked = [entry for entry in contents.entries if entry.reading.state == UNCHECKED]
    if unchecked:
        yield Complaint(
            kind="unchecked_entries", severity="info",
            summary=f"{count(len(unchecked), 'entry was', 'entries were')} not checked, because this Python cannot "
            "read zstd. They may be fine.",
            advice="pip install zstandard, or run this with a Python that has it.",
        )  # fmt: skip


def _orphans(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    if contents.orphans:
        yield Complaint(
            kind="orphaned_files", severity="warning", removable=True, files=_paths(contents.orphans),
            summary=f"{count(len(contents.orphans), 'access time (`*-atime`) has', 'access times (`*-atime`) have')} "
            "no entry.",
            advice="An entry was deleted by hand, or its eviction was interrupted. Delete the rest of it.",
        )  # fmt: skip
    if not contents.is_cache:
        return
    temporary = tuple(file for file in contents.others if _TEMPORARY.fullmatch(file.path.name))
    others = tuple(file for file in contents.others if file not in temporary)
    if temporary:
        names = examples([file.path.name for file in temporary])
        yield Complaint(
            kind="temporary_files", severity="warning", removable=True, files=_paths(temporary),
            summary=f"{count(len(temporary), 'temporary file', 'temporary files')} of "
            f"{size(sum(file.bytes for file in temporary))}: {names}",
            advice="JAX never reads such a file. Delete it, unless a copy into the directory is in progress.",
        )  # fmt: skip
    if others:
        names = examples([file.path.name for file in others])
        yield Complaint(
            kind="other_files", severity="info", files=_paths(others),
            summary=f"{count(len(others), 'file belongs', 'files belong')} neither to JAX nor to XLA: {names}",
            advice="Keep other files out of a cache directory: it is often deleted as a whole.",
        )  # fmt: skip


def _paths(files: tuple[Leftover, ...]) -> tuple[Path, ...]:
    return tuple(file.path for file in files)


# -------------------------------------------------------------------------------------------------- its users


def _writable(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    """Entries are executed: who may write here may run code as whoever reads it."""
    mode = contents.path.stat().st_mode
    folder = shlex.quote(str(contents.path))
    loose = [entry for entry in contents.entries if entry.mode & _OTHERS_MAY_WRITE and not stat.S_ISLNK(entry.mode)]
    if mode & _OTHERS_MAY_WRITE:
        yield _by_others(f"The directory is writable by {_whom(mode)}", f"chmod go-w {folder}", ())
    if loose:
        whom = _whom(*(entry.mode for entry in loose))
        what = f"{count(len(loose), 'entry is', 'entries are')} writable by {whom}"
        yield _by_others(what, f"chmod go-w {folder}/*", tuple(entry.path for entry in loose))


def _by_others(what: str, command: str, files: tuple[Path, ...]) -> Complaint:
    return Complaint(
        kind="writable_by_others", severity="warning", files=files,
        summary=f"{what}. JAX executes entries: anyone who can write here can run code as every user of the cache.",
        advice=f"Allow only the owner to write: {command}",
    )  # fmt: skip


def _whom(*modes: int) -> str:
    return "everybody" if any(mode & stat.S_IWOTH for mode in modes) else "its group"


def _rights(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    if (owner := contents.path.stat().st_uid) not in (0, user()):
        yield Complaint(
            kind="foreign_owner", severity="warning",
            summary=f"The directory belongs to uid {owner}, and you are uid {user()}. JAX executes entries: their "
            "owner can run code as every user of the cache.",
            advice="Use your own directory, unless you trust that user with your account.",
        )  # fmt: skip
    if not os.access(contents.path, os.W_OK | os.X_OK):
        yield Complaint(
            kind="not_writable", severity="warning",
            summary=f"This user (uid {user()}) may not write to the directory. Programs missing from the cache are "
            "recompiled at every start, with a warning each time.",
            advice=("Give write permission to the job that fills the cache. For a job that should "
                   "only read, this is fine."),
        )  # fmt: skip


# ------------------------------------------------------------------------------------------- a bounded size


def _bounded(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    """Complains about what breaks a cache of bounded size (`jax_compilation_cache_max_size`)."""
    limit = setting.environment.get(MAX_SIZE, "").strip()
    wanted = limit not in ("", "-1")
    timed = len(contents.entries) - contents.missing_atimes
    if not (wanted or timed or contents.lock or contents.orphans):
        return
    if importlib.util.find_spec("filelock") is None:
        why = f"{MAX_SIZE} is {limit}" if wanted else ("Some job limits its size (jax_compilation_cache_max_size)")
        yield Complaint(
            kind="filelock_missing", severity="warning" if wanted else "info",
            summary=f"{why}, and this Python has no `filelock`. JAX then warns once and runs without a cache.",
            advice="pip install filelock in the environment of the job, or do not limit the size.",
        )  # fmt: skip
    if contents.missing_atimes:
        yield Complaint(
            kind="missing_access_times", severity="warning" if wanted or timed else "info",
            summary=f"{contents.missing_atimes:,} of {count(len(contents.entries), 'entry', 'entries')} have no "
            "`-atime` file. A job that sets jax_compilation_cache_max_size stores nothing here (FileNotFoundError) "
            "until each entry has one.",
            advice="Limit the size in all jobs or in none, and start with an empty directory.",
        )  # fmt: skip
    if wanted and limit.isdigit() and contents.bytes > int(limit):
        yield Complaint(
            kind="over_max_size", severity="warning",
            summary=f"The entries take {size(contents.bytes)}; {MAX_SIZE} is {size(int(limit))}.",
            advice="Only jobs that limit the size evict. Set the limit in all jobs, or delete old entries.",
        )  # fmt: skip


# ----------------------------------------------------------------------------------- its versions and places


def _namespace(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    """Complains if nobody can say which entries are still of use."""
    readings = [entry.reading for entry in contents.entries]
    versions = Counter(setting.writers[entry.key] for entry in contents.entries if entry.key in setting.writers)
    layouts = Counter(reading.layout for reading in readings if reading.layout)
    codecs = Counter(reading.codec for reading in readings if reading.codec)
    told = [
        f"{what} " + ", ".join(f"{name} ({number})" for name, number in sorted(each.items()))
        for what, each in (("jaxlib", versions), ("layout", layouts), ("codec", codecs))
        if len(each) > 1
    ]
    if told:
        yield Complaint(
            kind="mixed_writers", severity="info",
            summary=f"Several versions or environments stored entries here: {'; '.join(told)}.",
            advice="Each hits only its own, which is fine, but it is unclear which entries are "
                   "still in use. Give each version its own directory: .../jax-0.10.2/",
        )  # fmt: skip
    elif contents.entries and not any(map(VERSION.search, Path(os.path.abspath(setting.given)).parts[-2:])):
        yield Complaint(
            kind="no_namespace", severity="info",
            summary=f"The directory's name, `{setting.given}`, has no version in it.",
            advice="A new jaxlib misses all entries, and the old ones stay forever. With one "
                   "directory per version (.../jax-0.10.2/) you can delete old ones as a whole.",
        )  # fmt: skip


def _moved(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    """Entries that were stored while the directory had another name, which older versions of JAX have in the key."""
    here = setting.given.removeprefix("file://")
    names = {str(Path(here)), os.path.abspath(here)}
    found = Counter(entry.reading.stored_under for entry in contents.entries if entry.reading.stored_under)
    elsewhere = {name: number for name, number in found.items() if name not in names and os.path.isabs(name)}
    if elsewhere:
        told = examples([f"`{name}` ({number})" for name, number in sorted(elsewhere.items())])
        yield Complaint(
            kind="stored_under_another_name", severity="info",
            summary=f"{sum(elsewhere.values()):,} of {count(len(contents.entries), 'entry', 'entries')} were stored "
            f"while jax_compilation_cache_dir was {told}, not `{here}`.",
            advice="Up to JAX 0.10 that path is part of the key: such entries hit only if the "
                   "setting is identical. Mount or copy the cache under the same path everywhere.",
        )  # fmt: skip


_CHECKS: tuple[Check, ...] = (
    _identity,
    _broken,
    _unreadable,
    _orphans,
    _writable,
    _rights,
    _bounded,
    _moved,
    _namespace,
)
