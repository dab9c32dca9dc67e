"""Errors: the command that a missing extra names, and the name that was meant."""

import importlib.metadata
import re
import tomllib

import pytest
from helpers.paths import ROOT

from jaxobs.base.errors import did_you_mean, install

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
OPTIONS = ["--event-log", "--event-log-max-bytes", "--peak-flops", "--port"]


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - {"all"}))
def test_the_packages_of_an_extra_are_named(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command works wherever the wheel is installed; with nothing but the sources, it is for a clone."""
    names = {re.split(r"[<>=]", requirement)[0].lower() for requirement in EXTRAS[extra]}
    assert {re.split(r"[<>=]", each)[0].lower() for each in re.findall(r"'(.+?)'", install(extra))} == names

    def absent(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", absent)
    assert install(extra) == f"pip install '.[{extra}]'"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("--evnt-log", "--event-log"), ("--peak", "--peak-flops"), ("--po", "--port"), ("--event", "--event-log"),
        ("--EVENT-LOG", None), ("--", None), ("-", None), ("--colour", None),
    ],
)  # fmt: skip
def test_the_nearest_name_or_none(name: str, meant: str | None) -> None:
    """A name that was cut short counts as near, and the shortest of several wins."""
    assert did_you_mean(name, OPTIONS) == (f"Did you mean `{meant}`? " if meant else "")


def test_a_name_of_any_length_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long name gets no suggestion: it may come over HTTP, and the comparison takes its length squared."""
    compared: list[int] = []
    monkeypatch.setattr("difflib.get_close_matches", lambda name, *rest: compared.append(len(name)) or [])
    did_you_mean("x" * 10**6, OPTIONS)
    assert compared == [100]
