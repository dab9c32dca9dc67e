"""Answers of tools. Nothing to show is an answer of its own: it is not a sign of health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from jaxobs.base.errors import JaxobsError, MissingExtraError
from jaxobs.ops.assistants.quoting import NOTICE, fitted, paged

try:
    from pydantic import BaseModel
    from pydantic import Field as Field
except ImportError:
    raise MissingExtraError("jaxobs mcp", "mcp", "mcp") from None

Start = Annotated[
    int, Field(ge=0, le=1_000_000, description="Number of the first entry: `next_start` of the last page")
]
Name = Annotated[str, Field(max_length=200)]
PAGE = 20
"""Entries of a page, if they are small."""


class Answer(BaseModel):
    """The answer of every tool."""

    status: Literal["ok", "no_data"]
    """`no_data`: nothing is known. That is neither a fault nor a sign of health."""
    summary: str
    """Summary in one or two sentences by jaxobs."""
    data: Any = None
    next_start: int | None = None
    """Start of the next page; null if this is the last one."""
    notice: str = NOTICE


class RefusedError(JaxobsError):
    """An argument does not fit what the server was started with. Its message is for the assistant."""


class NotGivenError(JaxobsError):
    """The server was started without what a tool needs."""


def ok(summary: str, data: Any) -> Answer:
    """Returns an answer with something to show."""
    return Answer(status="ok", summary=summary, data=fitted(data))


def page(summary: str, items: Sequence[Any], start: int, most: int = PAGE) -> Answer:
    """Returns a page of many entries."""
    found, after = paged(items, start, most)
    if not found:
        return no_data(f"{summary} There is no entry {start}.")
    return Answer(status="ok", summary=summary, data=found, next_start=after)


def no_data(why: str) -> Answer:
    """Returns an answer without data, and why."""
    return Answer(status="no_data", summary=why)


def silent(error: Exception) -> Answer:
    """Returns the answer about a source that says nothing: its error comes from outside, too."""
    return Answer(status="no_data", summary="It does not answer, or cannot be read.", data=fitted({"why": str(error)}))


def count(number: int, what: str) -> str:
    """Returns a count with its noun: `1 alert`, `2 alerts`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
