"""Early looks: those at threads as long as no loop is known."""

from collections import deque

from jaxobs.loops.spots import Look, Spot

MOST = 4096
"""Looks at a thread that are kept."""
COMPUTED_SECONDS, COMPUTED_PART = 10.0, 0.9
"""The devices have computed for long if they did for this part of so many seconds."""


class EarlyLooks:
    """Looks by thread."""

    def __init__(self) -> None:
        self._of: dict[int, deque[Look]] = {}

    def add(self, thread: int, look: Look) -> None:
        """Keeps a look."""
        self._of.setdefault(thread, deque(maxlen=MOST)).append(look)

    def since(self, thread: int, began: float) -> list[Look]:
        """Returns the looks at a thread since a moment; forgets all."""
        found = [each for each in self._of.get(thread, ()) if each.when > began]
        self._of.clear()
        return found

    def computed_long(self, thread: int) -> Spot | None:
        """Returns where a thread is if the devices compute and have computed for long."""
        looks = self._of.get(thread, ())
        if not looks or not looks[-1].computes:
            return None
        lately = [each for each in looks if each.when > looks[-1].when - COMPUTED_SECONDS]
        computed = sum(each.seconds for each in lately if each.computes and not each.spot.called_back)
        return looks[-1].spot if computed > COMPUTED_PART * COMPUTED_SECONDS else None
