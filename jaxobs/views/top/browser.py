"""The live view: which keys lead where, and what is shown there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxobs.base.symptoms import symptom_url
from jaxobs.views.terminal import Overview, Surface, coloured, console_surface, overview
from jaxobs.views.terminal.frame import framed
from jaxobs.views.terminal.lines import Line, cells, plain, section, sentence
from jaxobs.views.terminal.text import number
from jaxobs.views.top.listing import Listing
from jaxobs.views.top.listings import COMPILATIONS, FINDINGS, FUNCTIONS, Process, processes
from jaxobs.views.top.places import Place, Scroll
from jaxobs.views.top.prose import facts

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

OVERVIEW, MEMORY = "overview", "memory"
TABS = (OVERVIEW, "findings", "functions", "compilations", MEMORY)

_MOST_WHOLE = 100
"""Compilations in the overview when it is scrolled; all of them are in their list."""
_UNKNOWN = 10**6
"""Lines of an overview that nobody has moved down in: it is laid out whole only then."""
_MOST_SHOWN = 16
"""Characters of a filter in the footer, the last ones."""
_QUIT = ("q", "Q", "ctrl-c", "ctrl-d")


@dataclass(slots=True)
class _Details:
    """Details that are open behind a row."""

    listing: Listing[Any]
    item: Any
    gone: bool = False
    scroll: Scroll = field(default_factory=Scroll)


class Browser:
    """Position of a reader in the live view."""

    def __init__(self, running: Callable[[], Sequence[Process]] = tuple) -> None:
        self.version = 0
        """Grows with every key."""
        self.done = False
        self.wanted: str | None = None
        """The address of the process that was chosen; whoever connects to it takes it away."""
        self._lists: dict[str, Listing[Any]] = {
            "findings": FINDINGS, "functions": FUNCTIONS, "compilations": COMPILATIONS, "processes": processes(running),
        }  # fmt: skip
        self._tab, self._before = OVERVIEW, OVERVIEW
        self._layer = ""
        """`help` or `processes`, over the tab; empty for neither."""
        self._message = ""
        self._restart()

    def _restart(self) -> None:
        self._places = {name: Place() for name in self._lists}
        self._scroll = Scroll()
        self._details: _Details | None = None
        self._view: Overview | None = None

    def connected(self, error: str = "") -> None:
        """Another process is shown from now on; or, with an error, it does not answer and nothing has changed."""
        self.version += 1
        self._message = error
        if not error:
            self._layer = ""
            self._restart()

    # ---------------------------------------------------------------------------------------------- keys

    def press(self, key: str) -> None:
        """Does what the key means here; nothing where it means nothing."""
        self.version += 1
        self._message = ""
        place = self._place()
        if place is not None:
            # Several keys may come between two looks at the screen.
            place.keys = [self._listing().key(each) for each in self._items(self._name())]
        if place is not None and place.typing and key not in ("ctrl-c", "ctrl-d"):
            place.press(key, 1)
        elif key in _QUIT:
            self.done = True
        elif key in ("?", "p"):
            wanted = "help" if key == "?" else "processes"
            self._layer, self._scroll = "" if self._layer == wanted else wanted, Scroll()
        elif self._layer == "help":
            if not self._scroll.press(key) and key in ("esc", "enter", "backspace"):
                self._layer = ""
        elif self._details is not None and not self._layer:
            self._press_in_details(key, self._details)
        elif place is not None and place.press(key, len(self._listing().orders)):
            pass
        elif not self._press_anywhere(key) and place is None:
            self._scroll.press(key)

    def _press_anywhere(self, key: str) -> bool:
        here = TABS.index(self._tab)
        if key == "enter":
            self._enter()
        elif key in ("esc", "backspace") and self._layer:
            self._layer = ""
        elif key in ("esc", "backspace"):
            self._go(OVERVIEW)
        elif key in ("tab", "right", "backtab", "left"):
            self._go(TABS[(here + (1 if key in ("tab", "right") else -1)) % len(TABS)])
        elif key in ("1", "2", "3", "4", "5"):
            self._go(TABS[int(key) - 1])
        elif key in ("/", "s", "S", "<", ">") and self._tab == OVERVIEW:
            self._go("functions")
            self._places["functions"].press(key, len(self._lists["functions"].orders))
        elif key in ("m", "M"):
            self._go(MEMORY if self._tab != MEMORY else self._before)
        else:
            return False
        return True

    def _press_in_details(self, key: str, details: _Details) -> None:
        if key in ("esc", "backspace", "left"):
            self._details = None
        elif key in ("n", "N"):
            place = self._places[self._tab]
            place.press("j" if key == "n" else "k", 1)
            self._open(self._tab)
        elif not details.scroll.press(key) and key != "enter":
            self._press_anywhere(key)

    def _go(self, tab: str) -> None:
        if tab != self._tab:
            self._before, self._tab = self._tab, tab
            self._scroll = Scroll()
        self._layer, self._details = "", None

    def _enter(self) -> None:
        """Opens the selected row; in the overview the worst finding, or the functions where there is none."""
        if self._layer == "processes":
            place = self._places["processes"]
            self.wanted = place.keys[place.index] if place.keys else None
        elif self._tab == OVERVIEW:
            found = self._view is not None and bool(self._view.snapshot.findings)
            self._go("findings" if found else "functions")
            if found:
                self._places["findings"] = Place()
                self._open("findings")
        elif self._tab in self._lists:
            self._open(self._tab)

    def _open(self, name: str) -> None:
        listing, place = self._lists[name], self._places[name]
        items = self._items(name)
        place.keys = [listing.key(each) for each in items]
        if items:
            self._details = _Details(listing, items[place.index])

    def _items(self, name: str) -> Sequence[Any]:
        place = self._places[name]
        if self._view is None:
            return ()
        return self._lists[name].arranged(self._view, place.order, place.reverse, place.filter)

    def _name(self) -> str:
        """The list that is in front; empty where there is none."""
        if self._layer:
            return self._layer if self._layer in self._lists else ""
        return self._tab if self._tab in self._lists and self._details is None else ""

    def _listing(self) -> Listing[Any]:
        return self._lists[self._name()]

    def _place(self) -> Place | None:
        return self._places.get(self._name())

    # -------------------------------------------------------------------------------------------- drawing

    def lay_out(self, view: Overview, surface: Surface) -> list[Line]:
        """The view as it is now, for this surface; exactly as high as that."""
        self._view = view
        return framed(view, surface, lambda inner, height: self._body(view, inner, height or 0), self._keys())

    def _body(self, view: Overview, surface: Surface, height: int) -> list[Line]:
        told = [line for line in sentence(self._message, surface, "bad") if self._message]
        height -= len(told)
        if self._layer == "help":
            lines = self._text("Help", help_lines(surface), self._scroll, surface, height)
        elif name := self._name():
            lines = self._list(view, name, surface, height)
        elif self._details is not None:
            lines = self._opened(view, self._details, surface, height)
        else:
            lines = self._sections(view, surface, height)
        return [*told, *lines]

    def _sections(self, view: Overview, surface: Surface, height: int) -> list[Line]:
        """Overview and memory: what fits; whole and scrolled once somebody has moved down."""
        shown = dataclasses.replace(view, memory=self._tab == MEMORY)
        if self._scroll.first:
            whole = overview.body(
                dataclasses.replace(shown, compilations=view.compilations[-_MOST_WHOLE:]), surface, None
            )
            window = self._scroll.window(len(whole), height)
            if self._scroll.first:
                return whole[window]
        self._scroll.window(_UNKNOWN, height)
        return overview.body(shown, surface, height)

    def _text(self, title: str, lines: list[Line], scroll: Scroll, surface: Surface, height: int) -> list[Line]:
        page = max(height - 1, 0)
        window = scroll.window(len(lines), page)
        more = f"{scroll.first + 1}-{min(window.stop, len(lines))} of {len(lines)}" if len(lines) > page else ""
        return [section(title, more, surface), *lines[window]]

    def _opened(self, view: Overview, details: _Details, surface: Surface, height: int) -> list[Line]:
        listing, key = details.listing, details.listing.key(details.item)
        now = [each for each in listing.items(view) if listing.key(each) == key]
        details.item, details.gone = (now or [details.item])[0], not now
        place = self._places[self._tab]
        at = f" {place.index + 1} of {len(place.keys)}" if len(place.keys) > 1 else ""
        lines = listing.details(view, details.item, surface)
        if details.gone:
            lines = [plain(" The process no longer reports it. This is its last known state.", "warn"), *lines]
        return self._text(f"{listing.title}{at}", lines, details.scroll, surface, height)

    def _list(self, view: Overview, name: str, surface: Surface, height: int) -> list[Line]:
        listing, place = self._lists[name], self._places[name]
        items = self._items(name)
        order = listing.orders[place.order]
        page = max(height - 2, 0)
        window = place.show([listing.key(each) for each in items], page)
        head, line = listing.grid(view, items, surface, order.column)
        told = [f"by {order.name}{', reversed' if place.reverse else ''}"]
        if place.filter or place.typing:
            told.insert(0, f"{number(len(items))} of {number(len(listing.items(view)))}")
        elif len(items) > page:
            told.append(f"{number(place.index + 1)} of {number(len(items))}")
        top = self._title(view, name, told, surface)
        if not items:
            empty = f"Nothing matches `{place.filter}`." if place.filter else listing.empty
            return [top, *sentence(empty, surface, "dim")]
        rows = [line(each) for each in items[window]]
        at = place.index - window.start
        if 0 <= at < len(rows):
            rows[at] = _selected(rows[at], surface)
        return [top, head, *rows]

    def _title(self, view: Overview, name: str, told: Sequence[str], surface: Surface) -> Line:
        """The names of all views, the one that is shown in brackets; only that if there is no room."""
        counts = {each: number(len(self._lists[each].items(view))) for each in self._lists if each in TABS}
        names = {each: f"{each.capitalize()} {counts.get(each, '')}".strip() for each in TABS}
        bar = "  ".join(f"[{names[each]}]" if each == name else names[each] for each in TABS)
        titles = [bar] if name in TABS else []
        titles.append(names.get(name, self._lists[name].title))
        for title in titles:
            for summary in (", ".join(told), told[0]):
                if cells(title) + cells(summary) + 8 <= surface.width:
                    return section(title, summary, surface)
        return section(titles[-1], "", surface)

    def _keys(self) -> list[str]:
        """The keys that matter here, the first ones first."""
        place = self._place()
        if place is not None and place.typing:
            return [f"/{place.filter[-_MOST_SHOWN:]}_", "Enter keep", "Esc clear"]
        if self._layer == "help":
            return ["Esc back", "q quit"]
        if place is None and self._details is not None:
            return ["Esc back", "? help", "n next", "q quit"]
        if place is not None:
            kept = [f"/{place.filter[-_MOST_SHOWN:]} (Esc clears)"] if place.filter else ["/ filter"]
            return [f"Enter {self._listing().enter}", *kept, "? help", "s sort", "Esc back", "q quit"]
        rest = ["m back" if self._tab == MEMORY else "m memory"]
        return ["q quit", "? help", "Tab lists", *rest]


class Page:
    """Lines of a view that the browser shows, as high as the terminal: a renderable of `rich`."""

    def __init__(self, browser: Browser, view: Overview) -> None:
        self.browser, self.view = browser, view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        surface = console_surface(console, options.max_width, options.size.height)
        yield coloured(self.browser.lay_out(self.view, surface), end="")


def _selected(line: Line, surface: Surface) -> Line:
    """The row in one style across the whole width, with a sign for terminals that have no styles."""
    text = surface.glyphs.marker + "".join(text for text, _ in line)[1:]
    return plain(text + " " * (surface.width - cells(text)), "selected")


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
