"""Whose code a frame runs: JAX's, a library's, ours, or the user's."""

from __future__ import annotations

import os
import sys
import sysconfig


def _folders(*names: str) -> tuple[str, ...]:
    found = []
    for name in names:
        module = sys.modules.get(name)
        for path in getattr(module, "__path__", None) or []:
            found.append(path + os.sep)
    return tuple(found)


_jax_folders: tuple[str, ...] = ()
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMO_FOLDER = os.path.join(_OWN_FOLDER, "demo", "")
_INSTALLED = sysconfig.get_paths()

_LIBRARY_FOLDERS = tuple(
    {
        path + os.sep
        for path in (*_INSTALLED.values(), os.path.dirname(os.__file__))
        if path and path not in (_INSTALLED.get("scripts"), _INSTALLED.get("data"))
    }
)


def is_jax(filename: str) -> bool:
    """Whether a file is JAX's own."""
    global _jax_folders
    if not _jax_folders:
        _jax_folders = _folders("jax", "jaxlib")
    return filename.startswith(_jax_folders)


def is_own(filename: str) -> bool:
    """Whether a file is ours, the demo apart: that is a user's program."""
    return filename.startswith(_OWN_FOLDER) and not filename.startswith(_DEMO_FOLDER)


def is_plumbing(filename: str) -> bool:
    """Installed libraries and ourselves: no place where the user could change anything."""
    return filename.startswith((_OWN_FOLDER, "<frozen ", *_LIBRARY_FOLDERS)) and not filename.startswith(_DEMO_FOLDER)
