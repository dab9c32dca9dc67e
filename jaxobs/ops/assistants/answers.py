"""Answers of tools, and the sources that they read. Nothing to show is an answer of its own, no sign of health."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from jaxobs.base.errors import JaxobsError, MissingExtraError
from jaxobs.ops.agent.acting.desk import Desk
from jaxobs.ops.assistants.quoting import NOTICE, fitted, paged
from jaxobs.ops.diagnosis import Inputs
from jaxobs.ops.diagnosis.gathering.http import shown
from jaxobs.ops.diagnosis.gathering.places import files
from jaxobs.views import client

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
RUNNING, EVENT_LOG = "running_process", "event_log"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Everything that a tool may read."""

    inputs: Inputs
    reports: str | None = None
    """The directory with the agent's incident reports."""
    desk: Desk | None = None
    """Decides on actions; without it there are no tools for them."""
    job: str = ""
    """The job that the processes belong to, as the policy of actions names it."""

    def processes(self) -> Iterator[tuple[str, str, str]]:
        """Yields the name, the kind, and the address or path of each process or event log."""
        for url in dict.fromkeys(self.inputs.targets):
            yield urlsplit(client.endpoint_url(shown(url))).netloc, RUNNING, client.endpoint_url(url)
        for name, path in self.event_logs().items():
            yield name, EVENT_LOG, path

    def event_logs(self) -> dict[str, str]:
        """Returns the paths of event logs by name."""
        return {each.name: os.path.abspath(each.path) for each in files(self.inputs) if each.kind == "event-log"}
