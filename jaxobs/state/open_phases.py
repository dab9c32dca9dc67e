"""The phases of compilations that are open now, by thread. Threads change their own without a lock."""

from __future__ import annotations

from jaxobs.facts.compilations import OpenCompilation


class OpenPhases:
    """A stack of open phases for each thread."""

    def __init__(self) -> None:
        self._open: dict[int, list[OpenCompilation]] = {}

    def begin(self, thread: int, phase: OpenCompilation) -> None:
        """A phase began on a thread."""
        self._open.setdefault(thread, []).append(phase)

    def end(self, thread: int, phase: str) -> None:
        """The innermost open phase of that name ended on a thread, and with it all that it contained."""
        stack = self._open.get(thread)
        if stack is None:
            return
        for position in range(len(stack) - 1, -1, -1):
            if stack[position].phase == phase:
                del stack[position:]
                break
        if not stack:
            self._open.pop(thread, None)

    def clear(self) -> None:
        """Forgets them: their ends were lost."""
        self._open.clear()

    def outermost(self) -> tuple[OpenCompilation, ...]:
        """The outermost open phase of each thread."""
        stacks = [list(stack) for stack in list(self._open.values())]
        return tuple(stack[0] for stack in stacks if stack)
