"""Blocks as plain text: for a terminal, and for front ends that show no HTML."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from jaxobs.facts.findings import Finding
from jaxobs.facts.verdicts import Verdict, VerdictFinding
from jaxobs.findings.verdict import costs
from jaxobs.views.notebook.blocks import TONES, Bar, Block, Folded, Heading, Places, Row, Say, Table, as_they_are
from jaxobs.views.terminal.lines import cells, wrapped
from jaxobs.views.terminal.text import UNICODE, middle, safe

WIDTH = 100
_MOST_LINES = 6
_MOST_NAME = 48


def text(blocks: Sequence[Block], places: Places = as_they_are) -> str:
    """The lines, without a newline at the end; what is folded is left out."""
    lines = [line for each in blocks for line in _block(each, places)]
    return "\n".join(lines).strip("\n")


def _block(block: Block, places: Places) -> Iterator[str]:
    if isinstance(block, Say):
        yield from _sentence(f"{block.badge.upper()}: {block.text}" if block.badge else block.text, "", places)
    elif isinstance(block, Heading):
        yield ""
        yield safe(places(block.text))
    elif isinstance(block, Bar):
        told = ", ".join(f"{name} {value}" for name, _, value in block.parts)
        yield from _sentence(f"{block.label}: {told}", "", places)
    elif isinstance(block, Table):
        yield from _table(block, places)
    else:
        assert isinstance(block, Folded)


def _table(table: Table, places: Places) -> Iterator[str]:
    titles = [title.removeprefix(">") for title in table.titles]
    rows = [[middle(safe(places(each).replace("`", "")), _MOST_NAME) for each in row.cells] for row in table.rows]
    widths = [max(cells(each) for each in column) for column in zip(titles, *rows, strict=True)]
    right = [title.startswith(">") for title in table.titles]
    yield _line(titles, widths, right)
    for row, shown in zip(table.rows, rows, strict=True):
        yield _line(shown, widths, right)
        for note in row.notes:
            yield from _sentence(note, "    ", places)


def _line(shown: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        " " * (width - cells(each)) + each if figure else each + " " * (width - cells(each))
        for each, width, figure in zip(shown, widths, right, strict=True)
    ]
    return ("  " + "  ".join(padded)).rstrip()


def _sentence(sentence: str, indent: str, places: Places) -> Iterator[str]:
    for part in wrapped(safe(places(sentence)), WIDTH - len(indent), _MOST_LINES, UNICODE):
        yield indent + part


def in_cells(numbers: Mapping[str, int]) -> Places:
    """Rewrites what is in a notebook's cells, given their numbers by the file names of their code."""
    # Some sentences show the last one or two parts of a path only.
    known = {short: number for name, number in numbers.items() for short in _ends(name)}
    if not known:
        return as_they_are
    names = "|".join(re.escape(each) for each in sorted(known, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w/.-])({names})(?::(\d+))?(?!\w)")

    def written(found: re.Match[str]) -> str:
        line = f", line {found[2]}" if found[2] else ""
        return f"cell [{known[found[1]]}]{line}"

    return lambda text: pattern.sub(written, text)


def _ends(name: str) -> list[str]:
    folder, base = os.path.split(name)
    return [name, f"{os.path.basename(folder)}/{base}", base] if folder else [name]


MOST = 10
"""Findings of a verdict that are shown."""


def verdict(found: Verdict, most: int = MOST) -> list[Block]:
    """The headline, which is the worst finding if there is one, then the others."""
    blocks: list[Block] = [Say(found.headline, found.verdict, TONES[found.verdict])]
    for worst in found.findings[:1]:
        blocks += _rest(worst.do, worst.where, worst.evidence)
    return [*blocks, *entries(found.findings[1:], most - 1)]


def entries(found: Sequence[VerdictFinding], most: int = MOST) -> Iterator[Block]:
    """Findings of a verdict, at most so many."""
    for each in found[:most]:
        yield from _entry(each)
    if len(found) > most:
        yield Say(f"{len(found) - most} more: `%jaxobs verdict` shows them.", tone="quiet")


def _entry(found: VerdictFinding) -> Iterator[Block]:
    cost = costs(found.cost)
    yield Say(f"{found.title}{f' Cost: {cost}.' if cost else ''}", found.severity, TONES[found.severity])
    yield from _rest(found.do, found.where, found.evidence)


def finding(found: Finding) -> list[Block]:
    """Returns the blocks of a single finding."""
    over = "" if found.ended is None else " It is over."
    return [
        Say(f"{found.summary}{over}", found.severity, TONES.get(found.severity, "warn")),
        *_rest(found.advice, found.where, found.evidence),
    ]


def _rest(do: str, where: str | None, evidence: Sequence[str]) -> Iterator[Block]:
    if do:
        yield Say(f"Do: {do}{f' ({where})' if where and where not in do else ''}")
    if evidence:
        yield Folded("Evidence", [Table(("Seen",), [Row((each,)) for each in evidence])])
