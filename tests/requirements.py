"""What a test needs that pip cannot bring: skipped with the package's name on a laptop, a failure in CI."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

DEBIAN_PACKAGES = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "alertmanager": "prometheus-alertmanager",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
    "chromium": "chromium",
    "tmux": "tmux",
    "victoria-metrics": "victoria-metrics",
}
BUILT = Path(__file__).parent.parent / ".tools" / "bin"


def in_ci() -> bool:
    """Whether nothing may be left out."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def missing(reason: str) -> NoReturn:
    """Skips the test with its reason; fails it in CI."""
    if in_ci():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def program(name: str) -> str:
    """Path of a program; where it is missing the Debian package that has it is named."""
    path = shutil.which(name)
    if path is None:
        missing(f"`{name}` is not installed. On Debian: apt-get install {DEBIAN_PACKAGES.get(name, name)}")
    return path


def built(name: str) -> str:
    """Path of a program that `make linters` builds with Go."""
    path = BUILT / name
    if not path.exists():
        missing(f"`{name}` is not built: make linters (it needs Go, https://go.dev/doc/install)")
    return str(path)


def package(name: str) -> ModuleType:
    """A Python package that the group `serving` brings."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"`{name}` is not installed: pip install --group serving")
