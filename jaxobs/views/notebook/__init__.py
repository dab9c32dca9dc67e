"""Outputs in a notebook: a cell, a snapshot, a verdict, a finding; as HTML without scripts, and as plain text."""

from jaxobs.views.notebook.blocks import Block, Places, Say, as_they_are
from jaxobs.views.notebook.cell import cell, line
from jaxobs.views.notebook.html import html
from jaxobs.views.notebook.process import functions, memory, snapshot
from jaxobs.views.notebook.text import finding, in_cells, text, verdict

__all__ = [
    "Block",
    "Places",
    "Say",
    "as_they_are",
    "cell",
    "finding",
    "functions",
    "html",
    "in_cells",
    "line",
    "memory",
    "snapshot",
    "text",
    "verdict",
]
