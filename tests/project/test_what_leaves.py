"""Everything by which data leaves the process is listed, documented and off by default; and no marker gets out."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import run_programs
from helpers.paths import ROOT

LISTED = tomllib.loads(Path(__file__).with_name("what_leaves.toml").read_text(encoding="utf-8"))
MODULES, CALLS = set(LISTED["imports"]), set(LISTED["calls"])
PROGRAM = ROOT / "tests" / "helpers" / "programs" / "leaving.py"
MARKER = re.compile(rb"marker-[a-z]+|31415926|109,? +97,? +114")


def _ways(path: Path) -> Iterator[str]:
    """Names the modules and calls of a file that can take data out of the process."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module), *(f"{node.module}.{each.name}" for each in node.names)]
        yield from (module for module in MODULES for name in names if f"{name}.".startswith(f"{module}."))
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            receiver = getattr(getattr(node.func, "value", None), "id", "")
            if called in CALLS or f"{receiver}.{called}" in CALLS:
                yield called
            elif called in ("open", "fdopen") and _writes(node):
                yield "open to write"


def _writes(call: ast.Call) -> bool:
    parts = [part for each in (*call.args, *call.keywords) for part in ast.walk(each)]
    modes = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    flags = {getattr(part, "attr", "") for part in parts}
    return any(re.fullmatch("[rwaxbt+]*[wax+][bt+]*", each) for each in modes) or bool(flags & set(LISTED["flags"]))


def test_modules_that_can_send_or_write_are_those_of_the_list() -> None:
    library = ROOT / "jaxobs"
    files = [each for each in library.rglob("*.py") if each.relative_to(library).parts[0] != "ops"]
    found = {each.relative_to(library).as_posix(): sorted(set(_ways(each))) for each in files}
    assert {name: ways for name, ways in sorted(found.items()) if ways} == {
        name: sorted(about["ways"]) for name, about in LISTED["modules"].items()
    }


@pytest.mark.parametrize("name", [name for name, about in LISTED["modules"].items() if "page" in about])
def test_the_page_says_what_switches_a_way_on(name: str) -> None:
    about = LISTED["modules"][name]
    text = (ROOT / about["page"]).read_text(encoding="utf-8")
    section = text.partition("\n## What leaves the process\n")[2].partition("\n## ")[0] or text
    assert about["by"] in section


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = run_programs.environment(
        MARKED="marker-environment", XDG_RUNTIME_DIR=str(folder), PYTHONPATH=str(ROOT), PYTHONDONTWRITEBYTECODE="1"
    )
    command = [sys.executable, str(PROGRAM), "marker-argument", *arguments]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_by_default_nothing_connects_and_one_file_is_written(tmp_path: Path) -> None:
    left = [each for each in _run(tmp_path).stdout.splitlines() if each.startswith("left")]
    assert [each for each in left if not each.startswith(("left open", "left os.rename"))] == []
    assert [each for each in left if f"{tmp_path}/jaxobs/" not in each] == []
    assert sorted(each.name for each in tmp_path.iterdir() if not each.name.startswith("answer-")) == ["jaxobs"]


@pytest.mark.slow
def test_markers_stay_in_the_process_but_for_static_arguments_and_exceptions(tmp_path: Path) -> None:
    _run(tmp_path, "event_log=events.jsonl", "metrics_file=metrics.prom")
    for command in (
        ["report", "events.jsonl", "--out", "report.html"],
        ["bundle", "--event-log", "events.jsonl", "--metrics-file", "metrics.prom", "-o", "bundle.tar.gz"],
    ):
        subprocess.run([sys.executable, "-m", "jaxobs", *command], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["tar", "xzf", "bundle.tar.gz"], cwd=tmp_path, check=True)
    (tmp_path / "bundle.tar.gz").unlink()
    texts = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    assert len(texts) >= LISTED["least_files"]
    found = {mark.decode() for text in texts.values() for mark in MARKER.findall(text)}
    assert found == set(LISTED["may_leave"]), json.dumps(
        {str(name): str(set(MARKER.findall(text))) for name, text in texts.items()}
    )
