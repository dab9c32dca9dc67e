"""Goodput, objectives, throughput, cost and utilization of the accelerators, by job."""

from __future__ import annotations

from jaxobs.ops.monitoring.burn_rates import ERRORS, REMAINING, TARGET
from jaxobs.ops.monitoring.panel_queries import share, steps
from jaxobs.ops.monitoring.panel_types import Annotation, Board, Column, Panel, Row, Target, Variable

_STEPPING = "and on (job) group by (job) (rate(jax_steps_total{@}[$__rate_interval]))"
_GOODPUT = share('jax_time_seconds_total{@, category="step"}', "jax_time_seconds_total{@}", "job")
_DOLLARS = "count by (job) (jax_device_info{@}) * $price / 3600"
"""Cost of all devices of a job, in the price's currency per second."""

CATEGORY_COLORS = {
    "step": "green", "compile": "orange", "trace": "yellow", "cache_load": "light-orange", "input_wait": "purple",
    "checkpoint": "blue", "eval": "light-blue", "transfer": "super-light-purple", "init": "light-yellow",
    "idle": "gray", "unattributed": "super-light-yellow",
}  # fmt: skip

_TIME = Row(
    title="Is the time well used?",
    panels=(
        Panel(
            key="goodput",
            title="Goodput, last 6 h",
            description=(
                "Share of the time that went into steps and evaluations in the last 6 hours, over all processes of a "
                "job, while it trained: what comes before the first steps does not count. The rest is compiling, "
                "waiting for input, checkpoints and idle time. Training reaches 90% or more."
            ),
            kind="stat", unit="percentunit", width=6, height=8, needs="hours", good="high", least=0, most=1, decimals=1,
            alert="JaxGoodputLow",
            targets=(
                Target(expr="max by (job) (job_instance:jax_goodput:ratio6h{@})", legend="{{job}}"),
            ),
        ),
        Panel(
            key="lost_time",
            title="Where the other time goes",
            description=(
                "Share of the processes' time outside of steps, by category; each second is in "
                "exactly one. Compiling belongs at the start; whatever stays high is the first thing "
                "to look into."
            ),
            kind="timeseries", unit="percentunit", width=18, stacked=True, good="none", least=0, most=1,
            colors=CATEGORY_COLORS,
            targets=(
                Target(
                    expr=(
                        'sum by (category) (rate(jax_time_seconds_total{@, category!="step"}[$__rate_interval])) '
                        "/ on () group_left () (sum (rate(jax_time_seconds_total{@}[$__rate_interval])) > 0)"
                    ),
                    legend="{{category}}",
                ),
            ),
        ),
        Panel(
            key="slo_state",
            title="Objectives now",
            description=(
                "The remaining error budget of each objective, and its burn rate in the last hour: "
                "at 1 the budget lasts exactly one period, at 13 a fiftieth of it is spent each "
                "hour. Below 0 the objective is missed. Objectives without events are absent."
            ),
            kind="table", unit="percentunit", width=10, good="high",
            targets=(
                Target(expr=f"max by (job, slo) ({TARGET}{{@}})"),
                Target(expr=f"max by (job, slo) ({REMAINING}{{@}})"),
                Target(
                    expr=(
                        f"max by (job, slo) ({ERRORS.format(window='1h')}{{@}}) "
                        f"/ on (job, slo) (1 - max by (job, slo) ({TARGET}{{@}}) > 0)"
                    )
                ),
            ),
            columns=(
                Column(source="job", title="Job"),
                Column(source="slo", title="Objective"),
                Column(source="A", title="Definition of good", unit="percentunit"),
                Column(source="B", title="Budget left", unit="percentunit"),
                Column(source="C", title="Burn rate, 1 h", unit="short"),
            ),
        ),
        Panel(
            key="error_budget",
            title="Error budgets",
            description=(
                "The remaining error budget of each objective, over the period ending at that time. "
                "A line that falls steeply is a problem now; one below 0 is a missed objective."
            ),
            kind="timeseries", unit="percentunit", width=14, good="high", most=1,
            targets=(Target(expr=f"max by (job, slo) ({REMAINING}{{@}})", legend="{{job}} {{slo}}"),),
        ),
    ),
)  # fmt: skip

_THROUGHPUT = Row(
    title="What comes out",
    panels=(
        Panel(
            key="steps_per_second",
            title="Steps per second",
            description=(
                "Steps of each loop. A step that several processes make together counts once. A drop "
                "is lost throughput, whatever the utilization."
            ),
            kind="timeseries", unit="ops", width=8, needs="steps", good="high", least=0,
            targets=(Target(expr=steps(), legend="{{job}} {{loop}}"),),
        ),
        Panel(
            key="items_per_second",
            title="Samples or tokens per second",
            description=("The items that the program reports for each step, over all processes. "
                        "Independent of the batch size."),
            kind="timeseries", unit="cps", width=8, needs="items", good="high", least=0,
            targets=(
                Target(
                    expr="sum by (job, loop) (rate(jax_step_items_total{@}[$__rate_interval]))",
                    legend="{{job}} {{loop}}"
                ),
            ),
        ),
        Panel(
            key="requests_per_second",
            title="Requests per second",
            description=(
                "Completed requests, by outcome. Errors count against the service, client errors do not."
            ),
            kind="timeseries", unit="reqps", width=8, needs="serving", good="none", least=0, stacked=True,
            colors={"ok": "green", "client_error": "yellow", "error": "red", "cancelled": "gray"},
            targets=(
                Target(
                    expr="sum by (outcome) (rate(jax_requests_total{@}[$__rate_interval]))", legend="{{outcome}}"
                ),
            ),
        ),
    ),
)  # fmt: skip

