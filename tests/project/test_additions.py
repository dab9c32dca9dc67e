"""Additions are whole: whatever can be forgotten beside it fails here or at its own place, by name.

The list of what to touch for each is in `docs/architecture.md`. What an entry of a folder has is checked by
`jaxobs.base.discovery` wherever the folder is read, so also here.
"""

import ast
import dataclasses
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT

from jaxobs import cli
from jaxobs.actions import ActionModule
from jaxobs.base import config, discovery
from jaxobs.base.config import Settings
from jaxobs.exporters import ExporterModule, RoutesModule
from jaxobs.facts import kinds
from jaxobs.findings import all_kinds
from jaxobs.metrics.subjects import Subject
from jaxobs.ops.monitoring.generate import reference
from jaxobs.sources import SourceModule
from jaxobs.sources.support import programs
from jaxobs.state.store import Store
from tools import registries

PACKAGE = ROOT / "jaxobs"
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
WRITTEN = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
)
"""README and the pages in docs/ that people wrote: all but the reference."""
INTERNAL_PATHS = {"/"}
"""Paths of the endpoint that need no page."""


def entries(form: type[Any]) -> list[Any]:
    """The whole entries of a folder; the others fail in `test_every_entry_of_a_folder_is_whole`."""
    return discovery.modules(form, lambda name, error: None)


@pytest.mark.parametrize("form", [form for name in registries.packages() for form in discovery.forms(name)])
def test_every_entry_of_a_folder_is_whole(form: type[Any]) -> None:
    """A folder's protocols name what each of its modules has, and are of use: a module has what each names."""
    assert discovery.modules(form)


