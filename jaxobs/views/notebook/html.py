"""Blocks as HTML for a notebook: no scripts, everything escaped, readable on a light and on a dark page.

A notebook's theme is not the browser's, and no rule tells it in every front end. So texts and lines take the page's own
colours, and what has a colour of its own (badges, bars) brings its background along.
"""

import html as escaping
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

from jaxobs.views.notebook.blocks import Bar, Block, Heading, Places, Row, Say, Table, as_they_are

_RULES = files(__package__).joinpath("output.css").read_text(encoding="utf-8")
_STYLE = _RULES.replace("&", ".jaxobs" * 3).replace("\n", "")
"""The class comes three times to outweigh the rules that Jupyter has for tables."""

_COLOURS = {
    "step": "#2e8b57", "trace": "#7b61c4", "compile": "#3b78c9", "cache load": "#2a93a3", "input wait": "#c27c0e",
    "checkpoint": "#a05a8c", "eval": "#5f8f3a", "transfer": "#b5651d", "idle": "#9aa3ad",
}  # fmt: skip
_REST = "#7d8793"
_NUMBER = ' class="num"'


def html(blocks: Sequence[Block], places: Places = as_they_are) -> str:
    """Returns one HTML element with its own style, for the output of a cell."""
    body = "".join(part for each in blocks for part in _block(each, places))
    return f'<style>{_STYLE}</style><div class="jaxobs">{body}</div>'


def _block(block: Block, places: Places) -> Iterator[str]:
    if isinstance(block, Say):
        badge = f'<span class="badge {block.tone}">{_plain(block.badge)}</span>' if block.badge else ""
        quiet = ' class="quiet"' if block.tone == "quiet" and not block.badge else ""
        yield f"<p{quiet}>{badge}{_prose(block.text, places)}</p>"
    elif isinstance(block, Heading):
        yield f"<h4>{_prose(block.text, places)}</h4>"
    elif isinstance(block, Bar):
        yield from _bar(block)
    elif isinstance(block, Table):
        yield from _table(block, places)
    else:
        inside = "".join(part for each in block.blocks for part in _block(each, places))
        yield f"<details><summary>{_prose(block.summary, places)}</summary>{inside}</details>"


def _bar(bar: Bar) -> Iterator[str]:
    whole = sum(value for _, value, _ in bar.parts)
    if whole <= 0:
        return
    told = ", ".join(f"{name} {text}" for name, _, text in bar.parts)
    yield f'<div class="bar" role="img" aria-label="{_plain(f"{bar.label}: {told}")}">'
    for name, value, _ in bar.parts:
        yield f'<span style="width:{value / whole:.2%};background:{_COLOURS.get(name, _REST)}"></span>'
    yield '</div><ul class="legend">'
    for name, _, text in bar.parts:
        key = f'<span class="key" style="background:{_COLOURS.get(name, _REST)}"></span>'
        yield f"<li>{key}{_plain(name)} {_plain(text)}</li>"
    yield "</ul>"


def _table(table: Table, places: Places) -> Iterator[str]:
    numeric = [title.startswith(">") for title in table.titles]
    yield '<div class="wide"><table><thead><tr>'
    for title, right in zip(table.titles, numeric, strict=True):
        yield f"<th{_NUMBER if right else ''}>{_plain(title.removeprefix('>'))}</th>"
    yield "</tr></thead><tbody>"
    for row in table.rows:
        yield from _row(row, numeric, places)
    yield "</tbody></table></div>"


def _row(row: Row, numeric: Sequence[bool], places: Places) -> Iterator[str]:
    cells = zip(row.cells, numeric, strict=True)
    inside = (f"<td{_NUMBER if right else ''}>{_prose(text, places)}</td>" for text, right in cells)
    yield f"<tr>{''.join(inside)}</tr>"
    for note in row.notes:
        yield f'<tr><td class="note" colspan="{len(numeric)}">{_prose(note, places)}</td></tr>'


def _plain(text: str) -> str:
    return escaping.escape(text)


def _prose(text: str, places: Places) -> str:
    """Escaped, with `<code>` for what is in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _plain(places(text)))
