"""Position in a list or a text, and the position that a key leads to."""

from collections.abc import Sequence
from dataclasses import dataclass, field

_MOST_FILTER = 100


@dataclass(slots=True)
class Scroll:
    """The part of a text that is seen."""

    first: int = 0
    page: int = 1
    """Rows of the window, as last drawn."""
    whole: int = 0
    """Lines of the text, as last drawn."""

    def press(self, key: str) -> bool:
        """Moves; False where the key does not mean a move."""
        moved = moved_by(key, self.first, self.whole, self.page)
        if moved is None:
            return False
        self.first = moved
        self._keep()
        return True

    def window(self, whole: int, page: int) -> slice:
        """The lines to show of so many, in so many rows."""
        self.whole, self.page = whole, max(page, 1)
        self._keep()
        return slice(self.first, self.first + self.page)

    def _keep(self) -> None:
        self.first = max(min(self.first, self.whole - self.page), 0)


@dataclass(slots=True)
class Place:
    """Selection in a list, its order, and its filter."""

    selected: str | None = None
    """The key of the row; None for whichever is the first."""
    order: int = 0
    reverse: bool = False
    filter: str = ""
    typing: bool = False
    """Whether keys go into the filter."""
    keys: Sequence[str] = ()
    """Number of all rows, as last drawn."""
    scroll: Scroll = field(default_factory=Scroll)

    @property
    def index(self) -> int:
        """The number of the selected row. One that is gone gives way to the first."""
        return self.keys.index(self.selected) if self.selected is not None and self.selected in self.keys else 0

    def show(self, keys: Sequence[str], page: int) -> slice:
        """Takes the rows as they are now; those to show in so many rows, the selected one among them."""
        before = self.index
        gone = self.selected is not None and self.selected not in keys
        self.keys = keys
        if gone:
            # Its neighbour is nearer to what somebody was looking at than the first one.
            self.selected = keys[min(before, len(keys) - 1)] if keys else None
        at = self.index
        self.scroll.first = max(min(self.scroll.first, at), at - max(page, 1) + 1)
        return self.scroll.window(len(keys), page)

    def press(self, key: str, orders: int) -> bool:
        """Moves, orders or filters; False where the key means none of these."""
        if self.typing:
            return self._type(key)
        if self._move(key):
            return True
        if key == "/":
            self.typing = True
        elif key == "esc" and self.filter:
            self.filter = ""
        elif key in ("s", ">"):
            self._order(1, orders)
        elif key in ("S", "<"):
            self._order(-1, orders)
        elif key == "r":
            self.reverse = not self.reverse
            self.selected = None
        else:
            return False
        return True

    def _move(self, key: str) -> bool:
        moved = moved_by(key, self.index, len(self.keys), self.scroll.page)
        if moved is None:
            return False
        # At the first row it stays at the first, whatever comes in above.
        self.selected = self.keys[moved] if self.keys and moved else None
        return True

    def _order(self, by: int, orders: int) -> None:
        self.order = (self.order + by) % orders
        self.reverse = False
        self.selected = None

    def _type(self, key: str) -> bool:
        if key in ("up", "down", "pageup", "pagedown"):
            return self._move(key)
        if key in ("enter", "tab"):
            self.typing = False
        elif key == "esc":
            self.typing, self.filter = False, ""
        elif key == "backspace":
            self.typing, self.filter = bool(self.filter), self.filter[:-1]
        elif key == "ctrl-u":
            self.filter = ""
        elif len(key) == 1:
            self.filter = (self.filter + key)[:_MOST_FILTER]
        return True


def moved_by(key: str, at: int, whole: int, page: int) -> int | None:
    """The number of the row where a key leads; None where it leads nowhere."""
    moves = {
        "up": at - 1, "k": at - 1, "down": at + 1, "j": at + 1, "pageup": at - page, "pagedown": at + page,
        " ": at + page, "home": 0, "g": 0, "end": whole - 1, "G": whole - 1,
    }  # fmt: skip
    return max(min(moves[key], whole - 1), 0) if key in moves else None
