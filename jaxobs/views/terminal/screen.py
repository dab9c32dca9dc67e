"""Bridge to `rich`: colours for the styles by name, and a renderable that fits its console."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from jaxobs.base.errors import MissingExtraError
from jaxobs.views.terminal.frame import Overview
from jaxobs.views.terminal.lines import Line, Surface, as_text
from jaxobs.views.terminal.overview import lay_out
from jaxobs.views.terminal.text import ASCII, UNICODE, Glyphs

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

STYLES = {
    "": "none", "program": "bold", "title": "bold", "summary": "none", "rule": "bright_black", "heading": "dim",
    "ordered": "bold underline", "selected": "reverse", "label": "dim", "name": "none", "number": "none",
    "dim": "dim", "gone": "dim", "good": "green", "warn": "yellow", "bad": "bold red", "busy": "bold cyan",
    "cause": "yellow", "sentence": "none", "trace": "cyan", "lower": "blue", "compile": "magenta",
    "cache_load": "green",
}  # fmt: skip
"""The colours, by meaning; plain ANSI ones, which every theme of a terminal keeps readable."""

PIPE_WIDTH = 100
"""Columns of the plain snapshot if no terminal says how many there are."""


class Screen:
    """The overview as a renderable of `rich`: as long as it is, or as high as the terminal with `fill`."""

    def __init__(self, view: Overview, *, fill: bool = False) -> None:
        self.view, self.fill = view, fill

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        surface = console_surface(console, options.max_width, options.size.height if self.fill else None)
        yield coloured(lay_out(self.view, surface), end="" if self.fill else "\n")


def coloured(lines: Sequence[Line], *, end: str = "\n") -> Text:
    """The lines in the colours of their styles, for a console of `rich`."""
    from rich.text import Text

    styled = [
        Text.assemble(*((text, STYLES.get(style, "none")) for text, style in line), no_wrap=True) for line in lines
    ]
    return Text("\n", no_wrap=True, end=end).join(styled)


def console_surface(console: Console, width: int | None = None, height: int | None = None) -> Surface:
    """The console as something to draw on, in its own width unless another is given."""
    colour = console.color_system is not None and not console.no_color
    encoding = console.encoding
    return Surface(console.width if width is None else width, height, glyphs_for(encoding), encoding, colour=colour)


def make_console(purpose: str) -> Console:
    """Returns a console on standard output; raises `MissingExtraError` for `purpose` without `rich`."""
    try:
        from rich.console import Console
    except ImportError:
        raise MissingExtraError(purpose, "rich", "cli") from None
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False)


def plain_text(view: Overview, stream: TextIO) -> str:
    """The overview for a file or a pipe: no colours, no bottom, and as wide as `COLUMNS` says."""
    return as_text(lay_out(view, plain_surface(stream)))


def plain_surface(stream: TextIO) -> Surface:
    """A file or a pipe as something to draw on, without colours and without a bottom."""
    encoding = stream.encoding or "utf-8"
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) >= 40 else PIPE_WIDTH
    return Surface(width, None, glyphs_for(encoding), encoding, colour=False)


def glyphs_for(encoding: str) -> Glyphs:
    """The signs that an output of this encoding can show; a locale without Unicode counts as well."""
    return UNICODE if encoding.lower().startswith("utf") and _locale_is_unicode() else ASCII


def _locale_is_unicode() -> bool:
    """False where the user asked for the locale `C`; Python writes UTF-8 there all the same."""
    whole, kind, language = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    # Python itself puts C.UTF-8 into LC_CTYPE where LANG is C (PEP 538), so that does not count as asked for.
    coerced = kind in ("", "C.UTF-8", "C.utf8", "UTF-8") and language in ("C", "POSIX")
    return (whole or (language if coerced else kind)) not in ("C", "POSIX")
