"""Cold requests: few have to wait for a compilation."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Guide, Objective
from jaxobs.ops.monitoring.promql import increase
from jaxobs.ops.monitoring.rule_types import Step

_COLD = increase('jax_requests_total{@, cold="true"}')
_ALL = increase('jax_requests_total{@, cold=~"true|false"}')
_WARMED_UP = "(time() - jax_process_start_timestamp_seconds{@} > 1200)"

OBJECTIVE = Objective(
    name="cold-requests",
    title="Requests without a compilation",
    description="Nothing compiles inside a request, once its process is a quarter of an hour old.",
    denominator="It is a share of the requests to such processes: a start compiles.",
    absent="A job without requests is not counted.",
    service="serving",
    target=Decimal("0.99"),
    bad=f"sum by (job) (({_COLD}) and on (job, instance) {_WARMED_UP})",
    total=f"sum by (job) (({_ALL}) and on (job, instance) {_WARMED_UP})",
    unit="requests",
    least=Decimal(100),
    needs="serving",
    guide=Guide(
        impact="These callers wait seconds to minutes for an answer that takes milliseconds.",
        diagnosis=(
            Step(
                do="See what compiles, and why.",
                query='sum by (job, function, cause) (increase(jax_compilations_total{@}[1h])) > 0',
                answers=(
                    ("`first_call` after a start", "The process takes requests before it is warm: warm it up."),
                    ("`shape`", "Inputs have sizes that were not compiled: pad them to buckets."),
                    ("`new_function`", "The handler re-creates a jitted function: jit outside of it."),
                ),
            ),
            Step(
                do="Ask the process for the reason.",
                command="jaxobs explain http://HOST:9464",
                answers=(("Before and after of an argument", "That is the size to warm up, or to pad away."),),
            ),
        ),
        mitigation=(
            "Call `jaxobs.warmup` with the recorded signatures before the process reports ready.",
            "Share a persistent cache, filled by `jaxobs cache warm`.",
            "Pad inputs to a few sizes.",
        ),
        look_alikes=(
            ("Slow requests in the steady state", "`cold` is `false`", "JaxRequestQueueing"),
            ("A new version going out", "the processes are younger than a quarter of an hour",
             "JaxDeploymentUnderWay; it is over when all are warm"),
        ),
    ),
    example=Example(
        good={
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="ok"}': 60,
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="true", outcome="ok"}': 0,
        },
        bad={
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="ok"}': 30,
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="true", outcome="ok"}': 30,
        },
        share=Decimal("0.5"),
        delay=21,
    ),
)  # fmt: skip
