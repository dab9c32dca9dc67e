"""The examples of README, docs and runbooks run, or are parsed by what will read them; links lead somewhere."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from helpers import examples, shell_examples
from helpers.examples import Block
from helpers.paths import ROOT, TESTS
from helpers.run_programs import environment

from jaxobs.base.links import page_url
from jaxobs.ops.agent.acting import policy
from jaxobs.ops.monitoring import openslo, promql, site

PYTHON_PAGES = sorted({each.page for each in examples.blocks("python") if "/tutorials/" not in each.page})
UNDER_PYTEST = {"docs/testing.md": {"failed": 1, "passed": 3}}
"""Pages of tests for pytest, and their outcomes: the first one is there to fail."""


def test_each_block_is_of_a_language_that_is_tried() -> None:
    """A block of another language, or of a misspelt one, would be passed over in silence."""
    odd = [f"{each}: {each.language}" for each in examples.blocks() if not each.language]
    known = {*examples.TRIED, *examples.OUTPUT}
    fences = [
        (page.name, language)
        for page in examples.PAGES
        for language in re.findall(r"(?m)^ *```(\S+)", page.read_text(encoding="utf-8"))
    ]
    assert [each for each in fences if each[1] not in known] == []
    assert len(examples.blocks(*examples.TRIED)) >= 350 and len(odd) < 60


def test_what_is_not_run_says_why() -> None:
    assert [str(each) for each in examples.blocks() if each.not_run is not None and len(each.not_run) < 20] == []
    assert sum(each.not_run is not None for each in examples.blocks()) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_runs(page: str, tmp_path: Path) -> None:
    file = tmp_path / "test_page.py"
    file.write_text(examples.program(page), encoding="utf-8")
    command = [sys.executable, str(file)]
    if page in UNDER_PYTEST:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--jaxobs-update", str(file)]
    variables = environment(JAXOBS_PORT="0", JAXOBS_RAISE_INTERNAL_ERRORS="1")
    variables["XLA_FLAGS"] += " --xla_force_host_platform_device_count=8"
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=240)
    if page not in UNDER_PYTEST:
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return
    last = done.stdout.splitlines()[-1]
    outcomes = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", last)}
    assert outcomes == UNDER_PYTEST[page], done.stdout[-4000:]


@pytest.mark.slow
def test_the_readme_shows_what_explain_prints(tmp_path: Path) -> None:
    """The README quotes a run of the example that it names; only the seconds differ."""
    log, program = tmp_path / "events.jsonl", ROOT / "examples" / "ragged_batches.py"
    for command in (["run", "--port", "0", "--event-log", log, program], ["explain", log]):
        words = [sys.executable, "-m", "jaxobs", *map(str, command)]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=240)
    shown = (ROOT / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("\n```")[0]
    seconds = re.compile(r"[\d.]+ m?s, \d+ %")
    lasting = [seconds.sub("", line) for line in shown.splitlines() if line != "..."]
    assert len(lasting) >= 4 and [line for line in lasting if line not in seconds.sub("", done.stdout)] == []


@pytest.mark.parametrize("block", examples.blocks("python"), ids=str)
def test_python_is_python(block: Block) -> None:
    """A block that is not run compiles as well."""
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("block", examples.blocks("console", "sh"), ids=str)
def test_commands_hold(block: Block) -> None:
    assert list(shell_examples.mistakes(block.text, console=block.language == "console")) == []


@pytest.mark.parametrize("text", (TESTS / "project" / "wrong_commands.txt").read_text().splitlines())
def test_a_wrong_command_is_seen(text: str) -> None:
    assert list(shell_examples.mistakes(text, console=True))


@pytest.mark.slow
@pytest.mark.parametrize("block", shell_examples.runnable(), ids=str)
def test_commands_run(block: Block, tmp_path: Path) -> None:
    done = shell_examples.run(block.text, tmp_path)
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr and "usage:" not in done.stderr, done.stderr[-2000:]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[shell_examples.Process]:
    """A process that trains and serves, with an event log and a persistent cache, for the runbooks' commands."""
    with shell_examples.Process(tmp_path_factory.mktemp("process")) as running:
        yield running


@pytest.mark.parametrize("block", shell_examples.for_a_process(), ids=str)
def test_runbooks_commands_run(block: Block, process: shell_examples.Process) -> None:
    done = process.run(block.text)
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.strip() and not done.stderr.strip(), f"{block.text}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize("block", examples.blocks("promql"), ids=str)
def test_promql_parses(block: Block) -> None:
    assert promql.selectors(block.text)


@pytest.mark.parametrize("block", examples.blocks("yaml", "toml", "json"), ids=str)
def test_data_parses(block: Block, tmp_path: Path) -> None:
    if block.language == "json":
        try:
            assert json.loads(block.text)
        except json.JSONDecodeError:
            assert [json.loads(line) for line in block.text.splitlines()]
    elif block.language == "toml":
        found = tomllib.loads(block.text)
        if "allow" in found:
            (tmp_path / "actions.toml").write_text(block.text, encoding="utf-8")
            assert policy.read(tmp_path / "actions.toml").allow
        elif "tool" not in found:
            (tmp_path / "slos.yaml").write_text(openslo.text((), what="alerts"), encoding="utf-8")
            site.checked(found, str(tmp_path / "site.toml"))
    else:
        found = yaml.safe_load(block.text)
        assert found
        if str(found.get("apiVersion")).startswith("openslo"):
            (tmp_path / "slos.yaml").write_text(block.text, encoding="utf-8")
            assert openslo.read(tmp_path / "slos.yaml")


@pytest.mark.parametrize("page", examples.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in links(page):
        where, _, anchor = link.removeprefix(page_url("")).partition("#")
        base = ROOT if link.startswith(page_url("")) else page.parent
        if re.match(r"\w+:", where):
            continue
        target = (base / where).resolve() if where else page
        if not target.exists():
            wrong.append(f"{link}: no such file")
        elif anchor and anchor not in anchors(target):
            wrong.append(f"{link}: no such heading")
    assert wrong == []


def links(page: Path) -> list[str]:
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text(encoding="utf-8"))
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text))


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub names them in links."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#+ +(.+?) *$", text):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(name if name not in found else f"{name}-{sum(each.startswith(name) for each in found)}")
    return found
