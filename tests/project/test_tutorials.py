"""The tutorials hold as they stand: somebody who saves their files and types their commands sees what they show."""

import ast
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import examples
from helpers.paths import ROOT
from helpers.requirements import program
from helpers.run_programs import environment

from tools.ports import free_port

PAGES = sorted(str(each.relative_to(ROOT)) for each in (ROOT / "docs" / "tutorials").glob("*.md"))
PORTS = ("9464", "9465", "9466", "9090", "9093")
"""Ports of the tutorials, in place of which free ones are taken."""
SAVED = re.compile(r"(?:In|in) `([\w./-]+)`, replace `\w+` with:\Z|`([\w./-]+)`:\Z")
"""Words before a file: its name, or which of its functions to replace."""
END = "--- that was it ---"
LONGEST = 1500.0


def follow(page: str, folder: Path, seconds: float) -> Iterator[tuple[str, str]]:
    """Yields what the page shows after each block of commands, and all that was printed so far."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    ports = {port: str(free_port()) for port in PORTS}
    printed = ""
    with _shell(folder, seconds) as shell:
        for block in (each for each in examples.blocks() if each.page == page):
            text = re.sub("|".join(PORTS), lambda found: ports[found[0]], block.text)
            before = SAVED.search("\n".join(lines[: block.line - 2]).rstrip())
            if block.language == "console" and "docker" not in text:
                printed += _typed(shell, "\n".join(each[2:] for each in text.splitlines() if each.startswith("$ ")))
                yield "\n".join(each for each in text.splitlines() if not each.startswith("$ ")), printed
            elif block.language == "text":
                yield text, printed
            elif before is not None:
                _save(folder / (before[1] or before[2]), text, replaces=before[1] is not None)


def words(text: str) -> set[str]:
    """Returns the words of an answer, which stay from run to run: without figures, paths, and lines with a time.

    Lines with the number of a call are left out, too: the values of a found loop are looked at without such a number.
    """
    lasting = "\n".join(each for each in text.splitlines() if not re.search(r"\d m?s\b|\bcall \d", each))
    return set(re.findall(r"\b[A-Za-z_]{4,30}\b", re.sub(r"\S*/\S*", "", lasting)))


def _save(file: Path, text: str, *, replaces: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if replaces:
        kept = file.read_text(encoding="utf-8").splitlines()
        name = ast.parse(text).body[0].name  # type: ignore[attr-defined]
        (old,) = (each for each in ast.parse("\n".join(kept)).body if getattr(each, "name", None) == name)
        assert old.end_lineno is not None
        text = "\n".join([*kept[: old.lineno - 1], text.rstrip("\n"), *kept[old.end_lineno :], ""])
    file.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _shell(folder: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A shell that ends after these seconds at the latest, with all that it started."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash"], cwd=folder, env=environment(PATH=path, PYTHONUNBUFFERED="1"), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    late = threading.Timer(seconds, os.killpg, (shell.pid, signal.SIGKILL))
    late.start()
    try:
        yield shell
    finally:
        late.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()


def _typed(shell: subprocess.Popen[str], commands: str) -> str:
    assert shell.stdin is not None and shell.stdout is not None
    shell.stdin.write(f"{commands}\necho; echo '{END}'\n")
    shell.stdin.flush()
    printed = ""
    for line in shell.stdout:
        if line.strip() == END:
            return printed
        printed += line
    raise AssertionError(f"The shell ended, or took too long:\n{commands}\n{printed}")


@pytest.mark.slow
@pytest.mark.timeout(LONGEST + 60)
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_holds(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in ("prometheus", "prometheus-alertmanager"):
        assert f"$ {name} " not in text or program(name)
    seen = list(follow(page, tmp_path, LONGEST))
    assert [missing for shown, printed in seen if (missing := words(shown) - words(printed))] == []
    assert len(seen) >= 4
