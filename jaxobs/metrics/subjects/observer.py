"""jaxobs itself."""

from __future__ import annotations

from jaxobs.facts.snapshot import Snapshot
from jaxobs.metrics.metric import Labels, Metric, Read

_OTHERWISE = "observations"
_DROPPED = {
    "events": (
        "Events that the event log lacks, or that repeated others of their kind.",
        "event_log_lines event_log_max_bytes event_log_write errors caught_errors findings notes action_refusals",
    ),
    "files": (
        "Files that were removed or not written because a bound was reached.",
        "event_log_files out_of_memory_files last_minutes_files stuck_files out_of_memory_reports",
    ),
    "exports": (
        "Points, spans, records and writes that did not reach their export destination.",
        "otlp_metrics otlp_spans otlp_logs otlp_end pushgateway metrics_file_write wandb mlflow tensorboard",
    ),
    "connections": (
        "Connections to jaxobs' own server that it closed.", "max_connections request_timeout tls_handshake",
    ),
    "names": (
        "Times that something got no series of its own because a bound was reached.",
        "max_series max_functions dispatch_histograms routes engines inputs loops transfer_sites",
    ),
    _OTHERWISE: ("Observations that jaxobs gave up because they cost too much or found too much.", ""),
}  # fmt: skip
"""Kinds of what was dropped: a sentence, and the reasons."""


def _dropped(what: str) -> Read:
    def samples(snapshot: Snapshot) -> list[tuple[Labels, float]]:
        return [((reason,), n) for reason, n in snapshot.observer.dropped.items() if _what(reason) == what]

    return samples


def _what(reason: str) -> str:
    return next((what for what, (_, reasons) in _DROPPED.items() if reason in reasons.split()), _OTHERWISE)


METRICS = (
    Metric("jaxobs_internal_errors_total", "Failures of jaxobs itself, which it swallowed.",
           lambda s: [((where,), n) for where, n in s.observer.internal_errors.items()], ("where",)),
    Metric("jaxobs_dropped_series_total",
           "Everything that a bound of jaxobs dropped. Deprecated: use `jaxobs_dropped_*_total`, one for each kind.",
           lambda s: [((reason,), n) for reason, n in s.observer.dropped.items()], ("reason",)),
    *(Metric(f"jaxobs_dropped_{what}_total", told[0], _dropped(what), ("reason",)) for what, told in _DROPPED.items()),
    Metric("jaxobs_collect_seconds", "Duration of the previous scrape.",
           lambda s: [] if s.observer.collect_seconds is None else [((), s.observer.collect_seconds)]),
    Metric("jaxobs_capability", "Whether jaxobs can observe this in the installed JAX: 1, or 0 if it cannot.",
           lambda s: [((name,), float(on)) for name, on in s.observer.capabilities.items()], ("name",)),
)  # fmt: skip
