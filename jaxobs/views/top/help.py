"""The page of keys."""

from __future__ import annotations

from jaxobs.base.symptoms import symptom_url
from jaxobs.views.terminal import Surface
from jaxobs.views.terminal.lines import Line, plain
from jaxobs.views.top.prose import facts

KEYS = (
    ("Everywhere", (
        ("Tab, Shift-Tab", "next and previous view; also the left and right arrows"),
        ("1 2 3 4 5", "overview, findings, functions, compilations, memory"),
        ("m", "memory; again: back"),
        ("p", "show another process on this machine"),
        ("?", "this help; again: back"),
        ("q, Ctrl-C", "quit"),
    )),
    ("Move", (
        ("Up, Down, k, j", "one row up or down"),
        ("PgUp, PgDn", "one page up or down; Space: one page down"),
        ("Home, End, g, G", "first or last row"),
        ("Enter", "open the selected row; in the overview, the worst finding"),
        ("n, N", "in details: the next or previous row"),
        ("Esc", "back: from details to the list, then to the overview"),
    )),
    ("In a list", (
        ("/", "filter: type words; Enter keeps the filter, Esc clears it"),
        ("s, >", "sort by the next column; S, <: by the previous one"),
        ("r", "reverse the order"),
    )),
)  # fmt: skip


def help_lines(surface: Surface) -> list[Line]:
    """Each key with what it does, and where the docs are."""
    width = max(len(key) for _, keys in KEYS for key, _ in keys) + 1
    lines: list[Line] = []
    for title, keys in KEYS:
        lines += [*([[]] if lines else []), plain(f" {title}", "title"), *facts(keys, surface, width)]
    return [*lines, [], plain(" Docs", "title"), *facts([("By symptom", symptom_url())], surface, width)]
