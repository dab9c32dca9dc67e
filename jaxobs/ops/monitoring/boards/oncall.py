"""Faults of now: for someone who has just been paged."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest, lowest, or_zero, share
from jaxobs.ops.monitoring.panel_types import Annotation, Board, Column, Panel, Row, Target

_JAX = "and on (job) group by (job) (present_over_time(jax_build_info{@}[1h]))"
"""Only jobs of which some process has run jaxobs within the hour: a Prometheus has others as well."""

SEVERITY = {"critical": ("critical", "red"), "warning": ("warning", "orange"), "info": ("info", "blue")}

_NOW = Row(
    title="Now",
    panels=(
        Panel(
            key="firing_alerts",
            title="Firing alerts",
            description=(
                "Start here. Each line leads to the alert's runbook; `all` means an alert about a "
                "whole job, or about something missing. Empty is good."
            ),
            kind="table", unit="none", width=12, height=10, good="none", needs="trouble", no_value=("No "
                                                                                                   "alert "
                                                                                                   "is "
                                                                                                   "firing."),
            targets=(Target(expr=highest("job_instance_alertname_severity:jax_alerts:max{@} > 0", 100)),),
            columns=(
                Column(source="alertname", title="Alert", link="runbook"),
                Column(source="severity", title="Severity", mappings=SEVERITY),
                Column(source="job", title="Job"),
                Column(source="instance", title="Process", link="debug"),
            ),
        ),
        Panel(
            key="targets",
            title="Processes that do not respond",
            description=(
                "Processes that Prometheus cannot scrape. After a deployment, old ones disappear; "
                "those that remain are down."
            ),
            kind="stat", unit="short", width=4, height=5, good="low",
            targets=(
                Target(
                    expr=f"count by (job) (up{{@}} == 0 {_JAX}) or 0 * count by (job) (up{{@}} {_JAX})",
                    legend="{{job}}",
                ),
            ),
        ),
        Panel(
            key="stalled",
            title="Processes that are stuck",
            description=(
                "Processes that are alive but have not finished a step for many times their typical "
                "step time, as they report, and those whose steps have stopped, as Prometheus sees "
                "it."
            ),
            kind="stat", unit="short", width=4, height=5, good="low", decimals=0,
            targets=(
                Target(expr=or_zero('sum by (job) (jax_findings{@, finding="stuck"})'), legend="{{job}} stuck"),
                Target(
                    expr=or_zero("count by (job) (job_instance:jax_steps_stalled:bool{@})"), legend="{{job}} no steps"
                ),
            ),
        ),
        Panel(
            key="out_of_memory",
            title="Out of memory, last 30 min",
            description=(
                "Calls that ran out of memory within the last half hour. `jaxobs explain` shows what "
                "held the memory."
            ),
            kind="stat", unit="short", width=4, height=5, good="low", decimals=0,
            targets=(
                Target(
                    expr=or_zero("sum by (job) (job_instance_function_device:jax_out_of_memory:increase30m{@})"),
                    legend="{{job}}",
                ),
            ),
        ),
        Panel(
            key="nonfinite",
            title="NaN or infinity, last 30 min",
            description=(
                "Watched values that contained a NaN or an infinity. A NaN loss does not recover: "
                "the steps since then are lost."
            ),
            kind="stat", unit="short", width=4, height=5, good="low", decimals=0,
            targets=(
                Target(expr=or_zero("sum by (job) (job_instance_name:jax_nonfinite:increase30m{@})"), legend="{{job}}"),
            ),
        ),
        Panel(
            key="device_faults",
            title="Device faults, last 30 min",
            description=(
                "Xid errors, uncorrected memory errors, devices that do not respond to their driver, "
                "and links with a persistent fault. Also zero if the devices are not observed."
            ),
            kind="stat", unit="short", width=4, height=5, good="low", decimals=0,
            targets=(
                Target(
                    expr=or_zero(
                        "sum by (job) (job_instance_device_xid:accelerator_xid_errors:increase30m{@} or "
                        'increase(accelerator_ecc_errors_total{@, error="uncorrected", counter="volatile"}[30m]) or '
                        "(accelerator_up{@} == bool 0) or (accelerator_link_fault_level{@} >= bool 6))"
                    ),
                    legend="{{job}}",
                ),
            ),
        ),
        Panel(
            key="observer",
            title="Failures of jaxobs, last 30 min",
            description=(
                "Errors inside jaxobs, and data that one of its bounds dropped. The program is not "
                "affected; some figures may be missing."
            ),
            kind="stat", alert="JaxobsInternalErrors", unit="short", width=4, height=5, good="low", decimals=0,
            targets=(
                Target(
                    expr=or_zero(
                        "sum by (job) (job_instance_where:jaxobs_internal_errors:increase30m{@} or "
                        "job_instance_reason:jaxobs_dropped_series:increase30m{@})"
                    ),
                    legend="{{job}}",
                ),
                Target(
                    expr=(
                        "count by (job, name) (jaxobs_capability{@} == 0 "
                        "and max_over_time(jaxobs_capability{@}[7d]) == 1)"
                    ),
                    legend="{{job}} without {{name}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

_USERS = Row(
    title="What users experience",
    panels=(
        Panel(
            key="request_errors",
            title="Requests that failed",
            description="Share of each route's requests that ended with a service error.",
            kind="timeseries", alert="JaxRequestErrorsHigh", unit="percentunit", width=8, needs="serving",
            good="low", least=0,
            targets=(
                Target(
                    expr=highest(
                        share('jax_requests_total{@, outcome="error"}', "jax_requests_total{@}", "job, instance, route")
                    ),
                    legend="{{instance}} {{route}}",
                ),
            ),
        ),
        Panel(
            key="request_latency",
            title="Latency of requests, 99th percentile",
            description=(
                "Time from the start of a request to its last byte, for the slowest routes, "
                "including cold requests."
            ),
            kind="timeseries", unit="s", width=8, needs="serving", good="low", least=0,
            targets=(
                Target(
                    expr=highest("quantile_of(0.99, jax_request_seconds{@}, job, instance, route)"),
                    legend="{{instance}} {{route}}",
                ),
            ),
        ),
        Panel(
            key="cold_share",
            title="Requests with a compilation",
            description=(
                "Share of requests during which something compiled or was loaded from the cache. "
                "Should be 0 after the warm-up."
            ),
            kind="timeseries", alert="JaxColdRequestsHigh", unit="percentunit", width=8, needs="serving",
            good="low", least=0,
            targets=(
                Target(
                    expr=highest(
                        share('jax_requests_total{@, cold="true"}', "jax_requests_total{@}", "job, instance, route")
                    ),
                    legend="{{instance}} {{route}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

_CAUSES = Row(
    title="Possible causes",
    panels=(
        Panel(
            key="errors",
            title="Calls that raised, last 30 min",
            description=(
                "Exceptions of instrumented functions within the last half hour, by type, including "
                "the first one."
            ),
            kind="timeseries", alert="JaxFunctionErrors", unit="short", width=8,
            good="low", least=0, needs="trouble", decimals=0,
            no_value="No call raised.",
            targets=(
                Target(
                    expr=highest(
                        "sum by (job, instance, function, error) "
                        "(job_instance_function_error:jax_function_errors:increase30m{@})"
                    ),
                    legend="{{instance}} {{function}} {{error}}",
                ),
            ),
        ),
        Panel(
            key="recompilations",
            title="Recompilations, last 30 min",
            description=(
                "Compilations of functions that had already compiled. Each blocks a step or a "
                "request. A program that has warmed up has none."
            ),
            kind="timeseries", alert="JaxRecompilationStorm", unit="short", width=8, good="low", least=0, decimals=0,
            targets=(
                Target(
                    expr=highest(
                        "job_instance_function:jax_recompilations:increase30m{@} "
                        "or 0 * sum by (job, instance, function) (increase(jax_compilations_total{@}[30m]))"
                    ),
                    legend="{{instance}} {{function}}",
                ),
            ),
        ),
        Panel(
            key="cache_hit_ratio",
            title="Hits of the persistent cache",
            description=(
                "Share of looked-up programs that were found. A low value after a restart means that "
                "everything recompiles."
            ),
            kind="timeseries", alert="JaxPersistentCacheIneffective", unit="percentunit", width=8,
            needs="persistent_cache",
            good="high", least=0, most=1,
            targets=(
                Target(
                    expr=lowest(
                        share(
                            'jax_persistent_cache_requests_total{@, result="hit"}',
                            'jax_persistent_cache_requests_total{@, result=~"hit|miss"}',
                            "job, instance",
                        )
                    ),
                    legend="{{instance}}",
                ),
            ),
        ),
        Panel(
            key="memory_headroom",
            title="Headroom of the fullest devices",
            description="Share of the allocator's limit that was free at peak use in the last minute.",
            kind="timeseries", alert="JaxDeviceMemoryHeadroomLow", unit="percentunit", width=8, needs="accelerator",
            good="high", least=0, most=1,
            targets=(
                Target(
                    expr=lowest(
                        "1 - jax_device_memory_high_water_bytes{@} / (jax_device_memory_limit_bytes{@} > 0)"
                    ),
                    legend="{{instance}} device {{device}}",
                ),
            ),
        ),
        Panel(
            key="stragglers",
            title="Step time against the median of the run",
            description=(
                "Typical step time of each process, divided by the median of its run: 1 means like all "
                "others, as does a difference below 10 ms. Processes that wait for each other look alike; then the "
                "finding `straggler` names the one that the others wait for."
            ),
            kind="timeseries", alert="JaxStraggler", unit="none", width=8, needs="steps",
            good="low", least=0, decimals=2,
            targets=(
                Target(
                    expr=highest(
                        "job_instance_run_id_loop:jax_step_seconds:ratio_median30m{@} "
                        "or 0 * job_instance_run_id_loop:jax_step_seconds:median30m{@} + 1"
                    ),
                    legend="{{instance}} {{loop}}",
                ),
            ),
        ),
        Panel(
            key="findings",
            title="What jaxobs has found",
            description="Active findings, by process: `jaxobs explain` has a sentence and a fix for each.",
            kind="table", unit="short", width=8, good="none", needs="trouble", no_value="There are no findings.",
            targets=(Target(expr=highest("jax_findings{@} > 0", 100)),),
            columns=(
                Column(source="instance", title="Process", link="debug"),
                Column(source="finding", title="Finding"),
                Column(source="A", title="Number", unit="short"),
            ),
        ),
    ),
)  # fmt: skip

BOARD = Board(
    name="oncall",
    title="JAX: on-call",
    description="What is wrong now, worst first; a panel's links lead to the runbooks of its alerts.",
    annotations=(
        Annotation(
            name="Process starts", expr="jax_process_start_timestamp_seconds{@} * 1000",
            title="{{instance}} started", color="blue", value_is_time=True,
        ),
    ),
    rows=(_NOW, _USERS, _CAUSES),
)  # fmt: skip
