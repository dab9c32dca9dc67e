"""Messages of commits: which ones `python -m tools.commits` refuses, and which commits it looks at."""

import subprocess
from pathlib import Path

import pytest
from helpers.paths import ROOT

from tools import commits

WHY = "\n\nThe reader of a log cannot tell one batch from another.\n"


@pytest.mark.parametrize(
    "message",
    [
        "findings: report the last batch of any size" + WHY,
        "ops/agent: ask `diagnose` once" + WHY,
        "embed: embed the page's script" + WHY,
        "base: pass the setting on\n\nIt was lost.\n\nSigned-off-by: A <a@example.org>\n",
        f"base: {'x' * (commits.LONGEST - len('base: '))}" + WHY,
        "base: keep it" + WHY + "# Please enter the commit message\n# ------------------------ >8 ---\ndiff --git",
        "Merge branch 'main' into other",
        "deps: Bump ruff from 0.9 to 0.10",
    ],
)
def test_a_message_is_accepted(message: str) -> None:
    assert list(commits.mistakes(message)) == []


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("", "not `room: imperative`"),
        ("Report the last batch" + WHY, "not `room: imperative`"),
        ("findings: Report the last batch" + WHY, "not `room: imperative`"),
        ("findings: report the last batch." + WHY, "not `room: imperative`"),
        ("findings report the last batch" + WHY, "not `room: imperative`"),
        ("findings: reports the last batch" + WHY, "`reports` is not an imperative"),
        ("findings: reported the last batch" + WHY, "`reported` is not an imperative"),
        ("findings: reporting the last batch" + WHY, "`reporting` is not an imperative"),
        (f"base: {'x' * (commits.LONGEST - len('base: ') + 1)}" + WHY, "73 characters"),
        ("findings: report the last batch", "There is no body"),
        ("findings: report the last batch\n\n# only a comment\n", "There is no body"),
        ("findings: report the last batch\n\nCo-authored-by: A <a@example.org>\n", "There is no body"),
        ("findings: report the last batch\nof any size, since the log says so", "A blank line"),
    ],
)
def test_a_message_is_refused(message: str, why: str) -> None:
    found = list(commits.mistakes(message))
    assert len([each for each in found if why in each]) == 1, found


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(commits, "ROOT", tmp_path.resolve())
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "Old words")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True, text=True).stdout


def commit(folder: Path, message: str) -> str:
    git(folder, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", message)
    return git(folder, "rev-parse", "HEAD").strip()


def test_only_new_commits_are_checked(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = git(history, "rev-parse", "HEAD").strip()
    commit(history, "base: keep it" + WHY)
    assert commits.main([f"{base}..HEAD"]) == 0
    wrong = commit(history, "New words" + WHY)
    assert commits.main([f"{base}..HEAD"]) == 1
    assert f"{wrong[:12]} New words" in capsys.readouterr().err


def test_without_history_nothing_is_checked(
    history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shallow clone does not reach the base, and a tar has no history, though it may lie in another repository."""
    assert commits.main([]) == 0
    (history / "unpacked").mkdir()
    monkeypatch.setattr(commits, "ROOT", (history / "unpacked").resolve())
    assert commits.main(["HEAD..HEAD"]) == 0
    assert capsys.readouterr().out.count("not checked") == 2


def test_the_hook_refuses(history: Path) -> None:
    (history / "tools").mkdir()
    for name in ("commits.py", "hooks"):
        (history / "tools" / name).symlink_to(ROOT / "tools" / name)
    git(history, "config", "core.hooksPath", "tools/hooks")
    git(history, "commit", "--allow-empty", "--message", "base: keep it" + WHY)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        git(history, "commit", "--allow-empty", "--message", "New words")
    assert "There is no body" in refused.value.stderr
