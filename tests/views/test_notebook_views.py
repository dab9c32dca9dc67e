"""Views in a notebook, from facts made by hand: HTML that escapes everything, and text of the same."""

import dataclasses
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from helpers.made_by_hand import compilation, full_store

from jaxobs.facts.cells import Cell, CellMemory, Compiled, MemoryChange
from jaxobs.facts.memory import ArrayGroup
from jaxobs.facts.verdicts import Cost, Verdict, VerdictFinding
from jaxobs.findings.verdict import judged
from jaxobs.views import notebook

NASTY = "<script>alert('1')</script>\x1b[31m & \"x\" `<b>`"
FOUND = VerdictFinding(
    id="1", title=NASTY, severity="warning", cost=Cost(seconds=3.0), do=NASTY, where="/tmp/ipykernel_7/11.py:3",
    evidence=(NASTY,),
)  # fmt: skip
GROUP = ArrayGroup(
    shape=(2, 3), dtype=NASTY, sharding=NASTY, memory_kind=None, count=2, bytes_per_device={"cpu:0": 48},
    call_sites={NASTY: 1},
)  # fmt: skip
COMPILED = Compiled(
    count=1, seconds=1.0, costliest=compilation(NASTY, cause="shape", reason=NASTY, call_site=NASTY)
)  # fmt: skip
NASTY_CELL = Cell(
    number=5, seconds=9.0, time={"compile": 4.0, "trace": 1.0, "idle": 1.0, "unattributed": 3.0}, failed=True,
    compiled=(COMPILED,),
    still_computing=2.0, memory=CellMemory(devices=(MemoryChange(device=NASTY, array_bytes=(0, 48)),), grown=(GROUP,)),
    findings=(FOUND,),
)  # fmt: skip


class Tags(HTMLParser):
    """The tags of a document, all of which must be closed, and its texts."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element until it is closed."""
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        """The innermost one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Takes in the text of an element."""
        self.texts.append(data)


@pytest.mark.parametrize(
    "blocks",
    [
        notebook.cell(NASTY_CELL),
        notebook.line(NASTY_CELL),
        notebook.verdict(Verdict(verdict="fix", headline=NASTY, findings=(FOUND, FOUND))),
        notebook.snapshot(judged(full_store().snapshot())),
        notebook.memory(dataclasses.replace(full_store().snapshot(), array_groups=(GROUP,))),
        notebook.functions(full_store().snapshot()),
    ],
    ids=["cell", "line", "verdict", "snapshot", "memory", "functions"],
)
def test_html_is_whole_and_escaped(blocks: Any) -> None:
    """Well-formed, without scripts, handlers or addresses, whatever names and sentences hold."""
    document = notebook.html(blocks)
    tags = Tags(document)
    assert tags.seen <= {
        "style", "div", "p", "span", "code", "h4", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "details",
        "summary",
    }  # fmt: skip
    assert tags.attributes <= {"class", "style", "role", "aria-label", "colspan"}
    assert not re.search(r"https?:|url\(|@import", document)


def cell(**fields: Any) -> Cell:
    """A cell of a second, unless told otherwise."""
    return Cell(**({"number": 1, "seconds": 1.0, "time": {}} | fields))


HIT = Compiled(count=1, seconds=1.0, costliest=compilation("f", cache="hit"))
MISSED = Compiled(count=2, seconds=1.0, costliest=compilation("g", cache="miss"))
MANY = tuple(Compiled(count=2, seconds=1.0, costliest=compilation(f"f{number}")) for number in range(30))
CELLS = {
    "hostile": NASTY_CELL,
    "more programs than rows": cell(number=None, seconds=90.0, compiled=MANY, dropped=5, dropped_seconds=2),
    "compiled and loaded": cell(seconds=4.0, compiled=(MISSED, HIT)),
    "loaded": cell(seconds=4.0, compiled=(HIT,)),
    "hardly computing": cell(still_computing=0.001),
    "still computing": cell(still_computing=3.0),
    "computing before": cell(still_computing=3.0, computing_before=True),
    "computing on and on": cell(still_computing=60.0, unfinished=True),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_told_as_the_file_has_it(name: str, whole: Callable[[str, str], None]) -> None:
    """As a line, as text and as HTML, of which the texts alone are compared."""
    blocks = notebook.cell(CELLS[name])
    text = notebook.text(blocks)
    if CELLS[name].compiled:
        text = f"{notebook.text(notebook.line(CELLS[name]))}\n\n{text}"
    assert "\x1b" not in text
    html = [" ".join(each.replace("\x1b", "ESC").split()) for each in Tags(notebook.html(blocks)).texts]
    whole(name, f"{text}\n\n{' | '.join(each for each in html if each and '{' not in each)}")


def test_call_sites_are_cells() -> None:
    """By full path, by its end, and for names of the terminal; nothing else is rewritten."""
    places = notebook.in_cells({"/tmp/ipykernel_7/11.py": 3, "<ipython-input-4-ab>": 4})
    assert places("at /tmp/ipykernel_7/11.py:8, 11.py:9 and ipykernel_7/11.py (2)") == (
        "at cell [3], line 8, cell [3], line 9 and cell [3] (2)"
    )
    assert places("<ipython-input-4-ab>:1") == "cell [4], line 1"
    assert places("/data/11.py:8 111.py:8 11.pyc") == "/data/11.py:8 111.py:8 11.pyc"
    assert notebook.in_cells({})("x.py:1") == "x.py:1"
    assert "cell [3], line 3" in notebook.html(notebook.cell(NASTY_CELL), places)


def test_a_snapshot_is_one_line_at_a_prompt() -> None:
    """With the verdict, and without a row for each of its fields."""
    shown = judged(full_store().snapshot())
    assert shown.verdict is not None
    assert repr(shown).startswith("<Snapshot of ") and shown.verdict.headline in repr(shown)
    assert len(repr(shown)) < 200 + len(shown.verdict.headline)
    assert "verdict" not in repr(full_store().snapshot())
