"""The command that a missing extra names."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib

import pytest
from helpers.paths import ROOT

from jaxobs.base.errors import install

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - {"all"}))
def test_the_packages_of_an_extra_are_named(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command works wherever the wheel is installed; with nothing but the sources, it is for a clone."""
    names = {re.split(r"[<>=]", requirement)[0].lower() for requirement in EXTRAS[extra]}
    assert {re.split(r"[<>=]", each)[0].lower() for each in re.findall(r"'(.+?)'", install(extra))} == names

    def absent(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", absent)
    assert install(extra) == f"pip install '.[{extra}]'"
