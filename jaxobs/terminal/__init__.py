"""What `jaxobs top` shows: a snapshot laid out for a terminal of any size. Nothing in here prints."""

from jaxobs.terminal.lines import Surface, as_text
from jaxobs.terminal.overview import Connection, Overview, lay_out
from jaxobs.terminal.screen import Screen, coloured, console_surface, make_console, plain_surface, plain_text

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
