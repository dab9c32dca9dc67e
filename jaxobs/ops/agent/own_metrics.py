"""Metrics of the agent itself."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

OUTCOMES = ("cause", "likely", "inconclusive", "no_fault", "failed")
REFUSALS = (
    "unauthorized", "host", "browser", "content_type", "too_large", "not_json", "not_a_notification", "version", "slow",
    "too_many_incidents",
)  # fmt: skip
RESULTS = ("recovered", "not_recovered", "no_data")


class OwnMetrics:
    """The agent's metrics, in a registry of their own."""

    def __init__(self, open_incidents: Callable[[], float]) -> None:
        """Declares them.

        Args:
          open_incidents: how many there are.
        """
        self.registry = CollectorRegistry()
        self.webhooks = self._counter("webhooks", "Webhooks that were accepted.")
        self.refused = self._counter("webhooks_refused", "Webhooks that were refused.", "reason", REFUSALS)
        self.investigations = self._counter("investigations", "Investigations that ended.", "outcome", OUTCOMES)
        self.verifications = self._counter("verifications", "Incidents that were verified.", "result", RESULTS)
        self.step_errors = self._counter("step_errors", "Steps that could not be asked.")
        self.write_errors = self._counter("write_errors", "Reports and states that could not be written.")
        self.reports_removed = self._counter("reports_removed", "Reports that were removed for their age or the space.")
        self.deliveries = Counter(
            "jaxobs_agent_deliveries", "Messages by destination.", ("destination", "result"), registry=self.registry
        )
        self.seconds = Histogram(
            "jaxobs_agent_investigation_seconds", "From the webhook to the report.", registry=self.registry,
            buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60),
        )  # fmt: skip
        self.open = Gauge("jaxobs_agent_incidents_open", "Incidents that are not closed.", registry=self.registry)
        self.open.set_function(open_incidents)

    def _counter(self, name: str, text: str, label: str = "", values: tuple[str, ...] = ()) -> Counter:
        found = Counter(f"jaxobs_agent_{name}", text, (label,) if label else (), registry=self.registry)
        for value in values:
            found.labels(value)  # from the start at 0, so that the first one counts as a rise
        return found
