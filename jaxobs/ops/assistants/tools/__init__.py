"""The tools: each module is one, by its name. `make(sources)` returns the function; assistants read its docstring.

None of them can change anything: `jaxobs.ops.assistants.serving` registers all as read-only, and a test runs
each of them and watches what it opens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxobs.base import discovery
from jaxobs.ops.assistants.answers import Answer
from jaxobs.ops.assistants.sources import Sources

EACH_HAS = ("make",)


def tools(sources: Sources) -> dict[str, Callable[..., Answer]]:
    """All of them by name."""
    found: dict[str, Callable[..., Any]] = {
        each.__name__.rpartition(".")[2]: each.make(sources) for each in discovery.modules(__name__)
    }
    return found
