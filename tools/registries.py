"""Has mypy check the modules of each folder that is a registry against the protocols that the folder declares.

python -m tools.registries         prints what does not fit; exit code 1 if something does not
python -m tools.registries --all   checks all other types in the same run of mypy
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from jaxobs.base import discovery

ROOT = Path(__file__).resolve().parent.parent


def packages() -> Iterator[str]:
    """Yields the names of the packages of jaxobs and of the tools that declare what each of their modules has."""
    for path in sorted((*ROOT.glob("jaxobs/**/__init__.py"), *ROOT.glob("tools/**/__init__.py"))):
        name = ".".join(path.parent.relative_to(ROOT).parts)
        if discovery.forms(name):
            yield name


def assignments(package: str) -> Iterator[str]:
    """Yields lines of Python that assign each module of a package to variables of the protocols whose names it has."""
    for form in discovery.forms(package):
        alias = f"{form.__name__}_of_{package.replace('.', '_')}"
        yield f"from {package} import {form.__name__} as {alias}"
        for name in discovery.names(package):
            module = importlib.import_module(f"{package}.{name}")
            if not discovery.missing(module, form):
                own, needs = f"{name.replace('.', '_')}_{alias}", getattr(module, "NEEDS", None)
                yield f"import {package}.{name} as {own}"
                if needs is not None:
                    yield f"from {needs.__module__} import {needs.__name__} as needs_of_{own}"
                yield f"_{own}: {alias}{f'[needs_of_{own}]' if needs is not None else ''} = {own}"


def check(*names: str, more: Iterable[str] = ()) -> int:
    """Runs mypy over the modules of these packages, and over more files and folders; returns its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "registries.py")
        file.write_text("\n".join(line for name in names for line in assignments(name)) + "\n", encoding="utf-8")
        options = ("--config-file", str(ROOT / "pyproject.toml"))
        return subprocess.run(
            [sys.executable, "-m", "mypy", *options, *more, str(file)], cwd=ROOT, check=False
        ).returncode


def checked() -> list[str]:
    """Files and folders that mypy checks if it is given none."""
    found: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["files"]
    return found


if __name__ == "__main__":
    sys.exit(check(*packages(), more=checked() if sys.argv[1:] == ["--all"] else ()))
