"""A function that compiles again and again."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_compilations_total{job="train", instance="a:9464", function="f", cause="shape", cache="miss"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464", "function": "f"}

ALERT = Alert(
    name="JaxRecompilationStorm",
    severity="warning",
    concern="performance",
    summary="A function keeps recompiling.",
    description=(
        "{{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) was recompiled {{ "
        'printf "%.0f" $value }} times in the last 30 minutes.'
    ),
    expr=(
        "sum without (cause, cache) (\n"
        '  increase(jax_compilations_total{@fn, cause!="first_call", function!="<eager>"}[30m])\n'
        ") > <compilations>\n"
        "unless on (job, instance) time() - last_over_time(jax_process_start_timestamp_seconds{@}[30m]) < 2700"
    ),
    for_="5m",
    keep_firing_for="10m",
    labels={"phase": "compile"},
    thresholds={
        "compilations": Threshold(
            value=10,
            unit="count",
            least=1,
            most=100_000,
            why=(
                "A program that has warmed up compiles nothing; an evaluation and a last short batch "
                "add a few compilations."
            ),
        )
    },
    panel=("debug", "recompilations"),
    runbook=Runbook(
        meaning=(
            "A jitted function received arguments, static values or a context that it was not "
            "compiled for, more than `<compilations>` times in half an hour. The first compilation "
            "of each function does not count, nor do operations outside any function."
        ),
        impact=(
            "Each compilation blocks the step or the request that needs it, for 0.1 s to 30 min, and "
            "all other processes of the job that wait for it. Each leaves a program behind, so "
            "memory grows as well."
        ),
        diagnosis=(
            Step(
                do="See which causes it has.",
                query='sum by (function, cause) (increase(jax_compilations_total{@fn, cause!="first_call"}[30m])) > 0',
                answers=(
                    ("`shape`", "Batches or sequences of varying length: pad them, or drop the last short one."),
                    (
                        "`weak_type`, `dtype`",
                        "A Python number instead of an array, or changing types: `jnp.asarray(x, dtype)`.",
                    ),
                    ("`static_argument`", ("A changing value is static, or a static object does not compare equal.")),
                    (
                        "`new_function`",
                        ("A lambda, partial or closure is re-created and jitted in each call: jit it once."),
                    ),
                    (
                        "`sharding`, `placement`, `layout`",
                        "Arrays are placed differently than before: place them before the first step.",
                    ),
                    (
                        "`context`, `jit_options`",
                        "A flag or context manager is switched on and off around calls: set it once.",
                    ),
                    ("`cache_cleared`", "`jax.clear_caches()`, or more programs than JAX keeps."),
                ),
            ),
            Step(
                do="Ask the process for the reason: the argument, before and after, and what to do.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("`rows` float32[32,4] -> float32[31,4]", "The last batch is short: drop or pad it."),
                    ("a finding, such as `recreated_functions`", "It names the line to change, and the change."),
                ),
            ),
            Step(
                do="See whether the programs are loaded from the persistent cache, which is cheap.",
                query='sum by (cache) (increase(jax_compilations_total{@fn, cause!="first_call"}[30m]))',
                answers=(
                    ("mostly `hit`", "Each costs only its loading, some 10 ms: it can wait until the morning."),
                    ("mostly `miss` or `disabled`", "Each is compiled in full."),
                ),
            ),
        ),
        mitigation=(
            "If a deployment caused it, roll back: recompilations come from the program, not from the machine.",
            "Pad to a few sizes, and drop the last short batch (`drop_remainder=True`).",
            ("Pass changing values as arguments instead of static ones, and jit functions once, outside of loops."),
            "If requests suffer, compile the sizes ahead of time with `jaxobs.warmup`.",
        ),
        look_alikes=(
            (
                "Many functions compile once each",
                "`cause` is `first_call`",
                "a start; JaxColdRequestsHigh if requests wait",
            ),
            ("Sizes without a bound", "the finding `unbounded_shapes` is active", "JaxUnboundedShapes"),
            (
                "The same few compilations take longer",
                "their number is normal, their seconds are not",
                "JaxCompileTimeRegression",
            ),
            ("Slow calls without a compilation", "`jax_fastpath_misses_total` rises", "docs/fast-path.md"),
        ),
        evidence=(
            "The output of `jaxobs explain http://HOST:9464`.",
            "The event log, or the page that `jaxobs report EVENTLOG` makes of it.",
            "The latest deployed version, and when it was deployed.",
        ),
        verify="The panel stays at 0 for half an hour of steady work; the alert ends 10 minutes after that.",
    ),
    cases=(
        Case(
            kind="firing",
            series={_SERIES: "0x30 1+1x10 11x40"},
            at="47m",
            fires=(Fired(labels=_LABELS, values=("11",)),),
        ),
        Case(kind="pending", series={_SERIES: "0x30 1+1x10 11x40"}, at="44m"),
        Case(kind="healthy", series={_SERIES: "0x30 1+1x8 9x40 10+1x8 18x40"}, at="97m"),
        Case(kind="healthy", series={_SERIES.replace("shape", "first_call"): "0+1x60"}, at="40m"),
        Case(kind="healthy", series={_SERIES.replace('="f"', '="<eager>"'): "0+1x60"}, at="40m"),
        Case(kind="healthy", series={_SERIES: "0x10 1+1x10 11x90", _START: "0x120"}, at="44m"),
        Case(
            kind="firing",
            series={_SERIES: "0x50 1+1x10 11x90", _START: "0x150"},
            at="70m",
            fires=(Fired(labels=_LABELS, values=("11",)),),
        ),
        Case(kind="healthy", series={_SERIES: "1+3x20 stale", _START: "0x20 stale"}, at="42m"),
        Case(kind="recovering", series={_SERIES: "0x30 1+1x10 11x60"}, at="75m"),
        Case(kind="target_gone", series={_SERIES: "0x30 1+1x10 11x6 stale"}, at="80m"),
        Case(
            kind="counter_reset",
            series={_SERIES: "0x30 1+1x4 0+1x6 6x40"},
            at="48m",
            fires=(Fired(labels=_LABELS, values=("11",)),),
        ),
    ),
)
