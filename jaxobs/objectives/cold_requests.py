"""Cold requests: few have to wait for a compilation."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.objective_types import Example, Guide, Objective
from jaxobs.promql import increase
from jaxobs.rule_types import Step

OBJECTIVE = Objective(
    name="cold-requests",
    title="Requests without a compilation",
    description="Nothing compiles inside a request.",
    service="serving",
    target=Decimal("0.99"),
    bad=f"""sum by (job) ({increase('jax_requests_total{@, cold="true"}')})""",
    total=f"""sum by (job) ({increase('jax_requests_total{@, cold=~"true|false"}')})""",
    unit="requests",
    least=Decimal(100),
    needs="serving",
    guide=Guide(
        impact="These callers wait seconds to minutes for an answer that takes milliseconds.",
        diagnosis=(
            Step(
                do="Ask what compiles, and why.",
                query='sum by (job, function, cause) (increase(jax_compilations_total{@}[1h])) > 0',
                answers=(
                    ("`first_call` after a start", "The process takes requests before it is warm: warm it up."),
                    ("`shape`", "Inputs come in sizes that nothing was compiled for: pad them to buckets."),
                    ("`new_function`", "The handler jits anew: jit outside of it."),
                ),
            ),
            Step(
                do="Let the process say it in a sentence.",
                command="jaxobs explain http://HOST:9464",
                answers=(("Before and after of an argument", "That is the size to warm up, or to pad away."),),
            ),
        ),
        mitigation=(
            "Call `jaxobs.warmup` with the recorded signatures before the process says that it is ready.",
            "Share a persistent compilation cache, filled by `jaxobs cache warm`.",
            "Pad inputs to a few sizes.",
        ),
        look_alikes=(
            ("Slow requests in the steady state", "`cold` is `false`", "JaxSloRequestLatencyBurn"),
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
    ),
)  # fmt: skip
