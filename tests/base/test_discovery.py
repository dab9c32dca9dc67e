"""Folders that are registries: what is an entry, and what becomes of a module that lacks what each entry has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jaxobs.base import discovery

Package = Callable[..., str]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Makes a package of modules with these texts; returns its name."""
    monkeypatch.syspath_prepend(tmp_path)
    made = iter(range(100))

    def make(init: str = "", **modules: str) -> str:
        name = f"registry_of_a_test_{tmp_path.name.replace('-', '_')}_{next(made)}"
        (tmp_path / name).mkdir()
        for module, text in {"__init__": init, **modules}.items():
            file = tmp_path / name / f"{module.replace('__in__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return name

    yield make


def test_every_module_is_an_entry_and_no_package(package: Package) -> None:
    """What entries share lies in a package inside."""
    name = package(b="", a="", shared__in____init__="", shared__in__part="")
    assert [each.__name__ for each in discovery.modules(name)] == [f"{name}.a", f"{name}.b"]
    assert discovery.names(name) == ["a", "b"]


def test_a_module_with_an_error_gives_the_others(package: Package) -> None:
    """One source that a JAX release broke does not take the rest with it."""
    name = package(a="", b="import no_such_module_at_all", c="")
    failed: list[tuple[str, str]] = []
    found = discovery.modules(name, lambda module, error: failed.append((module, type(error).__name__)))
    assert [each.__name__ for each in found] == [f"{name}.a", f"{name}.c"]
    assert failed == [(f"{name}.b", "ModuleNotFoundError")]
    with pytest.raises(ModuleNotFoundError):
        discovery.modules(name)


def test_an_incomplete_module_is_named_with_what_it_lacks(package: Package) -> None:
    """At the first look into the folder, not where somebody wants the attribute."""
    name = package('EACH_HAS = ("NAME", "run | show")', a='NAME = ""\nshow = run = 1', b="run = 1", c='NAME = ""')
    failed: list[str] = []
    found = discovery.modules(name, lambda module, error: failed.append(str(error)))
    assert [each.__name__ for each in found] == [f"{name}.a"]
    assert failed[0].startswith(f"{name}.b has no `NAME`, but each module in {name} needs: NAME, run | show.")
    assert failed[1].startswith(f"{name}.c has no `run | show`, but")
    with pytest.raises(discovery.IncompleteError, match=r"\.b has no `NAME`"):
        discovery.modules(name)
