"""What is wrong now: for someone who has just been paged."""

from __future__ import annotations

from jaxobs.panel_queries import highest, lowest, or_zero, share
from jaxobs.panel_types import Annotation, Board, Column, Panel, Row, Target

_JAX = "and on (job) group by (job) (present_over_time(jax_build_info{@}[1h]))"
"""Only jobs of which some process has run jaxobs within the hour: a Prometheus has others as well."""

SEVERITY = {"critical": ("critical", "red"), "warning": ("warning", "orange"), "info": ("info", "blue")}

_NOW = Row(
    title="Now",
    panels=(
        Panel(
            key="firing_alerts",
            title="Alerts that fire",
            description=(
                "Start here. Each line leads to the alert's runbook; `all` stands for an alert about a whole job, or "
                "about nothing being there. Empty is good."
            ),
            kind="table", unit="none", width=12, height=10, good="none", needs="trouble", no_value="No alert fires.",
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
            title="Processes that do not answer",
            description=(
                "Processes that Prometheus cannot scrape. After a deployment, gone ones vanish; what stays is down."
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
                "Processes that live but have not finished a step for many times their usual time, as they say "
                "themselves, and those whose steps have stopped, as Prometheus sees it."
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
                "Calls that died of memory within the last half an hour. `jaxobs explain` tells what held the "
                "memory."
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
                "Watched values that held a NaN or an infinity. A loss that is NaN stays so: the steps since are "
                "lost."
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
                "Xid errors, uncorrected memory errors, devices that do not answer their driver and links with a "
                "lasting fault. Zero also where nothing is seen of the devices."
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
                "Errors inside jaxobs, and what one of its bounds cut off. The program is not harmed; figures may "
                "lack."
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
            ),
        ),
    ),
)  # fmt: skip

_USERS = Row(
    title="What users feel",
    panels=(
        Panel(
            key="request_errors",
            title="Requests that failed",
            description="Share of the requests of each route that ended with an error of the service.",
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
                "Time from the begin of a request to its last byte, of the slowest routes. Cold requests are in it."
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
            title="Requests that met a compilation",
            description=(
                "Share of requests within which something compiled or was loaded from the cache. Should be 0 after a "
                "warm-up."
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
    title="What may be behind it",
    panels=(
        Panel(
            key="errors",
            title="Calls that raised, last 30 min",
            description=(
                "Exceptions of instrumented functions within the last half an hour, by type; the first one included."
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
                "Compilations of functions that had a program already. Each stops a step or a request. A program "
                "that has warmed up has none."
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
                "Share of looked-up programs that were found. Low after a restart means that everything compiles "
                "anew."
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
            description="Share of the allocator's limit that was free at the fullest moment of the last minute.",
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
            title="Step time against the median of the job",
            description=(
                "Mean step time of each process, divided by the median of its job: 1 is like all others. Processes "
                "that wait for one another look alike; then the finding `straggler` names the one that the others "
                "wait for."
            ),
            kind="timeseries", alert="JaxStraggler", unit="none", width=8, needs="steps",
            good="low", least=0, decimals=2,
            targets=(
                Target(
                    expr=highest(
                        "mean_of(jax_step_seconds{@}, job, instance, loop) / on (job, loop) group_left () "
                        "(quantile by (job, loop) (0.5, mean_of(jax_step_seconds{@}, job, instance, loop)) > 0)"
                    ),
                    legend="{{instance}} {{loop}}",
                ),
            ),
        ),
        Panel(
            key="findings",
            title="What jaxobs has found",
            description="Patterns that stand now, by process: each has a sentence and a cure in `jaxobs explain`.",
            kind="table", unit="short", width=8, good="none", needs="trouble", no_value="Nothing stands.",
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
