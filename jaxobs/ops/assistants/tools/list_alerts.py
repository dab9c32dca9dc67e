"""Lists the alerts."""

from collections.abc import Callable

from jaxobs.ops.assistants import prometheus
from jaxobs.ops.assistants.answers import Answer, Sources, Start, count, no_data, page


def make(sources: Sources) -> Callable[..., Answer]:
    def list_alerts(start: Start = 0) -> Answer:
        """The alerts that fire or are pending in the Prometheus. `get_runbook` says what to do."""
        found = prometheus.alerts(sources)
        if not found:
            return no_data("No alert fires or is pending. That does not prove health: data may be missing.")
        return page(f"{count(len(found), 'alert')}.", found, start)

    return list_alerts
