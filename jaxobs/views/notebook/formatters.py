"""How IPython shows our facts: registered with its formatters, so that the facts stay plain data."""

from collections.abc import Callable
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.facts.cells import Cell
from jaxobs.facts.findings import Finding
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.verdicts import Verdict, VerdictFinding
from jaxobs.views.notebook.blocks import Block, Places, as_they_are
from jaxobs.views.notebook.cell import cell
from jaxobs.views.notebook.html import html
from jaxobs.views.notebook.process import snapshot
from jaxobs.views.notebook.text import entries, finding, in_cells, text, verdict

SHOWN: dict[type, Callable[[Any], list[Block]]] = {
    Cell: cell,
    Finding: finding,
    Snapshot: snapshot,
    Verdict: verdict,
    VerdictFinding: lambda found: list(entries([found])),
}


def register(shell: Any) -> None:
    """Has this IPython show our facts; once."""
    formatters = shell.display_formatter.formatters
    if Snapshot in formatters["text/html"].type_printers:
        return
    for kind, blocks in SHOWN.items():
        formatters["text/html"].for_type(kind, lambda fact, blocks=blocks: html(blocks(fact), places_of(shell)))
        formatters["text/plain"].for_type(kind, _as_text(shell, blocks))


def unregister(shell: Any) -> None:
    """Undoes `register`."""
    for form in ("text/html", "text/plain"):
        for kind in SHOWN:
            shell.display_formatter.formatters[form].pop(kind, None)


def publish(shell: Any, blocks: list[Block]) -> None:
    """Shows blocks below the cell that runs."""
    places = places_of(shell)
    shell.display_pub.publish({"text/plain": text(blocks, places), "text/html": html(blocks, places)})


def places_of(shell: Any) -> Places:
    """Call sites in the cells of this IPython, as its tracebacks have them: by the number of the cell."""
    with guarded("notebook.places"):
        return in_cells(_numbers(shell))
    return as_they_are


def _numbers(shell: Any) -> dict[str, int]:
    """The numbers of the cells that ran, by the name that the code of each has as a file."""
    known = getattr(shell.compile, "_filename_map", None)
    if known is not None:
        return dict(known)
    # IPython 7, which Colab has, keeps no such map, and its history leaves out the newlines at the end.
    history = shell.history_manager
    cells = enumerate(zip(history.input_hist_raw, history.input_hist_parsed, strict=False))
    return {shell.compile.get_code_name(raw, f"{parsed}\n", number): number for number, (raw, parsed) in cells}


def _as_text(shell: Any, blocks: Callable[[Any], list[Block]]) -> Callable[[Any, Any, bool], None]:
    def pretty(fact: Any, printer: Any, cycle: bool) -> None:
        printer.text(text(blocks(fact), places_of(shell)))

    return pretty
