"""Shows an incident."""

from collections.abc import Callable

from jaxobs.ops.assistants import incidents
from jaxobs.ops.assistants.answers import Answer, Name, RefusedError, Sources, Start, count, no_data, ok, page


def make(sources: Sources) -> Callable[..., Answer]:
    def get_incident(id: Name, section: Name = "", start: Start = 0) -> Answer:
        """The report on one incident, by its id from list_incidents. Long reports are shortened: `section` names one of
        its fields, such as `evidence` or `timeline`, to page through all of it."""
        if sources.reports is None:
            return no_data("The server was started without --reports.")
        if id not in incidents.known(sources.reports):
            raise RefusedError("There is no incident with that id. list_incidents has all.")
        body = incidents.read(sources.reports, id)
        if body is None:
            return no_data("The report cannot be read: it is damaged, too large, or not a JSON object with an `id`.")
        if not section:
            return ok("The report.", body)
        if section not in body:
            raise RefusedError("The report has no such field.")
        value = body[section]
        if isinstance(value, list):
            return page(f"{count(len(value), 'item')}.", value, start)
        return ok("The field.", value)

    return get_incident
