"""The prose linter has nothing to say about the pages and the sentences that the program prints: docs/style.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers.paths import ROOT
from helpers.requirements import built

from tools import prose

CONFIGURATION = ROOT / "tools" / "vale" / "vale.ini"
NAMES = ("README", "CODE_OF_CONDUCT", "CONTRIBUTING", "SECURITY", "deploy/README", "tools/go/README")
PAGES = [
    *(ROOT / f"{name}.md" for name in NAMES),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "runbooks").glob("*.md")),
]


def complaints(*paths: Path) -> list[str]:
    command = [built("vale"), f"--config={CONFIGURATION}", "--output=line", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
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
@pytest.mark.parametrize(
    "stiff",
    [
        "A restart compiles all of it again.",
        "The allocator tells nothing here.",
        "It is told when the device is full.",
        "Samples are rarer where they are dear.",
        "The value is no whole number.",
        "None of it was let go of.",
        "A sound program gives none.",
        "It goes on without the endpoint.",
        "Who wants to be paged needs a higher target.",
        "Simply call the function.",
        "The site's file has all of them.",
        "The lambda was made again 4 times.",
        "Look what keeps the arrays.",
    ],
)
def test_stiff_words_are_seen(stiff: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{stiff}\n", encoding="utf-8")
    assert complaints(page)
    page.write_text(f"The output is `{stiff}`\n", encoding="utf-8")
    assert complaints(page) == []


def test_every_text_of_a_module_is_found() -> None:
    """On its line; code and short words are not prose."""
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
    """In scripts, templates and markup; code is not prose."""
    script = 'const NAME = "step"; // a comment that says something\nsetText(node, `Last contact at ${when(it)}.`);'
    assert prose.page_sentences(script, ".js") == {2: ["Last contact at `x`."]}
    markup = '<p class="quiet small told" title="what each device holds">This page needs JavaScript.</p>'
    assert prose.page_sentences(markup, ".html") == {1: ["what each device holds.", "This page needs JavaScript."]}
