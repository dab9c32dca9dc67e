"""Parts of a list in `jaxobs top`: its items, its orders, its rows, and the details behind a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import GAP, Column, Line, heading, row

T = TypeVar("T")

Grid = tuple[Line, Callable[[T], Line]]
"""The heading, and what makes the row of an item."""


@dataclass(frozen=True, slots=True)
class Order(Generic[T]):
    """A way to order the items."""

    name: str
    """As in `by name`."""
    key: Callable[[Overview], Callable[[T], Any]]
    """Sort key of the items of a view."""
    column: str = ""
    """The title of the column that shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """A list."""

    title: str
    empty: str
    """A sentence for when there is none."""
    items: Callable[[Overview], Sequence[T]]
    key: Callable[[T], str]
    """Identity of an item, the same at every look."""
    words: Callable[[T], str]
    """Text of an item that a filter searches."""
    orders: Sequence[Order[T]]
    """The first is in force until another is chosen."""
    grid: Callable[[Overview, Sequence[T], Surface, str], Grid[T]]
    """For all items; the text is the title of the column by which they are ordered."""
    details: Callable[[Overview, T, Surface], list[Line]]
    """Details behind an item, whole."""
    enter: str = "details"
    """Label of the key Enter, for the footer."""

    def arranged(self, view: Overview, order: int, reverse: bool, filter: str) -> list[T]:
        """The items that have every word of the filter, in order."""
        wanted = filter.lower().split()
        found = [each for each in self.items(view) if all(word in self.words(each).lower() for word in wanted)]
        found.sort(key=self.orders[order].key(view))
        return found[::-1] if reverse else found


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a list may have; those of the highest rank are the first to go where the width does not suffice."""

    title: str
    least: int
    rank: int
    most: int = 0
    """Cells that it can make use of, if there is room."""
    right: bool = False


def fitted(fields: Sequence[Field], surface: Surface, ordered_by: str = "") -> list[Column]:
    """The columns that the width has room for, each as wide as is worth it; what they are ordered by stays."""
    kept = list(fields)
    room = surface.width - 2
    while len(kept) > 2 and sum(each.least + GAP for each in kept) - GAP > room:
        kept.remove(max(kept, key=lambda each: (each.title != ordered_by, each.rank)))
    spare = max(room - sum(each.least + GAP for each in kept) + GAP, 0)
    widths = {each.title: each.least for each in kept}
    for column in sorted(kept, key=lambda each: each.rank):
        more = min(max(column.most - column.least, 0), spare)
        widths[column.title] += more
        spare -= more
    return [Column(each.title, widths[each.title], each.right) for each in kept]


def fields_grid(
    fields: Sequence[Field], surface: Surface, ordered_by: str, cells: Callable[[T, Mapping[str, int]], dict[str, Line]]
) -> Grid[T]:
    """The grid of the fields that fit; `cells` returns an item's by title, given the widths of those that fit."""
    columns = fitted(fields, surface, ordered_by)
    widths = {each.title: each.width for each in columns}

    def line(item: T) -> Line:
        made = cells(item, widths)
        return row(columns, [made[title] for title in widths])

    return heading(columns, ordered_by=ordered_by), line
