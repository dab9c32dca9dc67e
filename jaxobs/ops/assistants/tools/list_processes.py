"""Which processes there are."""

from collections.abc import Callable
from typing import Any

from jaxobs.ops.assistants import processes
from jaxobs.ops.assistants.answers import Answer, Sources, Start, no_data, page


def make(sources: Sources) -> Callable[..., Answer]:
    def list_processes(start: Start = 0) -> Answer:
        """Lists the JAX processes and event logs that other tools look at, with the verdict of each. Start here."""
        rows = [row for name, kind, _ in sources.processes() for row in _rows(sources, name, kind)]
        if not rows:
            return no_data("The server was started without --target and without --event-log.")
        return page(f"Processes and event logs: {len(rows)}. Pass `name` as `process` to other tools.", rows, start)

    return list_processes


def _rows(sources: Sources, name: str, kind: str) -> list[dict[str, Any]]:
    try:
        found = processes.read(sources, name)
    except processes.SilentError as error:
        return [{"name": name, "kind": kind, "status": "no_data", "why": str(error)}]
    return [
        {
            "name": name, "kind": kind, "status": "ok", "index": each.snapshot.process.process_index,
            "of": each.snapshot.process.process_count, "program": each.snapshot.process.program,
            "host": each.snapshot.process.hostname, "pid": each.snapshot.process.pid,
            "verdict": each.snapshot.verdict.verdict if each.snapshot.verdict else None,
            "headline": each.snapshot.verdict.headline if each.snapshot.verdict else None,
        }
        for each in found
    ]  # fmt: skip
