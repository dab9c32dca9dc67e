"""A function that takes longer to compile than in the last weeks."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_NOW = "job_function:jax_function_compile_seconds:mean{@fn}"
_USUAL = "job_function:jax_function_compile_seconds:median13d_mean{@fn}"
_WHOSE = '{job="train", instance="a:9464", function="f", phase="compile"}'
_SUM, _COUNT = f"jax_function_compile_seconds_sum{_WHOSE}", f"jax_function_compile_seconds_count{_WHOSE}"
_LABELS = {"job": "train", "function": "f"}

ALERT = Alert(
    name="JaxCompileTimeRegression",
    severity="warning",
    concern="performance",
    summary="A function takes longer to compile than in the last weeks.",
    description=(
        "{{ $labels.function }} of {{ $labels.job }} takes {{ $value | humanizeDuration }} to compile, far more than "
        "was usual in the two weeks before today."
    ),
    expr=f"{_NOW} > <factor> * {_USUAL}\nand\n{_NOW} - {_USUAL} > <seconds>",
    for_="2h",
    labels={"phase": "compile"},
    thresholds={
        "factor": Threshold(
            value=1.5,
            unit="factor",
            least=1.05,
            most=100,
            why="Compile times of one program differ by some 20 % with the load of the host; half as much again is "
            "no chance.",
        ),
        "seconds": Threshold(
            value=10,
            unit="seconds",
            least=0,
            most=86_400,
            why="What is lost at each start of each process; below this nobody notices.",
        ),
    },
    panel=("debug", "compile_seconds"),
    runbook=Runbook(
        meaning=(
            "Over the processes that run now, compiling the function takes more than `<factor>` of its median of the "
            "two weeks before today, and more than `<seconds>` longer. What was loaded from the persistent cache does "
            "not count. A function without a history of more than a day has no usual time, and no alert."
        ),
        impact=(
            "Each start and each new shape take longer: restarts after a failure, deployments and scaling up are slow, "
            "and a job with many restarts loses as many times the difference."
        ),
        diagnosis=(
            Step(
                do="See when it rose, over two weeks.",
                query="job_function:jax_function_compile_seconds:mean{@fn}",
                answers=(
                    ("a step at a deployment", "The program or its versions changed: the next two steps tell which."),
                    ("slowly, over days", "The host has less to give (more processes on it), or the model grows."),
                ),
            ),
            Step(
                do="See whether versions changed.",
                query="count by (job, jax, jaxlib, plugin, driver) (jax_build_info{@})",
                answers=(
                    (
                        "two rows for one job, or another one than last week",
                        "A release of the compiler: try the old one.",
                    ),
                    ("the same versions", "The program itself grew."),
                ),
            ),
            Step(
                do="See what the program consists of.",
                query="sum by (function, kind) (jax_program_instructions{@fn})",
                answers=(
                    (
                        "many times as many instructions as before",
                        "A loop was unrolled: use `jax.lax.scan` over the layers.",
                    ),
                    (
                        "much the same",
                        "The compiler tries more: look for autotuning in the log (`slow_operation_alarm`).",
                    ),
                ),
            ),
            Step(
                do="Compare an event log of before with one of now.",
                command="jaxobs compare OLD.jsonl NEW.jsonl",
                answers=(
                    (
                        "which functions and phases differ, and by how much",
                        "The difference in `compile` is this alert's.",
                    ),
                ),
            ),
        ),
        mitigation=(
            "Roll back the deployment or the version that brought it, if starts matter now.",
            "Use the persistent cache, filled ahead with `jaxobs cache warm EVENTLOG`: then nobody waits for it.",
            "Scan over layers rather than unrolling them; pass large constants as arguments.",
        ),
        look_alikes=(
            ("Compilations are more, not longer", "the number per hour rose", "JaxRecompilationStorm"),
            ("One compilation does not end at all", "it is in progress for an hour", "JaxCompilationStuck"),
            (
                "Programs that used to be loaded are compiled",
                "`result` is `miss` where it was `hit`",
                "JaxPersistentCacheLostAfterRestart",
            ),
        ),
        evidence=(
            "The panel over two weeks, with the deployments marked.",
            "The output of `jaxobs compare`.",
            "The versions of jax, jaxlib and the plugin, before and now.",
        ),
        verify="The mean is back at the old value after the next start. After a week the new time counts as the "
        "usual one.",
        gpu="Autotuning of convolutions and fusions is part of compiling: it takes longer on a GPU that is busy, "
        "and its cache is beside the persistent one.",
    ),
    cases=(
        Case(
            kind="firing",
            interval="1h",
            at="33h",
            series={_SUM: "20x29 32x20", _COUNT: "1x60"},
            fires=(Fired(labels=_LABELS, values=("32s",)),),
        ),
        Case(kind="pending", interval="1h", at="31h", series={_SUM: "20x29 32x20", _COUNT: "1x60"}),
        Case(kind="healthy", interval="1h", at="40h", series={_SUM: "10x29 19x20", _COUNT: "1x60"}),
        Case(kind="healthy", interval="1h", at="40h", series={_SUM: "60x29 75x20", _COUNT: "1x60"}),
        Case(kind="healthy", interval="1h", at="14h", series={_SUM: "20x3 60x20", _COUNT: "1x60"}),
        Case(kind="recovering", interval="1h", at="36h", series={_SUM: "20x29 32x3 20x20", _COUNT: "1x60"}),
        Case(kind="target_gone", interval="1h", at="36h", series={_SUM: "20x29 32x3 stale", _COUNT: "1x33 stale"}),
        Case(
            kind="counter_reset",
            interval="1h",
            at="33h",
            series={_SUM: "60x29 32x20", _COUNT: "3x29 1x20"},
            fires=(Fired(labels=_LABELS, values=("32s",)),),
        ),
    ),
)
