"""Arguments that take ever new sizes, values or forms."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_FINDING = 'jax_findings{job="train", instance="a:9464", finding="unbounded_shapes"}'
_COMPILED = 'jax_compilations_total{job="train", instance="a:9464", function="f", cause="shape", cache="miss"}'
_LABELS = {"job": "train", "instance": "a:9464", "finding": "unbounded_shapes"}


def _every(minutes: int, times: int = 12) -> str:
    return " ".join(f"{count}x{minutes - 1}" for count in range(times))


ALERT = Alert(
    name="JaxUnboundedShapes",
    severity="warning",
    concern="performance",
    summary="A function keeps compiling for new sizes or values, without a bound.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) has {{ $value | humanize }} findings `{{ "
        "$labels.finding }}`, and keeps compiling: the values that change have no bound."
    ),
    expr=(
        'jax_findings{@, finding=~"unbounded_shapes|unbounded_structures|static_values|eager_recompiles"} > 0\n'
        "and on (job, instance)\n"
        "sum without (function, cause, cache) (\n"
        '  increase(jax_compilations_total{@, cause!="first_call"}[1h])\n'
        ") > <compilations>"
    ),
    for_="10m",
    keep_firing_for="15m",
    labels={"phase": "compile"},
    thresholds={
        "compilations": Threshold(
            value=3,
            unit="count",
            least=0,
            most=100_000,
            why=(
                "A finding alone may be about a phase that is over; a process that still has the "
                "problem compiles several times an hour."
            ),
        )
    },
    panel=("debug", "causes"),
    runbook=Runbook(
        meaning=(
            "jaxobs detected a dimension, a static argument, a structure or an operation outside any "
            "function that keeps taking new values, and the process compiled more than "
            "`<compilations>` times in the last hour. Unlike a storm, this does not pass: each new "
            "length of a text or batch is one more program."
        ),
        impact=(
            "Requests and steps of a new size wait for a compilation, for as long as the program "
            "runs. The programs are kept: host memory, and on GPUs device memory, grow with their "
            "number until one of them is full."
        ),
        diagnosis=(
            Step(
                do="Ask the process for the argument and for buckets that would fix it.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("`unbounded_shapes`", "The dimension, its sizes and the buckets to pad to."),
                    ("`static_values`", "The argument that should be an array instead of static."),
                    (
                        "`unbounded_structures`",
                        "Keys or lengths of a dictionary, list or tuple that change from call to call.",
                    ),
                    ("`eager_recompiles`", ("The line with operations outside a jitted function: move them into one.")),
                ),
            ),
            Step(
                do="See how fast programs accumulate.",
                query="jax_executables{@}",
                answers=(
                    (
                        "it rises steadily",
                        "Memory runs out next: JaxExecutableLeak and JaxHostMemoryGrowth follow.",
                    ),
                    ("it has stopped rising", "All sizes may have been seen: watch it for an hour."),
                ),
            ),
            Step(
                do="See which functions compile.",
                query='sum by (function, cause) (increase(jax_compilations_total{@fn, cause!="first_call"}[1h])) > 0',
                answers=(("one function with `shape`", "Pad the arguments of this one."),),
            ),
        ),
        mitigation=(
            (
                "Before the call, pad to a fixed set of sizes (powers of two, or the buckets that "
                "`jaxobs explain` suggests)."
            ),
            "Limit the size on arrival: reject or split longer inputs.",
            "Pass changing values as arrays, not as static arguments.",
            "Until then, restart a process before its memory is full; compiled sizes are loaded from "
            "the persistent cache.",
        ),
        look_alikes=(
            (
                "Many recompilations for another cause",
                "the causes are `new_function` or `context`",
                "JaxRecompilationStorm",
            ),
            ("A warm-up over a fixed set of buckets", "it ends by itself, and no finding is active", "docs/warmup.md"),
            (
                "Programs that JAX is made to forget",
                "the finding is `forgotten_programs` or `flip_flop`",
                "docs/findings.md",
            ),
        ),
        evidence=(
            "The finding's text from `jaxobs explain`, with the sizes seen.",
            "The distribution of lengths in the input or in the requests.",
        ),
        verify="`jaxobs explain` marks the finding as over, and the panel shows no `shape` for an "
        "hour of normal traffic.",
    ),
    cases=(
        Case(
            kind="firing",
            series={_FINDING: "0x69 1x60", _COMPILED: _every(15)},
            at="85m",
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", series={_FINDING: "0x69 1x60", _COMPILED: _every(15)}, at="77m"),
        Case(kind="healthy", series={_FINDING: "1x150", _COMPILED: _every(20)}, at="145m"),
        Case(kind="healthy", series={_FINDING: "0x150", _COMPILED: _every(15)}, at="85m"),
        Case(kind="recovering", series={_FINDING: "0x69 1x20 0x60", _COMPILED: _every(15)}, at="120m"),
        Case(kind="target_gone", series={_FINDING: "0x69 1x20 stale", _COMPILED: _every(15, 6) + " stale"}, at="120m"),
        Case(
            kind="counter_reset",
            series={
                _FINDING: "0x69 1x60",
                _COMPILED: " ".join(f"{count}x14" for count in (0, 1, 2, 3, 4, 5, 1, 2, 3, 4)),
            },
            at="110m",
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
)
