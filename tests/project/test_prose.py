"""The prose linter has nothing to say about the pages and the sentences that the program prints: docs/style.md."""

import subprocess
from pathlib import Path

import pytest
from helpers.paths import ROOT, TESTS
from helpers.requirements import built

from tools import prose

CONFIGURATION = ROOT / "tools" / "vale" / "vale.ini"
OTHERS = ("README.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md", "tools/go/README.md")
PAGES = [*(ROOT / name for name in OTHERS), *(ROOT / "docs").rglob("*.md"), *(ROOT / "runbooks").glob("*.md")]


def complaints(*paths: Path) -> list[str]:
    command = [built("vale"), f"--config={CONFIGURATION}", "--output=line", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode in (0, 1), done.stderr
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.mark.linters
def test_pages_say_it_plainly() -> None:
    assert complaints(*PAGES) == []


@pytest.mark.linters
def test_the_newest_changes_say_it_plainly(tmp_path: Path) -> None:
    """Sections of earlier versions stay as they were."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    page = tmp_path / "CHANGELOG.md"
    page.write_text(changes.split("\n## ")[1], encoding="utf-8")
    assert complaints(page) == []


@pytest.mark.linters
def test_the_program_says_it_plainly(tmp_path: Path) -> None:
    """Settings, help, messages, alerts, runbooks and docstrings, each with the line that it has in its module."""
    files = prose.write(tmp_path)
    assert len(files) > 150
    assert [each.removeprefix(f"{tmp_path}/") for each in complaints(*files)] == []


@pytest.mark.linters
@pytest.mark.parametrize("stiff", (TESTS / "project" / "stiff_sentences.txt").read_text().splitlines())
def test_stiff_words_are_seen(stiff: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{stiff}\n", encoding="utf-8")
    assert complaints(page)
    page.write_text(f"The output is `{stiff}`\n", encoding="utf-8")
    assert complaints(page) == []


def test_every_text_of_a_module_is_found() -> None:
    source = '''"""The module says something
to those who read it.

    with an(example) of its use
"""
NAME = "train_step"
HELP = "write a report of the whole run"
PATTERN = r"stopped sending (heartbeats|signals) to the other"

def f(x):
    """This is for those who read the code."""
    raise ValueError(
        f"`{x}` is not a name that anybody knows. "
        "Give another one."
    )
'''
    messages = {
        7: ["write a report of the whole run."],
        13: ["``x`` is not a name that anybody knows. Give another one."],
    }
    read = {1: ["The module says something to those who read it."], 11: ["This is for those who read the code."]}
    assert prose.sentences(source) == messages | read
    assert prose.sentences(source, with_docstrings=False) == messages


def test_every_text_of_the_live_page_is_found() -> None:
    script = 'const NAME = "step"; // a comment that says something\nsetText(node, `Last contact at ${when(it)}.`);'
    assert prose.page_sentences(script, ".js") == {2: ["Last contact at `x`."]}
    markup = '<p class="quiet small told" title="what each device holds">This page needs JavaScript.</p>'
    assert prose.page_sentences(markup, ".html") == {1: ["what each device holds.", "This page needs JavaScript."]}


def test_every_text_of_a_table_is_found() -> None:
    """Expressions are in single quotes; the words that a file fills in are `x`."""
    source = """# A comment that says something.
about = 'said something of the other'
title = "Hosts cannot reach each other"
collect = ["The log of each worker.", "The list of all hosts"]
why = \"\"\"
  The cluster "one" is \\
  slow on {{ $labels.job }}{at}.\"\"\"
expr = "sum by (job) and on the other"
"""
    assert prose.table_sentences(source) == {
        3: ["Hosts cannot reach each other."],
        4: ["The log of each worker.", "The list of all hosts."],
        5: ['The cluster "one" is slow on `x``x`.'],
    }