_COST = Row(
    title="What it costs",
    panels=(
        Panel(
            key="cost_per_hour",
            title="Cost per hour",
            description=(
                "All devices that the job's processes can address, at the price chosen above: what "
                "you pay whether they compute or wait."
            ),
            kind="stat", unit="currency", width=4, height=8, good="none", decimals=2,
            targets=(Target(expr="count by (job) (jax_device_info{@}) * $price", legend="{{job}}"),),
        ),
        Panel(
            key="cost_lost",
            title="Lost cost per hour",
            description=(
                "The part of the cost that went into anything but steps: compiling, waiting, "
                "checkpoints, idle time."
            ),
            kind="stat", unit="currency", width=4, height=8, good="none", decimals=2, needs="steps",
            targets=(
                Target(
                    expr=f"count by (job) (jax_device_info{{@}}) * $price * (1 - {_GOODPUT}) {_STEPPING}",
                    legend="{{job}}",
                ),
            ),
        ),
        Panel(
            key="cost_per_step",
            title="Cost per thousand steps",
            description=("Cost of the job's devices, divided by its steps. It rises when steps get "
                        "slower or less frequent."),
            kind="timeseries", unit="currency", width=8, needs="steps", good="low", least=0, decimals=4,
            targets=(
                Target(
                    expr=f"1000 * {_DOLLARS} / on (job) group_right () ({steps()} > 0)", legend="{{job}} {{loop}}"
                ),
            ),
        ),
        Panel(
            key="cost_per_request",
            title="Cost per thousand requests",
            description=(
                "Cost of the job's devices, divided by the requests that it answered. It rises with idle capacity."
            ),
            kind="timeseries", unit="currency", width=8, needs="serving", good="low", least=0, decimals=4,
            targets=(
                Target(
                    expr=(
                        f"1000 * {_DOLLARS} / "
                        '(sum by (job) (rate(jax_requests_total{@, outcome="ok"}[$__rate_interval])) > 0)'
                    ),
                    legend="{{job}}",
                ),
            ),
        ),
    ),
)  # fmt: skip


def _spread(metric: str) -> tuple[Target, ...]:
    return (
        Target(expr=f"max by (job) ({metric}{{@}})", legend="{{job}} highest"),
        Target(expr=f"quantile by (job) (0.5, {metric}{{@}})", legend="{{job}} median"),
        Target(expr=f"min by (job) ({metric}{{@}})", legend="{{job}} lowest"),
    )


_ACCELERATORS = Row(
    title="Accelerators",
    panels=(
        Panel(
            key="devices",
            title="Devices",
            description="Devices that the processes can address, by job and kind.",
            kind="stat", unit="short", width=4, height=8, good="none",
            targets=(Target(expr="count by (job, kind) (jax_device_info{@})", legend="{{job}} {{kind}}"),),
        ),
        Panel(
            key="utilization",
            title="Utilization of the accelerators",
            description=(
                "Share of the driver's sample period in which any program ran: highest, median and "
                "lowest device of each job. A high value means that devices are busy, not that they "
                "are used well: see the next panel. A low line far below the others is an idle "
                "device."
            ),
            kind="timeseries", unit="percentunit", width=7, needs="accelerator", good="high", least=0, most=1,
            targets=_spread("accelerator_utilization_ratio"),
        ),
        Panel(
            key="mfu",
            title="Model FLOP utilization",
            description=(
                "What the steps compute relative to the device's peak, if that is known: highest, "
                "median and lowest process. 30% to 60% is typical of large language models."
            ),
            kind="timeseries", unit="percentunit", width=7, needs="accelerator", good="high", least=0, most=1,
            targets=_spread("jax_step_mfu_ratio"),
        ),
        Panel(
            key="power",
            title="Power of the boards",
            description="Power of all boards of a job together; the electricity bill follows it.",
            kind="timeseries", unit="watt", width=6, needs="gpu", good="none", least=0,
            targets=(Target(expr="sum by (job) (accelerator_power_watts{@})", legend="{{job}}"),),
        ),
    ),
)  # fmt: skip

BOARD = Board(
    name="executive",
    title="JAX: executive",
    description=("What the accelerators deliver for their cost, by job: goodput, service levels, "
                "throughput, cost."),
    variables=(Variable(name="price", label="Price per device and hour", query="", default="accelerator_hour"),),
    annotations=(
        Annotation(
            name="Process starts", expr="max by (job) (jax_process_start_timestamp_seconds{@}) * 1000",
            title="{{job}}: a process started", color="blue", value_is_time=True,
        ),
    ),
    rows=(_TIME, _THROUGHPUT, _COST, _ACCELERATORS),
)  # fmt: skip
