"""Hundreds of processes at once: how they are spread, which ones stand out, what they run."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest, lowest, or_zero
from jaxobs.ops.monitoring.panel_types import Annotation, Board, Column, Panel, Row, Target, Variable

_JAX = "and on (job) group by (job) (present_over_time(jax_build_info{@}[1h]))"
_STEP_TIME = 'mean_of(jax_step_seconds{@, loop=~"$loop"}, job, instance, loop)'

_PROCESSES = Row(
    title="Processes",
    panels=(
        Panel(
            key="processes",
            title="Processes that respond",
            description=(
                "Processes of each job that Prometheus can scrape, those that it cannot, those that report, and how "
                "many JAX counts in a run. A line that ends is a job that ended, or vanished."
            ),
            kind="timeseries", unit="short", width=8, good="none", least=0, decimals=0,
            targets=(
                Target(expr=f"sum by (job) (up{{@}} {_JAX})", legend="{{job}} answer"),
                Target(
                    expr=f"count by (job) (up{{@}} == 0 {_JAX}) or 0 * count by (job) (up{{@}} {_JAX})",
                    legend="{{job}} do not",
                ),
                Target(expr="count by (job) (jax_process_start_timestamp_seconds{@})", legend="{{job}} report"),
                Target(expr="max by (job) (jax_processes{@})", legend="{{job}} of which the largest run has"),
            ),
        ),
        Panel(
            key="restarts",
            title="Processes that started in the last 10 min",
            description="A bump is a deployment or a restart of the job; a line that stays up is a crash loop.",
            kind="timeseries", unit="short", width=8, good="low", least=0, decimals=0,
            targets=(
                Target(
                    expr=or_zero("count by (job) (time() - jax_process_start_timestamp_seconds{@} < 600)"),
                    legend="{{job}}",
                ),
            ),
        ),
        Panel(
            key="compiling_processes",
            title="Processes compiling now",
            description=(
                "Many at once after a start are normal. Many at once later on are a thundering "
                "compile: each compiles the same program instead of loading it from a shared cache."
            ),
            kind="timeseries", alert="JaxThunderingCompile", unit="short", width=8, good="low", least=0, decimals=0,
            targets=(
                Target(expr=or_zero("count by (job) (jax_compilations_in_progress{@} > 0)"), legend="{{job}}"),
                Target(
                    expr=highest(
                        "count by (job, function) (job_instance_function:jax_compilations:increase10m{@} > 0)", 10
                    ),
                    legend="{{job}} {{function}}, last 10 min",
                ),
            ),
        ),
        Panel(
            key="crashes",
            title="Crashes, last hour",
            description=(
                "How often the job's most restarted process restarted without having ended normally, or how many found "
                "that the process before them had crashed."
            ),
            kind="timeseries", alert="JaxFleetRestarts", unit="short", width=12, good="low", least=0, decimals=0,
            needs="trouble", no_value="Nothing has crashed.",
            targets=(
                Target(
                    expr="max by (job) (sum_over_time(job_instance:jax_process_restarts:bool{@}[1h]))",
                    legend="{{job}} restarts",
                ),
                Target(
                    expr=(
                        'count by (job) (last_over_time(jax_run_info{@, last_exit=~"error|killed|out_of_memory"}[1h]))'
                    ),
                    legend="{{job}} crashes before the process",
                ),
            ),
        ),
        Panel(
            key="preemptions",
            title="Ended by signals, last hour",
            description=(
                "How often a run was ended by a signal, as by a preemption, and began again, as its processes know "
                "from their files. A few in a day are normal on capacity that is preempted."
            ),
            kind="timeseries", alert="JaxPreemptedOften", unit="short", width=12, good="low", least=0, decimals=0,
            needs="trouble", no_value="No run was ended by a signal.",
            targets=(Target(expr=highest("job_instance:jax_preemptions:max1h{@}"), legend="{{job}}"),),
        ),
        Panel(
            key="replicas_lost",
            title="Replicas lost within 10 min",
            description=(
                "Share of a service's replicas that stopped within 10 minutes; below 0 there are more than before. "
                "When traffic falls, that is a scale-down; while the replicas are busy, they were lost."
            ),
            kind="timeseries", alert="JaxReplicasLost", unit="percentunit", width=12, good="low", most=1, needs="hours",
            targets=(
                Target(
                    expr=(
                        "1 - count by (job) (jax_requests_in_flight{@}) "
                        "/ on (job) (count by (job) (jax_requests_in_flight{@} offset 10m) > 0)"
                    ),
                    legend="{{job}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

_PACE = Row(
    title="Pace",
    panels=(
        Panel(
            key="step_time_heatmap",
            title="Step times of all processes",
            description=(
                "How many steps took how long. One narrow band is good; a second band, or one that widens, is not."
            ),
            kind="heatmap", unit="s", width=12, height=9, good="none", needs="steps",
            targets=(
                Target(expr='buckets_of(jax_step_seconds{@, loop=~"$loop"})', legend="{{le}}"),
            ),
        ),
        Panel(
            key="step_spread",
            title="Spread of the step time",
            description=(
                "Mean step time of the slowest, the median and the fastest process of each loop. If "
                "processes wait for each other, the three are close together, whichever is the cause."
            ),
            kind="timeseries", unit="s", width=12, height=9, good="low", least=0, needs="steps",
            targets=(
                Target(expr=f"max by (job, loop) ({_STEP_TIME})", legend="{{job}} {{loop}} slowest"),
                Target(expr=f"quantile by (job, loop) (0.5, {_STEP_TIME})", legend="{{job}} {{loop}} median"),
                Target(expr=f"min by (job, loop) ({_STEP_TIME})", legend="{{job}} {{loop}} fastest"),
            ),
        ),
        Panel(
            key="slowest_processes",
            title="Slowest processes",
            description="Mean step time now, of the twenty slowest. A click opens the process.",
            kind="bargauge", unit="s", width=12, height=9, good="none", least=0, needs="steps",
            targets=(Target(expr=highest(_STEP_TIME), legend="{{instance}} {{loop}}", instant=True),),
        ),
        Panel(
            key="goodput_by_process",
            title="Lowest goodput",
            description="Share of its time that each process spent in steps, for the twenty lowest.",
            kind="timeseries", unit="percentunit", width=12, height=9, good="high", least=0, most=1, needs="steps",
            targets=(
                Target(
                    expr=lowest(
                        'sum by (job, instance) (rate(jax_time_seconds_total{@, category="step"}[$__rate_interval])) '
                        "/ (sum by (job, instance) (rate(jax_time_seconds_total{@}[$__rate_interval])) > 0) "
                        "and on (job, instance) jax_goodput_ratio{@, scope=\"process\"}"
                    ),
                    legend="{{instance}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

_STATE = Row(
    title="Memory, findings, versions",
    panels=(
        Panel(
            key="memory_heatmap",
            title="Memory in use over all devices",
            description=(
                "How many devices have which share of their limit in use. A stray cell above the band is an outlier."
            ),
            kind="heatmap", unit="percentunit", width=12, height=9, good="none", needs="accelerator", least=0, most=1,
            targets=(
                Target(
                    expr="jax_device_memory_in_use_bytes{@} / (jax_device_memory_limit_bytes{@} > 0)",
                    legend="{{instance}} device {{device}}",
                ),
            ),
        ),
        Panel(
            key="findings_by_process",
            title="Findings by process",
            description=(
                "Active findings. If all processes have the same one, the program is the cause; if "
                "only one has it, its machine is."
            ),
            kind="table", unit="short", width=12, height=9, good="none", needs="trouble", no_value=("There "
                                                                                                   "are "
                                                                                                   "no "
                                                                                                   "findings."),
            targets=(Target(expr=highest("jax_findings{@} > 0", 200)),),
            columns=(
                Column(source="job", title="Job"),
                Column(source="instance", title="Process", link="debug"),
                Column(source="finding", title="Finding"),
                Column(source="A", title="Number", unit="short"),
            ),
        ),
        Panel(
            key="versions",
            title="Processes by version",
            description=("More than one bar per job means version skew: a rollout in progress, or "
                        "machines that were left behind."),
            kind="bargauge", unit="short", width=8, height=6, good="none", least=0, decimals=0,
            targets=(
                Target(
                    expr="count by (job, jax, jaxlib) (jax_build_info{@})",
                    legend="{{job}} jax {{jax}} jaxlib {{jaxlib}}",
                    instant=True,
                ),
            ),
        ),
        Panel(
            key="version_table",
            title="Versions",
            description="How many processes run which combination; runtime and driver if known.",
            kind="table", unit="short", width=16, height=6, good="none",
            targets=(
                Target(expr="count by (job, jaxobs, python, jax, jaxlib, plugin, driver, runtime) (jax_build_info{@})"),
            ),
            columns=(
                Column(source="job", title="Job"),
                Column(source="jaxobs", title="jaxobs"),
                Column(source="python", title="Python"),
                Column(source="jax", title="JAX"),
                Column(source="jaxlib", title="jaxlib"),
                Column(source="plugin", title="Plugin"),
                Column(source="driver", title="Driver"),
                Column(source="runtime", title="Runtime"),
                Column(source="A", title="Processes", unit="short"),
            ),
        ),
        Panel(
            key="series_and_scrape",
            title="Cost of observing, most expensive processes",
            description=(
                "Series of each process and how long the scrape takes. A process should stay below 5,000 series and "
                "1 s."
            ),
            kind="table", unit="short", width=24, height=6, good="none",
            targets=(
                Target(expr=highest(f"sum by (job, instance) (scrape_samples_scraped{{@}} {_JAX})", 50)),
                Target(expr=highest(f"sum by (job, instance) (scrape_duration_seconds{{@}} {_JAX})", 50)),
                Target(expr=highest("sum by (job, instance) (jaxobs_collect_seconds{@})", 50)),
                Target(
                    expr=highest(
                        or_zero(
                            "sum by (job, instance) (job_instance_reason:jaxobs_dropped_series:increase30m{@})",
                            "job, instance",
                        ),
                        50,
                    )
                ),
            ),
            columns=(
                Column(source="job", title="Job"),
                Column(source="instance", title="Process", link="debug"),
                Column(source="A", title="Samples", unit="short"),
                Column(source="B", title="Scrape", unit="s"),
                Column(source="C", title="of it jaxobs", unit="s"),
                Column(source="D", title="Dropped, 30 min", unit="short"),
            ),
        ),
    ),
)  # fmt: skip

BOARD = Board(
    name="fleet",
    title="JAX: fleet",
    description="Hundreds of processes at once: their distribution, the outliers, what they run.",
    variables=(Variable(name="loop", label="Loop", query="label_values(jax_steps_total{@}, loop)"),),
    annotations=(
        Annotation(
            name="Process starts", expr="max by (job) (jax_process_start_timestamp_seconds{@}) * 1000",
            title="{{job}}: a process started", color="blue", value_is_time=True,
        ),
    ),
    rows=(_PROCESSES, _PACE, _STATE),
)  # fmt: skip
