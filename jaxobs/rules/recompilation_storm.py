"""A function that compiles again and again."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_compilations_total{job="train", instance="a:9464", function="f", cause="shape", cache="miss"}'
_LABELS = {"job": "train", "instance": "a:9464", "function": "f"}

ALERT = Alert(
    name="JaxRecompilationStorm",
    severity="warning",
    concern="performance",
    summary="A function compiles again and again.",
    description=(
        '{{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) was compiled {{ printf "%.0f" $value }} '
        "times again in the last 30 minutes."
    ),
    expr=(
        "sum without (cause, cache) (\n"
        '  increase(jax_compilations_total{@fn, cause!="first_call", function!="<eager>"}[30m])\n'
        ") > <compilations>"
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
            why="A program that has warmed up compiles nothing; an evaluation and a last short batch bring a few.",
        )
    },
    panel=("debug", "recompilations"),
    runbook=Runbook(
        meaning=(
            "A jitted function got arguments, static values or a context that it was not compiled for, more than "
            "`<compilations>` times in half an hour. The first compilation of each function does not count, nor do "
            "operations outside any function."
        ),
        impact=(
            "Each compilation stops the step or the request that needs it, for 0.1 s to 30 min, and on other processes "
            "of the job all that wait for it. Each leaves a program behind, so memory grows as well."
        ),
        diagnosis=(
            Step(
                do="Ask which causes it has.",
                query='sum by (function, cause) (increase(jax_compilations_total{@fn, cause!="first_call"}[30m])) > 0',
                answers=(
                    ("`shape`", "Batches or sequences of other lengths: pad them, or drop the last short one."),
                    (
                        "`weak_type`, `dtype`",
                        "A Python number is in the place of an array, or types change: `jnp.asarray(x, dtype)`.",
                    ),
                    ("`static_argument`", "A value that changes is static, or an object that does not compare equal."),
                    ("`new_function`", "A lambda, partial or closure is jitted anew in each call: jit it once."),
                    (
                        "`sharding`, `placement`, `layout`",
                        "Arrays lie elsewhere than before: place them before the first step.",
                    ),
                    (
                        "`context`, `jit_options`",
                        "A flag or context manager is switched on and off around calls: set it once.",
                    ),
                    ("`cache_cleared`", "`jax.clear_caches()`, or more programs than JAX keeps."),
                ),
            ),
            Step(
                do="Let the process say it in a sentence: the argument, before and after, and what to do.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("`rows` float32[32,4] -> float32[31,4]", "The last batch is short: drop or pad it."),
                    ("a finding, such as `functions_made_again`", "It names the line to change, and the change."),
                ),
            ),
            Step(
                do="See whether the compilations come from the persistent cache, and are cheap.",
                query='sum by (cache) (increase(jax_compilations_total{@fn, cause!="first_call"}[30m]))',
                answers=(
                    ("mostly `hit`", "Each costs only its loading, some 10 ms: it can wait until the morning."),
                    ("mostly `miss` or `disabled`", "Each is compiled in full."),
                ),
            ),
        ),
        mitigation=(
            "If a deployment brought it, roll back: recompilations come from the program, not from the machine.",
            "Pad to a few sizes, and drop the last short batch (`drop_remainder=True`).",
            "Make what changes in each call an argument rather than static, and jit functions once, outside of loops.",
            "If requests suffer, compile the sizes ahead with `jaxobs.warmup`.",
        ),
        look_alikes=(
            (
                "Many functions compile once each",
                "`cause` is `first_call`",
                "a start; JaxColdRequestsHigh if requests wait",
            ),
            ("Sizes have no end", "the finding `unbounded_shapes` stands", "JaxUnboundedShapes"),
            (
                "The same few compilations take longer",
                "their number is as usual, seconds are not",
                "JaxCompileTimeRegression",
            ),
            ("Slow calls without a compilation", "`jax_fastpath_misses_total` rises", "docs/fast-path.md"),
        ),
        evidence=(
            "The output of `jaxobs explain http://HOST:9464`.",
            "The event log, or the page that `jaxobs report EVENTLOG` makes of it.",
            "The version that was deployed last, and when.",
        ),
        verify="The panel stays at 0 over half an hour of steady work; the alert ends 10 minutes after it fell below.",
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
