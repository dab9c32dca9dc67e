"""Programs that a test needs and pip cannot bring: skipped with the package's name on a laptop, a failure in CI."""

from __future__ import annotations

import errno
import functools
import importlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

from helpers.paths import ROOT

DEBIAN_PACKAGES = {
    "prometheus": "prometheus", "promtool": "prometheus", "alertmanager": "prometheus-alertmanager",
    "prometheus-alertmanager": "prometheus-alertmanager", "amtool": "prometheus-alertmanager", "chromium": "chromium",
    "tmux": "tmux", "victoria-metrics": "victoria-metrics", "openssl": "openssl",
    "prometheus-pushgateway": "prometheus-pushgateway", "prometheus-node-exporter": "prometheus-node-exporter",
}  # fmt: skip
BUILT = ROOT / ".tools" / "bin"


def in_ci() -> bool:
    """Whether nothing may be left out."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def missing(reason: str) -> NoReturn:
    """Skips the test with its reason; fails it in CI."""
    if in_ci():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def no_control_group(refused: Sequence[OSError]) -> NoReturn:
    """Skips a test for which no control group can be made; fails it in CI, unless no container of this kind has them.

    Args:
      refused: what the kernel said of each attempt.
    """
    said = "; ".join(f"{each.filename}: {each.strerror}" for each in refused) or "/sys/fs/cgroup has no controllers"
    reason = (
        f"No control group can be made: {said}. It needs root and a writable /sys/fs/cgroup with the controller "
        "`memory`: sudo, or docker run --privileged."
    )
    if all(each.errno in (errno.EROFS, errno.ENOENT) for each in refused):
        pytest.skip(reason)
    missing(reason)


def program(name: str) -> str:
    """Path of a program; where it is missing the Debian package that has it is named."""
    if (path := shutil.which(name)) is None:
        missing(f"`{name}` is not installed. On Debian: apt-get install {DEBIAN_PACKAGES.get(name, name)}")
    return path


@functools.cache
def _build(name: str) -> None:
    """Has a program built, or the CRDs copied, where that is out of date."""
    done = subprocess.run([ROOT / "tools" / "linters", name], capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"tools/linters {name}: {done.stderr[-2000:]}")


def built(name: str) -> str:
    """Path of a program that tools/linters builds with Go."""
    _build(name)
    path = BUILT / name
    if not path.exists():
        missing(f"`{name}` is not built: make linters (it needs Go, https://go.dev/doc/install)")
    return str(path)


def crds() -> list[Path]:
    """The custom resource definitions that `make linters` takes from the operators' Go modules."""
    _build("crds")
    found = sorted((ROOT / ".tools" / "crds").glob("*.yaml"))
    if not found:
        missing("the operators' CRDs are not here: make linters (it needs Go, https://go.dev/doc/install)")
    return found


def axe() -> str:
    """axe-core, as JavaScript to be evaluated in a page."""
    path = ROOT / ".tools" / "axe-core" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        missing("axe-core is not installed: tools/npm_packages axe-core (it needs npm; on Debian: apt-get install npm)")
    return path.read_text(encoding="utf-8")


def grafana() -> Path:
    """A folder with Grafana's own libraries."""
    path = ROOT / ".tools" / "grafana"
    if not (path / "node_modules" / "@grafana" / "data").exists():
        missing("Grafana's libraries are not installed: tools/npm_packages grafana (on Debian: apt-get install npm)")
    return path


def package(name: str) -> ModuleType:
    """A Python package that the group `serving` brings."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"`{name}` is not installed: pip install --group serving")
