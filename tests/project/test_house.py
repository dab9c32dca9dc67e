"""The house: few rooms, each with its floor and its tests; no long files; a page and a picture that are true."""

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest
from helpers.paths import ROOT, TESTS

from tools import architecture

PACKAGE = ROOT / "jaxobs"
MOST_NAMES = 26
MOST_LINES = 400
TABLES: set[str] = set()
"""Files in `jaxobs/` that are tables of data, which may be longer."""

BESIDE_ROOMS = {"helpers", "project", "versions"}
"""Folders in `tests/` that are about no single room: what tests share, the repository, JAX."""

OPENING = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes"}
"""Names of functions that open a file."""

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def rooms() -> set[str]:
    return {each.parent.name for each in PACKAGE.glob("*/__init__.py")}


def folders(place: Path) -> set[str]:
    return {each.name for each in place.iterdir() if each.is_dir() and any(each.glob("**/*.py"))}


def test_whoever_opens_the_package_sees_few_names() -> None:
    """Another room has to be worth it, or takes the place of one."""
    names = {each.name for each in PACKAGE.iterdir() if each.name != "__pycache__"}
    assert len(names) <= MOST_NAMES, f"jaxobs/ has {len(names)} names, at most {MOST_NAMES}: {sorted(names)}"


def test_every_room_has_its_floor() -> None:
    floors = [room for row in architecture.floors() for room in row]
    assert sorted(floors) == sorted(rooms()), "see `layers` in [tool.importlinter] of pyproject.toml"


def test_the_contract_of_the_library_names_every_room_below_ops() -> None:
    """A room that the contract forgot could import `jaxobs.ops`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [library] = [each for each in contracts if each.get("forbidden_modules") == ["jaxobs.ops"]]
    named = {each.removeprefix("jaxobs.") for each in library["source_modules"]}
    assert named == rooms() - {"cli", "ops"}


def test_state_starts_no_thread_and_opens_no_file() -> None:
    found = []
    for path in (PACKAGE / "state").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.endswith("Thread") or called.rpartition(".")[2] in OPENING:
                found.append(f"{path.name}:{called}")
    assert found == []


def test_tests_lie_in_the_rooms_that_they_test() -> None:
    """Each room has its folder in `tests/`; what is about no room has one of `BESIDE_ROOMS`."""
    assert rooms() - folders(TESTS) == set(), "these rooms have no folder in tests/"
    assert folders(TESTS) - rooms() == BESIDE_ROOMS, "these folders in tests/ are named for no room"
    assert [each.name for each in TESTS.glob("test_*.py")] == [], "tests lie in the folder of their room"


def test_no_file_is_long() -> None:
    lengths = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8").count("\n") for path in PACKAGE.rglob("*.py")
    }
    long = {path: lines for path, lines in lengths.items() if lines > MOST_LINES}
    assert set(long) == TABLES, f"over {MOST_LINES} lines, split them by subject: {long}"


@pytest.mark.parametrize("room", sorted(rooms()))
def test_every_room_says_what_it_holds(room: str) -> None:
    sentence = architecture.sentence(room)
    assert re.fullmatch(r"[A-Z][^\n]*\.", sentence), f"jaxobs/{room}/__init__.py begins with no sentence: {sentence!r}"
    assert len(sentence.partition(":")[0]) <= 62, "too long for its box in the picture: put a colon behind the gist"


def test_page_and_picture_are_fresh() -> None:
    assert architecture.main(["--check"]) == 0


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`((?:jaxobs\.)?\w+(?:\.\w+)+)`", PAGE))))
def test_every_module_that_the_page_names_is_there(named: str) -> None:
    """A dotted name that begins with a room is a module, or something in one."""
    parts = named.removeprefix("jaxobs.").split(".")
    if parts[0] not in rooms():
        assert named.startswith("jaxobs.") or not (PACKAGE / parts[0]).exists()
        return
    module, rest = "jaxobs", parts
    while rest and ((PACKAGE / Path(*module.split(".")[1:], rest[0])).exists() or importable(f"{module}.{rest[0]}")):
        module, rest = f"{module}.{rest[0]}", rest[1:]
    found = importlib.import_module(module)
    for part in rest:
        assert hasattr(found, part), f"docs/architecture.md names `{named}`, but {module} has no `{part}`"
        found = getattr(found, part)


def importable(module: str) -> bool:
    return (ROOT / (module.replace(".", "/") + ".py")).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:[\w.*-]+/)+[\w.*-]*)`", PAGE))))
def test_every_path_that_the_page_names_is_there(path: str) -> None:
    assert list(ROOT.glob(path.rstrip("/"))) or list(PACKAGE.glob(path.rstrip("/"))), f"{path} is not there"