def test_mypy_refuses_an_entry_with_another_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`make lint` runs this check over all folders."""
    texts = {
        "__init__": "from typing import Protocol\nfrom jaxobs.base import discovery\n"
        "class Adds(discovery.Module, Protocol):\n    def add(self, number: int, /) -> int: ...\n",
        "right": "def add(number: int) -> int:\n    return number + 1\n",
        "wrong": "def add(number: str) -> int:\n    return int(number) + 1\n",
    }
    for name, text in texts.items():
        file = tmp_path / "registry_of_this_test" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(tmp_path))
    assert registries.check("registry_of_this_test") == 1
    printed = capfd.readouterr().out
    assert 'of Module "registry_of_this_test.wrong" have conflicts' in printed and "Found 1 error" in printed


@pytest.mark.parametrize("module", entries(Subject), ids=lambda each: each.__name__)
def test_every_metric_that_is_declared_is_exported(module: Any) -> None:
    exported = {each.name for each in module.METRICS}
    for node in ast.walk(ast.parse(SOURCES[Path(module.__file__ or "")])):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Metric":
            for name in (each.value for each in node.keywords if each.arg == "name"):
                declared = ast.literal_eval(name) if isinstance(name, ast.Constant) else None
                assert declared in {None, *exported}, f"{declared} is not in `METRICS` of {module.__name__}"


@pytest.mark.parametrize("module", entries(SourceModule), ids=lambda each: each.__name__)
def test_a_source_that_is_stopped_leaves_nothing(module: Any) -> None:
    """No subscription, listener of JAX, hook or thread: `stop` undoes what `start` did, also the second time."""
    from jax._src import array, monitoring, util

    from jaxobs.internals import post_hook

    def left_over() -> dict[str, object]:
        return {
            "subscribers": len(store._subscribers) + len(store._answering),
            "listeners": [len(each) for each in vars(monitoring).values() if isinstance(each, list)],
            "hooks": (sys.excepthook, threading.excepthook, post_hook._get(), util.test_event_listener),
            "arrays": dict(vars(array.ArrayImpl)),
        }

    threads = set(threading.enumerate())
    store = Store(Settings(transfers=True, find_loops=True))
    source = module.source(store)
    for name in ("start", "stop", "sample", "after_fork"):
        assert callable(getattr(source, name, None)), f"the source of {module.__name__} has no method `{name}`"
    before = left_over()
    for _ in range(2):
        source.start()
        source.stop()
        for thread in set(threading.enumerate()) - threads:
            thread.join(timeout=60)
            assert not thread.is_alive(), f"{module.__name__}: its `stop` leaves the thread {thread.name}"
        assert left_over() == before, f"{module.__name__}: its `stop` leaves something of its `start`"


@pytest.mark.parametrize("module", entries(RoutesModule), ids=lambda each: each.__name__)
def test_every_path_of_the_endpoint_is_written_about(module: Any) -> None:
    """In README or docs; what an exporter writes by itself has a setting, and settings have their page."""
    missing = [path for path in module.routes(Store()) if path not in INTERNAL_PATHS and path not in WRITTEN]
    assert missing == [], f"README and docs/ do not name what {module.__name__} answers"


@pytest.mark.parametrize("module", entries(ExporterModule), ids=lambda each: each.__name__)
def test_an_exporter_is_off_unless_it_is_wanted(module: Any) -> None:
    assert module.exporter(Store(), Settings()) is None


FINDINGS: dict[str, Any] = {each.NAME: each for each in (*all_kinds.every(), programs)}


def test_every_kind_of_finding_is_in_the_reference_once() -> None:
    assert sorted(each.NAME for each in reference.finding_kinds()) == sorted(FINDINGS)


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_is_written_about(name: str) -> None:
    """A sentence for the reference, and for whoever reads it in a page in docs/: what it means and what to do."""
    module = FINDINGS[name]
    assert module is programs or discovery.short_name(module) == name, f"the file of `{name}` has another name"
    about, told_when = reference.finding_texts(module)
    assert re.fullmatch(r"[A-Z`].+\.", about, re.DOTALL), f"`about` of `{name}` is no sentence"
    assert told_when.strip(), f"`told_when` of `{name}` is empty"
    assert f"`{name}`" in WRITTEN, f"no page in docs/ says what a finding `{name}` means: see docs/findings.md"


@pytest.mark.parametrize("module", entries(cli.Command), ids=lambda each: each.__name__)
def test_a_command_is_written_about(module: Any) -> None:
    name = discovery.short_name(module).replace("_", "-")
    assert re.search(rf"jaxobs {name}\b", WRITTEN), f"README and docs/ do not name `jaxobs {name}`"


@pytest.mark.parametrize("module", entries(ActionModule), ids=lambda each: each.__name__)
def test_an_action_is_written_about(module: Any) -> None:
    assert discovery.short_name(module) == module.NAME
    page = (ROOT / "docs" / "profile.md").read_text(encoding="utf-8")
    assert re.search(rf"[`\"/]{module.NAME}\b", page), (
        f"docs/profile.md#captures-on-demand does not name the action `{module.NAME}`"
    )


def read_settings() -> set[str]:
    """The attributes that something in jaxobs reads of a `Settings`, by whatever name it has it."""
    found = set()
    for path, text in SOURCES.items():
        if path.name != "config.py":
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(("settings", "changed")):
                    found.add(node.attr)
    return found


def test_every_setting_is_read() -> None:
    assert sorted(set(config.names()) - read_settings()) == [], "nobody reads these settings"


@pytest.mark.parametrize("each", dataclasses.fields(Settings), ids=lambda each: each.name)
def test_a_setting_says_what_it_does(each: dataclasses.Field[Any]) -> None:
    """In a sentence, which is its help and its row in docs/reference/settings.md."""
    assert re.fullmatch(r"[A-Z].+\.", each.metadata["help"], re.DOTALL), f"the help of `{each.name}` is no sentence"


@pytest.mark.parametrize("kind", kinds.event_types())
def test_an_event_kind_is_made_by_somebody(kind: str) -> None:
    """A class of an event that nothing makes is a promise in the reference that nobody keeps."""
    name = kinds.event_types()[kind].__name__
    makers = [path for path, text in SOURCES.items() if path.parent.name != "facts" and f"{name}(" in text]
    assert makers, f"nothing makes a `{name}`"


def test_versions_of_jax_are_the_same_everywhere() -> None:
    """The oldest in the matrix is the one that is required; the newest is the one that README promises."""
    from tools import environments

    numbered = [row.jax for row in environments.MATRIX if row.jax != environments.NEWEST]
    required = re.search(r'"jax>=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert required and numbered[0].startswith(required[1]), "pyproject.toml and tools/environments.py differ"
    promised = re.findall(r"JAX (?:from )?(\d+\.\d+)\.\d to\s+(\d+\.\d+)", WRITTEN)
    assert promised
    newest = max(tuple(map(int, each.split(".")[:2])) for each in numbered)
    for oldest, latest in promised:
        assert numbered[0].startswith(oldest), "README or docs/ promise another oldest JAX than the matrix has"
        assert tuple(map(int, latest.split("."))) >= newest, "README or docs/ promise less than the matrix has"


def test_pages_in_docs_can_be_found() -> None:
    reached, ahead = set(), {ROOT / "README.md"}
    while ahead:
        page = ahead.pop()
        reached.add(page)
        links = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        ahead |= {target for link in links if (target := (page.parent / link).resolve()).is_file()} - reached
    lost = [str(each.relative_to(ROOT)) for each in Path(ROOT / "docs").rglob("*.md") if each not in reached]
    assert lost == [], "no link leads to these pages"
