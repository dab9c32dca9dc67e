"""The pictures of the documentation: which there are, and that one drawn from other inputs is noticed."""

import json
import re
from pathlib import Path

import pytest
from helpers.paths import ROOT

from tools.pictures import __main__ as pictures
from tools.pictures import pages


def test_every_picture_can_be_drawn_and_is_shown() -> None:
    """A picture that no page shows, or that no command draws, is left over."""
    drawn = set(pictures.INPUTS)
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.png")} == drawn
    texts = {page: page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))}
    shown = {
        page.parent / link for page, text in texts.items() for link in re.findall(r"!\[[^]]*\]\((\S+\.png)\)", text)
    }
    assert {str(path.relative_to(ROOT)) for path in shown} == drawn
    others = {path.stem for path in map(Path, drawn) if path.parent.name != "dashboards"} - {"agent", "notebook"}
    assert others == set(pages.DRAWN)


@pytest.fixture
def painted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    monkeypatch.setattr(pictures, "STAMPS", tmp_path / "stamps.json")
    monkeypatch.setattr(pictures, "INPUTS", {"page.png": ("*.css", "program.py")})
    for name in ("a.css", "program.py", "page.png"):
        (tmp_path / name).write_text(name)
    (tmp_path / "stamps.json").write_text(json.dumps({"page.png": pictures.stamp("page.png")}))
    assert pictures.main(["--check"]) == 0
    return tmp_path


@pytest.mark.parametrize("name", ["a.css", "b.css", "program.py"])
def test_a_changed_input_is_noticed(painted: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (painted / name).write_text("another")
    assert pictures.main(["--check"]) == 1
    assert "make pictures" in (told := capsys.readouterr().err) and "page.png" in told


def test_of_the_library_only_sentences_count(painted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A moved or renamed function changes no picture; a sentence that it says does."""
    monkeypatch.setattr(pictures, "INPUTS", {"page.png": ("jaxobs/*.py",)})
    module = painted / "jaxobs" / "a.py"
    module.parent.mkdir()
    module.write_text('"""A."""\nprint("Pad it to one size.")\n')
    before = pictures.stamp("page.png")
    module.write_text('"""B."""\n\nx = 1\nprint("Pad it to one size.")\n')
    assert pictures.stamp("page.png") == before
    module.write_text('"""B."""\n\nx = 1\nprint("Pad it to a few sizes.")\n')
    assert pictures.stamp("page.png") != before


@pytest.mark.parametrize("name", ["page.png", "stamps.json"])
def test_a_missing_picture_is_noticed(painted: Path, name: str) -> None:
    (painted / name).unlink()
    assert pictures.main(["--check"]) == 1


def test_an_input_that_moved_is_an_error(painted: Path) -> None:
    """A pattern that matches nothing would hide every change."""
    (painted / "program.py").unlink()
    with pytest.raises(FileNotFoundError, match=r"page\.png: no input matches program\.py"):
        pictures.stale()
