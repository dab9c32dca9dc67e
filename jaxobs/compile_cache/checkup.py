"""Checks of a cache directory: what is wrong with its files, and what to do about it. They only look."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from jaxobs.compile_cache import sharing
from jaxobs.compile_cache.complaints import ADVICE, PROBLEM, Check, Complaint, Setting, count, examples, user
from jaxobs.compile_cache.directory import Contents, Leftover
from jaxobs.compile_cache.entries import BROKEN, UNCHECKED, UNREADABLE
from jaxobs.views.terminal.text import size

RECENT_SECONDS = 60.0
"""JAX writes entries in place: one that was touched so lately may be half written by a process that is at it."""

_OF_VOLUMES = re.compile(r"lost\+found|\.snapshots?|\.Trash.*|\.gitkeep|\.gitignore|\.keep|\.\.(data|\d.*)")
"""Names that a new volume has."""
_TEMPORARY = re.compile(r"(\.nfs|tmp|\.~|#).*|.*(\.tmp|\.temp|\.part|\.partial|\.swp|~)|.+-[0-9a-f]{64}.*")


def unusable(path: Path) -> Complaint | None:
    """Why the directory cannot be looked into, if it cannot."""
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return Complaint(
                kind="not_a_directory", severity=PROBLEM,
                summary=f"`{path}` is not a directory. JAX warns once (FileExistsError) and runs without a cache.",
                advice="Name a directory in jax_compilation_cache_dir, or move this file away.",
            )  # fmt: skip
        with os.scandir(path) as found:
            next(found, None)
    except OSError as error:
        return Complaint(
            kind="unreadable", severity=PROBLEM,
            summary=f"`{path}` cannot be read: {error.strerror or error}. JAX runs without a cache there.",
            advice=f"Give this user (uid {user()}) access: it needs to list, read and write the directory.",
        )  # fmt: skip
    return None


def examine(contents: Contents, setting: Setting) -> list[Complaint]:
    """All complaints, problems first."""
    found = [complaint for check in _CHECKS for complaint in check(contents, setting)]
    return sorted(found, key=lambda complaint: complaint.severity != PROBLEM)


def _identity(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    if contents.nested:
        yield Complaint(
            kind="nested", severity=ADVICE,
            summary=f"Subdirectories contain their own caches: {examples([str(path) for path in contents.nested])}.",
            advice="Each is a separate cache: inspect them one by one.",
        )  # fmt: skip
    if contents.is_cache or contents.nested:
        return
    names = [path.name for path in (*(each.path for each in contents.others), *contents.folders)]
    names = [each for each in names if not _OF_VOLUMES.fullmatch(each)]
    if not names:
        yield Complaint(
            kind="empty", severity=ADVICE, summary="The directory is empty: no program has been stored in it.",
            advice="JAX stores only what took jax_persistent_cache_min_compile_time_secs (1 s) or "
                   "longer to compile. `jaxobs cache verify -- CMD` shows what a command does not "
                   "store, and why.",
        )  # fmt: skip
    else:
        yield Complaint(
            kind="not_a_cache", severity=PROBLEM,
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
        kind="broken_entries", severity=PROBLEM, files=tuple(entry.path for entry in broken), removable=True,
        summary=f"JAX cannot read {len(broken):,} of {count(len(contents.entries), 'entry', 'entries')}: {told}",
        advice="JAX never replaces an existing entry, so the program is recompiled at every start. "
        f"Delete broken entries.{wait}",
    )  # fmt: skip


def _unreadable(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    unreadable = [entry for entry in contents.entries if entry.reading.state == UNREADABLE]
    if unreadable:
        told = examples([f"{entry.function}: {entry.reading.problem}" for entry in unreadable])
        yield Complaint(
            kind="unreadable_entries", severity=PROBLEM, files=tuple(entry.path for entry in unreadable),
            summary=f"This user (uid {user()}) cannot read {count(len(unreadable), 'entry', 'entries')}: {told}",
            advice="Their programs are recompiled at every start by this user. Make the files "
                   "readable (`chmod`, or a umask of 022 in the job that stores them).",
        )  # fmt: skip
    unchecked = [entry for entry in contents.entries if entry.reading.state == UNCHECKED]
    if unchecked:
        yield Complaint(
            kind="unchecked_entries", severity=ADVICE,
            summary=f"{count(len(unchecked), 'entry was', 'entries were')} not checked, because this Python cannot "
            "read zstd. They may be fine.",
            advice="pip install zstandard, or run this with a Python that has it.",
        )  # fmt: skip


def _orphans(contents: Contents, setting: Setting) -> Iterator[Complaint]:
    if contents.orphans:
        yield Complaint(
            kind="orphaned_files", severity=PROBLEM, removable=True, files=_paths(contents.orphans),
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
            kind="temporary_files", severity=PROBLEM, removable=True, files=_paths(temporary),
            summary=f"{count(len(temporary), 'temporary file', 'temporary files')} of "
            f"{size(sum(file.bytes for file in temporary))}: {names}",
            advice="JAX never reads such a file. Delete it, unless a copy into the directory is in progress.",
        )  # fmt: skip
    if others:
        names = examples([file.path.name for file in others])
        yield Complaint(
            kind="other_files", severity=ADVICE, files=_paths(others),
            summary=f"{count(len(others), 'file belongs', 'files belong')} neither to JAX nor to XLA: {names}",
            advice="Keep other files out of a cache directory: it is often deleted as a whole.",
        )  # fmt: skip


def _paths(files: tuple[Leftover, ...]) -> tuple[Path, ...]:
    return tuple(file.path for file in files)


_CHECKS: tuple[Check, ...] = (_identity, _broken, _unreadable, _orphans, *sharing.CHECKS)
