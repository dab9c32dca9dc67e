"""What `jaxobs top` shows: a snapshot laid out for a terminal of any size. Nothing in here prints."""

from jaxobs.terminal.lines import Surface
from jaxobs.terminal.overview import Connection, Overview, lay_out
from jaxobs.terminal.screen import Screen, make_console, plain_text

__all__ = ["Connection", "Overview", "Screen", "Surface", "lay_out", "make_console", "plain_text"]
