"""The tools: each module is one, by its name. `make(sources)` returns the function; assistants read its docstring.

None of them can change anything: `jaxobs.ops.assistants.serving` registers all as read-only, and a test runs
each of them and watches what it opens.
"""

from collections.abc import Callable
from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.assistants.answers import Answer, Sources


class ToolModule(discovery.Module, Protocol):
    """Makes one tool."""

    def make(self, sources: Sources, /) -> Callable[..., Answer]: ...


def tools(sources: Sources) -> dict[str, Callable[..., Answer]]:
    """All of them by name."""
    return {discovery.short_name(each): each.make(sources) for each in discovery.modules(ToolModule)}
