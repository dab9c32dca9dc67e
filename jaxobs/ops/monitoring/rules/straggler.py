"""Processes that are slower than the others of their job, or hold them up."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train"}


def _steps(own: str, count: str = "0+120x120") -> dict[str, str]:
    """Three processes that make 120 steps a minute; the last takes seconds of its own for them."""
    found = {}
    for instance, seconds in (("a", "0+30x120"), ("b", "0+30x120"), ("c", own)):
        whose = f'job="train", instance="{instance}:9464", loop="train"'
        found[f"jax_step_seconds_sum{{{whose}}}"] = seconds
        found[f"jax_step_seconds_count{{{whose}}}"] = count if instance == "c" else "0+120x120"
    return found


def _runs(*names: str) -> dict[str, str]:
    """The runs that these processes belong to."""
    return {
        f'jax_run_info{{job="train", instance="{instance}:9464", run_id="{run}", last_exit=""}}': "1x120"
        for instance, run in zip("abc", names, strict=True)
    }


_FINDING = 'jax_findings{job="train", instance="a:9464", finding="straggler"}'

ALERT = Alert(
    name="JaxStraggler",
    severity="warning",
    concern="performance",
    summary="Processes are slower than the others of their job, or delay them.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} take longer for their steps than the "
        "median process, or the others wait for them."
    ),
    expr=(
        "count by (job) (job_instance_run_id_loop:jax_step_seconds:ratio_median30m{@} > <factor>)\n"
        'or sum by (job) (jax_findings{@, finding="straggler"}) > 0'
    ),
    for_="10m",
    keep_firing_for="15m",
    thresholds={
        "factor": Threshold(
            value=1.25, unit="factor", least=1.01, most=100,
            why=(
                "Processes of one job with equal devices differ by a few per cent; the finding "
                "`straggler` uses a quarter as well."
            ),
        )
    },
    panel=("oncall", "stragglers"),
    runbook=Runbook(
        meaning=(
            "The typical step time of some processes is more than `<factor>` that of the median "
            "process of the same run and loop; or the finding `straggler` is active, which also "
            "detects a process that the others wait for in their collectives, where all step times "
            "are alike."
        ),
        impact=(
            "In a job with collectives, every step takes as long as the slowest process: one host "
            "slows the whole job down."
        ),
        diagnosis=(
            Step(
                do="See which processes are slower.",
                query="job_instance_run_id_loop:jax_step_seconds:ratio_median30m{@} > 1.1",
                answers=(
                    ("some instances", "Their hosts: continue."),
                    ("nothing", "All keep in step: the finding names the one that they wait for, see below."),
                ),
            ),
            Step(
                do="Ask process 0, which compares them.",
                command="jaxobs explain http://HOST_OF_PROCESS_0:9464",
                answers=(
                    (
                        "`The others wait for process N`, with a line",
                        "That line of its program takes the time: loading, logging, garbage collection.",
                    ),
                    ("`Process N takes ...`", "Its device or host is slower."),
                ),
            ),
            Step(
                do="See whether its device is throttled.",
                query="job_instance_device_reason:accelerator_throttled:ratio15m{@} > 0",
                answers=(
                    ("that instance", "JaxDeviceThrottled has the steps."),
                    ("nothing", "Its host: cores, memory, network, neighbours."),
                ),
            ),
            Step(
                do="See whether it waits for its own input.",
                query="job_instance:jax_input_wait:ratio30m{@}",
                answers=(("higher than the others'", "Its loader: JaxInputBound."),),
            ),
        ),
        mitigation=(
            (
                "If a host is slow, take it out and restart from the last checkpoint: this pays off "
                "within hours."
            ),
            ("If it is a line of the program that only one process runs (logging, saving), move it "
            "off the main thread."),
            (
                "If it is Python's garbage collector, collect at the same step on all processes "
                "(`gc.freeze()`, then manually)."
            ),
        ),
        look_alikes=(
            ("All are equally slower than last week", "no process differs", "JaxStepTimeRegression"),
            ("One makes no progress at all", "its steps do not rise", "JaxStepsStalled"),
            (
                "Unequal work by design",
                "a pipeline's stages, or other devices",
                "raise the factor, or give the stages different loop names",
            ),
        ),
        evidence=(
            "The instances and their factors, from the first query.",
            "The text of the finding, with its line.",
            "Clocks, temperature and links of the devices of that host.",
        ),
        verify=(
            "No instance is above `<factor>` on the panel, the finding has ended, and the step time "
            "of the job has dropped."
        ),
        gpu=(
            "Compare clocks and power of the slow GPU with its neighbours'; on a GPU with fewer "
            "NVLinks, only collectives are slow."
        ),
        tpu="A chip with a bad link slows all: JaxDeviceLinkFault.",
    ),
    cases=(
        Case(kind="firing", at="45m", series=_steps("0+39x120"), fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="firing", at="22m", series={_FINDING: "0x10 2x60"}, fires=(Fired(labels=_LABELS, values=("2",)),)),
        Case(kind="pending", at="18m", series={_FINDING: "0x10 2x60"}),
        Case(kind="healthy", at="45m", series=_steps("0+39x120") | _runs("r", "r", "s")),
        Case(
            kind="firing", at="45m", series=_steps("0+39x120") | _runs("r", "r", "r"),
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="healthy", at="45m", series=_steps("0+39x120") | _runs("", "", "")),
        Case(kind="healthy", at="30m", series={_FINDING: "0x60"}),
        Case(kind="healthy", at="60m", series=_steps("0+35x120")),
        Case(kind="recovering", at="55m", series={_FINDING: "0x10 1x25 0x60"}),
        Case(kind="target_gone", at="70m", series={_FINDING: "0x10 1x25 stale"}),
    ),
    needs="several_processes",
)  # fmt: skip
