"""A snapshot laid out for a terminal of any size, as `jaxobs top` shows it. Nothing in here prints."""

from jaxobs.views.terminal.frame import Connection, Overview
from jaxobs.views.terminal.lines import Surface, as_text
from jaxobs.views.terminal.overview import lay_out
from jaxobs.views.terminal.screen import Screen, coloured, console_surface, make_console, plain_surface, plain_text

__all__ = [
    "Connection",
    "Overview",
    "Screen",
    "Surface",
    "as_text",
    "coloured",
    "console_surface",
    "lay_out",
    "make_console",
    "plain_surface",
    "plain_text",
]
