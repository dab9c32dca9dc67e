"""The live view as a renderable of `rich`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxobs.views.terminal import Overview, coloured, console_surface
from jaxobs.views.top.browser import Browser

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


class Page:
    """Lines of a view that the browser shows, as high as the terminal."""

    def __init__(self, browser: Browser, view: Overview) -> None:
        self.browser, self.view = browser, view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        surface = console_surface(console, options.max_width, options.size.height)
        yield coloured(self.browser.lay_out(self.view, surface), end="")
