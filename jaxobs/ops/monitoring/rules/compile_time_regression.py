"""A function that takes longer to compile than in the last weeks."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_NOW = "job_function:jax_function_compile_seconds:mean{@fn}"
_USUAL = "job_function:jax_function_compile_seconds:median13d_mean{@fn}"
_WHOSE = '{job="train", instance="a:9464", function="f", phase="compile"}'
_SUM, _COUNT = f"jax_function_compile_seconds_sum{_WHOSE}", f"jax_function_compile_seconds_count{_WHOSE}"
_LABELS = {"job": "train", "function": "f"}


def _compiles(*parts: tuple[str, str]) -> dict[str, str]:
    """One compilation an hour, in parts: the seconds and their number, each from 0 on as after a restart."""
    return {_SUM: " ".join(part[0] for part in parts), _COUNT: " ".join(part[1] for part in parts)}


ALERT = Alert(
    name="JaxCompileTimeRegression",
    severity="warning",
    concern="performance",
    summary="A function takes longer to compile than in the last weeks.",
    description=(
        "{{ $labels.function }} of {{ $labels.job }} takes {{ $value | humanizeDuration }} to "
        "compile, far more than its median in the two weeks before today."
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
            why="Compile times of one program vary by some 20 % with the load of the host; an "
            "increase by half is not chance.",
        ),
        "seconds": Threshold(
            value=10,
            unit="seconds",
            least=0,
            most=86_400,
            why="The time lost at each start of each process; nobody notices less than this.",
        ),
    },
    panel=("debug", "compile_seconds"),
    runbook=Runbook(
        meaning=(
            "Over the processes that run now, compiling the function takes more than `<factor>` of "
            "its median of the two weeks before today, and more than `<seconds>` longer. Loads from "
            "the persistent cache do not count. A function with less than 40 hours of history has no "
            "median and no alert. Nor has one whose mean rose by half before in these two weeks: such times say "
            "nothing, as where different programs share the names of job and function; so the alert ends a day after "
            "the change."
        ),
        impact=(
            "Every start and every new shape takes longer: restarts after a failure, deployments and "
            "scaling up are slow, and a job with many restarts loses the difference each time."
        ),
        diagnosis=(
            Step(
                do="See when it rose, over two weeks.",
                query="job_function:jax_function_compile_seconds:mean{@fn}",
                answers=(
                    ("a step at a deployment", ("The program or its versions changed: the next two steps show which.")),
                    ("slowly, over days", ("The host has less capacity (more processes on it), or the model grows.")),
                ),
            ),
            Step(
                do="See whether versions changed.",
                query="count by (job, jax, jaxlib, plugin, driver) (jax_build_info{@})",
                answers=(
                    (
                        "two rows for one job, or another row than last week",
                        "A new version of the compiler: try the old one.",
                    ),
                    ("the same versions", "The program itself grew."),
                ),
            ),
            Step(
                do="See what the program consists of.",
                query="sum by (function, kind) (last_over_time(jax_program_instructions{@fn}[5m]))",
                answers=(
                    (
                        "many times as many instructions as before",
                        "A loop was unrolled: use `jax.lax.scan` over the layers.",
                    ),
                    (
                        "about the same",
                        ("The compiler tries more variants: look for autotuning in the log (`slow_operation_alarm`)."),
                    ),
                ),
            ),
            Step(
                do="Compare an event log from before with a current one.",
                command="jaxobs compare OLD.jsonl NEW.jsonl",
                answers=(
                    (
                        "which functions and phases differ, and by how much",
                        "A difference in `compile` is what this alert reports.",
                    ),
                ),
            ),
        ),
        mitigation=(
            "If starts matter now, roll back the deployment or the version that caused it.",
            "Use the persistent cache, filled ahead of time with `jaxobs cache warm EVENTLOG "
            "--script FILE`: then nobody waits.",
            "Scan over layers instead of unrolling them; pass large constants as arguments.",
        ),
        look_alikes=(
            ("More compilations, but not longer ones", "the number per hour rose", "JaxRecompilationStorm"),
            ("One compilation does not end at all", "it is in progress for an hour", "JaxCompilationStuck"),
            (
                "Programs that were loaded before are now compiled",
                "`result` is `miss` where it was `hit`",
                "JaxPersistentCacheLostAfterRestart",
            ),
        ),
        evidence=(
            "The panel over two weeks, with the deployments marked.",
            "The output of `jaxobs compare`.",
            "The versions of jax, jaxlib and the plugin, before and now.",
        ),
        verify="The mean is back at the old value after the next start. After a week, the new time "
        "becomes the baseline.",
        gpu="Autotuning of convolutions and fusions is part of compiling: it takes longer on a busy "
        "GPU. Its cache is separate from the persistent cache.",
    ),
    cases=(
        Case(
            kind="firing",
            interval="1h",
            at="45h",
            series=_compiles(("20+20x29", "1+1x29"), ("40+40x30", "1+1x30")),
            fires=(Fired(labels=_LABELS, values=("33.33s",)),),
        ),
        Case(
            kind="pending",
            interval="1h",
            at="43h",
            series=_compiles(("20+20x29", "1+1x29"), ("40+40x30", "1+1x30")),
        ),
        Case(kind="healthy", interval="1h", at="60h", series=_compiles(("10+10x29", "1+1x29"), ("19+19x50", "1+1x50"))),
        Case(kind="healthy", interval="1h", at="70h", series=_compiles(("60+60x29", "1+1x29"), ("75+75x50", "1+1x50"))),
        Case(kind="healthy", interval="1h", at="14h", series=_compiles(("20+20x3", "1+1x3"), ("60+60x20", "1+1x20"))),
        Case(
            kind="healthy",
            interval="1h",
            at="70h",
            series=_compiles(("20+20x9", "1+1x9"), ("40+40x9", "1+1x9"), ("20+20x9", "1+1x9"), ("40+40x50", "1+1x50")),
        ),
        Case(
            kind="recovering",
            interval="1h",
            at="85h",
            series=_compiles(("20+20x29", "1+1x29"), ("40+40x24", "1+1x24"), ("20+20x40", "1+1x40")),
        ),
        Case(
            kind="target_gone",
            interval="1h",
            at="80h",
            series={
                name: f"{values} stale"
                for name, values in _compiles(("20+20x29", "1+1x29"), ("40+40x30", "1+1x30")).items()
            },
        ),
        Case(
            kind="counter_reset", interval="1h", at="70h", series={_SUM: "60+60x29 60+60x40", _COUNT: "3+3x29 3+3x40"}
        ),
    ),
)
