"""Sources of the tools: what the command line names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from jaxobs.ops.agent.acting.desk import Desk
from jaxobs.ops.diagnosis import Inputs
from jaxobs.ops.diagnosis.gathering.answers import shown
from jaxobs.ops.diagnosis.gathering.places import files
from jaxobs.views import client

RUNNING, EVENT_LOG = "running_process", "event_log"


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
