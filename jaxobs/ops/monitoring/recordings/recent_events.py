"""Rare events of the last half an hour, the first of its kind included."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Group, Recording

_START = "jax_process_start_timestamp_seconds{@}"
_WHY = "`increase` takes the first sample of a series as its start, and the first event of its kind creates the series."
_SECONDS = {"10m": 600, "30m": 1800}


def _rise(selector: str, window: str) -> str:
    """Returns how much a counter rose; a new series counts whole if its process was scraped before, or is new."""
    watched = f"({_START} offset {window} or (time() - {_START} < {_SECONDS[window]}))"
    new = f"({selector} unless {selector} offset {window}) and on (job, instance) {watched}"
    return f"({new})\nor increase({selector}[{window}])"


def _events(metric: str, *labels: str) -> Recording:
    selector = f"{metric}{{@fn}}" if "function" in labels else f"{metric}{{@}}"
    return Recording(
        name=f"{'_'.join(('job', 'instance', *labels))}:{metric.removesuffix('_total')}:increase30m",
        expr=_rise(selector, "30m"),
        why=f"For panels. {_WHY}",
    )


def _sums(name: str, by: str, selector: str, window: str) -> Recording:
    return Recording(
        name=name, expr=f"sum by ({by}) (\n{_rise(selector, window)}\n)", why=f"For the debug dashboard. {_WHY}"
    )


GROUP = Group(
    name="recent-events",
    rules=(
        _events("jax_function_errors_total", "function", "error"),
        _events("jax_out_of_memory_total", "function", "device"),
        _events("jax_nonfinite_total", "name"),
        _events("accelerator_xid_errors_total", "device", "xid"),
        _events("jaxobs_internal_errors_total", "where"),
        _events("jaxobs_dropped_series_total", "reason"),
        _events("jaxobs_dropped_events_total", "reason"),
        _sums(
            "job_instance_function:jax_recompilations:increase30m", "job, instance, function",
            'jax_compilations_total{@fn, cause!="first_call"}', "30m",
        ),
        _sums(
            "job_instance_cause:jax_compilations:increase10m", "job, instance, cause", "jax_compilations_total{@fn}",
            "10m",
        ),
        _sums(
            "job_instance_function:jax_function_compile_seconds:increase10m", "job, instance, function",
            "jax_function_compile_seconds_sum{@fn}", "10m",
        ),
        Recording(
            name="job_instance_alertname_severity:jax_alerts:max",
            expr=(
                "max by (job, instance, alertname, severity) (\n"
                '  label_replace(label_replace('
                'ALERTS{alertname=~"Jax.+", alertname!="JaxWatchdog", alertstate="firing", job=~"|.+"},\n'
                '    "instance", "all", "instance", ""), "job", "all", "job", "")\n'
                ")"
            ),
            why=("For the on-call dashboard: alerts about a whole job, or about something missing, "
                "have no instance."),
        ),
    ),
)  # fmt: skip
