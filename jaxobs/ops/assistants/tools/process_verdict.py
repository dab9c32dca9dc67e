"""Shows the verdict of a process."""

from collections.abc import Callable

from jaxobs.facts.events import plain
from jaxobs.ops.assistants import processes
from jaxobs.ops.assistants.answers import Answer, Name, Sources, Start, count, no_data, page


def make(sources: Sources) -> Callable[..., Answer]:
    def process_verdict(process: Name = "", index: int = 0, start: Start = 0) -> Answer:
        """Lists what a process finds wrong with itself, the worst first: what it costs, where, what to do, evidence;
        of a stuck process the stacks of its threads."""
        now = processes.one(sources, process, index).snapshot
        if now.verdict is None:
            return no_data("The process gives no verdict: it runs an older jaxobs.")
        if not now.verdict.findings:
            return no_data("The process finds nothing wrong with itself.")
        details = {each.id: each for each in now.findings}
        rows = [
            plain(each) | ({"data": plain(details[each.id].data)} if each.id in details else {})
            for each in now.verdict.findings
        ]
        return page(f"{count(len(rows), 'finding')}, the worst first.", rows, start)

    return process_verdict
