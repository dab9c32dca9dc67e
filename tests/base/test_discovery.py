"""Folders that are registries: what is an entry, and what becomes of a module that lacks what each entry has."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


FORM = """\
from typing import Protocol
from jaxobs.base import discovery

class Form(discovery.Module, Protocol):
    NAME: str
    def run(self) -> None: ...

class Showing(discovery.Module, Protocol):
    NAME: str
    def show(self) -> None: ...

class Checking(Form, Protocol):
    def check(self) -> None: ...
"""


def form(name: str, protocol: str = "Form") -> type[Any]:
    """A protocol that a made package declares."""
    found: type[Any] = getattr(importlib.import_module(name), protocol)
    return found


def test_every_module_is_an_entry_and_no_package(package: Package) -> None:
    whole = 'NAME = ""\nrun = print'
    name = package(FORM, b=whole, a=whole, shared__in____init__="", shared__in__part="")
    assert [entry.__name__ for entry in discovery.modules(form(name))] == [f"{name}.a", f"{name}.b"]
    assert discovery.names(name) == ["a", "b"]
    assert discovery.short_name(discovery.module(form(name), "b")) == "b"


def test_a_module_with_an_error_gives_the_others(package: Package) -> None:
    """A source that a JAX release broke does not take the rest with it."""
    whole = 'NAME = ""\nrun = print'
    name = package(FORM, a=whole, b="import no_such_module_at_all", c=whole)
    failed: list[tuple[str, str]] = []
    found = discovery.modules(form(name), lambda module, error: failed.append((module, type(error).__name__)))
    assert [entry.__name__ for entry in found] == [f"{name}.a", f"{name}.c"]
    assert failed == [(f"{name}.b", "ModuleNotFoundError")]
    with pytest.raises(ModuleNotFoundError):
        discovery.modules(form(name))
    assert discovery.module(form(name), "c").NAME == ""


def test_an_incomplete_module_is_named_with_what_it_lacks(package: Package) -> None:
    name = package(FORM, a='NAME = ""\nshow = run = print', b="run = print", c='NAME = ""')
    failed: list[str] = []
    found = discovery.modules(form(name), lambda module, error: failed.append(str(error)))
    assert [entry.__name__ for entry in found] == [f"{name}.a"]
    assert failed[0].startswith(f"{name}.b has no `NAME`, but each module in {name} needs: NAME, run | NAME, show.")
    assert failed[1].startswith(f"{name}.c has no `run`, but")
    for look in (discovery.modules, lambda form: discovery.module(form, "b")):
        with pytest.raises(discovery.IncompleteError, match=r"\.b has no `NAME`"):
            look(form(name))


def test_a_folder_may_declare_several_protocols(package: Package) -> None:
    """An entry needs one of them; a protocol that extends another names what some have beside it."""
    runs, shows = 'NAME = ""\nrun = print', 'NAME = ""\nshow = print'
    name = package(FORM, checks=f"{runs}\ncheck = print", runs=runs, shows=shows)
    assert [each.__name__ for each in discovery.forms(name)] == ["Form", "Showing", "Checking"]
    assert discovery.members(form(name, "Checking")) == ["NAME", "run", "check"]

    def found(protocol: str) -> list[str]:
        return [discovery.short_name(entry) for entry in discovery.modules(form(name, protocol))]

    assert found("Form") == ["checks", "runs"]
    assert found("Showing") == ["shows"]
    assert found("Checking") == ["checks"]
