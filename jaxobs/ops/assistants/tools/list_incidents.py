"""The incidents that the agent reported."""

from collections.abc import Callable

from jaxobs.ops.assistants import incidents
from jaxobs.ops.assistants.answers import Answer, Sources, Start, count, no_data, page


def make(sources: Sources) -> Callable[..., Answer]:
    def list_incidents(start: Start = 0) -> Answer:
        """The incidents that the agent reported, the latest first, with their short fields."""
        if sources.reports is None:
            return no_data("The server was started without --reports.")
        found = incidents.known(sources.reports)
        if not found:
            return no_data("The reports directory has no report.")
        rows = [incidents.short(sources.reports, each) for each in found[start : start + incidents.MOST_READ]]
        answer = page(f"{count(len(found), 'incident')}, the latest first. `get_incident` has all of one.", rows, 0)
        after = start + (answer.next_start or len(rows))
        return answer.model_copy(update={"next_start": after if after < len(found) else None})

    return list_incidents
