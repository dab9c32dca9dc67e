"""Views in a notebook, from facts made by hand: HTML that escapes everything, and text of the same."""

from __future__ import annotations

import dataclasses
import html
import re
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
        notebook.verdict(Verdict(verdict="mend", headline=NASTY, findings=(FOUND, FOUND))),
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


def test_html_and_text_say_the_same() -> None:
    """Every word of the text is in the HTML, in the same order of parts."""
    texts = " ".join(" ".join(Tags(notebook.html(notebook.cell(NASTY_CELL))).texts).split())
    for word in ("failed after 9.00 s", "5.00 s of it compiling", "compile 4.00 s", "another 2.00 s", "0 B → 48 B",
                 "Cost: 3 s", "Python, execution and the traceback 4.00 s"):  # fmt: skip
        assert word in html.unescape(texts), word
        assert word in " ".join(notebook.text(notebook.cell(NASTY_CELL)).split()), word
    assert "\x1b" not in notebook.text(notebook.cell(NASTY_CELL))
    assert "Evidence" in texts


def test_what_a_cell_compiled_is_bounded() -> None:
    """The most expensive have rows; the others, and those that nobody kept, are a sum."""
    many = tuple(
        Compiled(count=2, seconds=1.0, costliest=compilation(f"f{number}", cause="first_call")) for number in range(30)
    )
    text = notebook.text(
        notebook.cell(Cell(number=None, seconds=90.0, time={}, compiled=many, dropped=5, dropped_seconds=2))
    )
    assert text.startswith("This cell took 90.0 s, 32.0 s of it compiling: 65 programs compiled.")
    assert "45 more programs, 22.0 s." in text and "f9 " in text and "f10" not in text


def test_programs_that_were_loaded_are_no_compilations() -> None:
    """Answers of the cache have a column if any was asked for."""
    hit = Compiled(count=1, seconds=1.0, costliest=compilation("f", cache="hit"))
    missed = Compiled(count=2, seconds=1.0, costliest=compilation("g", cache="miss"))
    text = notebook.text(notebook.cell(Cell(number=1, seconds=4.0, time={}, compiled=(missed, hit))))
    assert "2 programs compiled and 1 program loaded from the persistent cache." in text.replace("\n", " ")
    assert re.search(r"function +cause +cache +programs", text)
    assert "(loaded from the cache)" in notebook.text(
        notebook.line(Cell(number=1, seconds=4.0, time={}, compiled=(hit,)))
    )


def test_what_devices_still_compute_is_told_if_it_matters() -> None:
    """Not where it is nothing; with what is not known of it."""

    def told(**fields: Any) -> str:
        return " ".join(notebook.text(notebook.cell(Cell(number=1, seconds=1.0, time={}, **fields))).split())

    assert "device" not in told(still_computing=0.001)
    assert "computed for another 3.00 s after the last line." in told(still_computing=3.0)
    assert "may be work from earlier cells" in told(still_computing=3.0, computing_before=True)
    assert "was still computing 60.0 s after" in told(still_computing=60.0, unfinished=True)


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
