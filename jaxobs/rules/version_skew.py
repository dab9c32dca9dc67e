"""Processes of one job that run different versions."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step


def _process(instance: str, jax: str, values: str = "1x90") -> dict[str, str]:
    whose = f'job="train", instance="{instance}:9464", jaxobs="1", python="3.11.7"'
    return {f'jax_build_info{{{whose}, jax="{jax}", jaxlib="{jax}", plugin="", driver="", runtime=""}}': values}


ALERT = Alert(
    name="JaxVersionSkew",
    severity="warning",
    concern="availability",
    summary="Processes of one job run different versions.",
    description=(
        "The processes of {{ $labels.job }} run {{ $value | humanize }} different combinations of jax, jaxlib, plugin "
        "and runtime."
    ),
    expr="count by (job) (count by (job, jax, jaxlib, plugin, runtime) (jax_build_info{@})) > 1",
    for_="30m",
    panel=("fleet", "versions"),
    runbook=Runbook(
        meaning=(
            "For half an hour the processes of one job have not all had the same versions of jax, jaxlib, the "
            "accelerator's plugin "
            "and its runtime. A deployment that replaces one process after the other does that for minutes, not for "
            "so long."
        ),
        impact=(
            "In a job with collectives, processes of unequal versions may compile unequal programs and hang, or "
            "compute wrong "
            "numbers. Among replicas of a service, answers and speed differ, and the persistent cache is filled twice."
        ),
        diagnosis=(
            Step(
                do="See which versions there are, and on how many processes.",
                query="count by (job, jax, jaxlib, plugin, runtime) (jax_build_info{@})",
                answers=(
                    ("old and new, and the numbers change", "A deployment that goes on: wait."),
                    ("old and new, at rest", "A deployment that stopped half-way."),
                    ("one process differs", "A host with an old image, or a package installed by hand."),
                ),
            ),
            Step(
                do="See which instances have the rare one.",
                query="jax_build_info{@}",
                answers=(("the instances", "Replace those."),),
            ),
            Step(
                do="See whether they are one JAX job, or many that share a label.",
                query="count by (job, process_count) (jax_process_info{@})",
                answers=(
                    ("`process_count` above 1", "One job: unequal versions are dangerous."),
                    ("`process_count` is 1", "Replicas: harmless, but untidy."),
                ),
            ),
            Step(
                do="See whether programs differ already.",
                command="jaxobs explain http://HOST_OF_PROCESS_0:9464",
                answers=(
                    ("`diverging_programs`", "JaxProgramDivergence: stop the job."),
                    ("nothing of it", "There is time until a restart that suits."),
                ),
            ),
        ),
        mitigation=(
            "Let the deployment end, or take it back.",
            "Pin image and packages, and start the processes that differ anew.",
            "If two versions in one job are wanted, as in a trial, give them different `job` labels.",
        ),
        look_alikes=(
            ("A deployment just now", "processes are younger than a quarter of an hour", "JaxDeploymentUnderWay"),
            ("Equal versions, unequal programs", "one combination only", "JaxProgramDivergence"),
        ),
        evidence=(
            "The table of versions from the dashboard of the fleet.",
            "The image's digest on both kinds of hosts.",
        ),
        verify="One combination of versions is left for the job.",
        tpu="`runtime` is libtpu: nodes of unequal age may bring unequal ones.",
    ),
    cases=(
        Case(
            kind="firing", at="45m", series=_process("a", "0.10.2") | _process("b", "0.10.1"),
            fires=(Fired(labels={"job": "train"}, values=("2",)),),
        ),
        Case(kind="pending", at="25m", series=_process("a", "0.10.2") | _process("b", "0.10.1")),
        Case(kind="healthy", at="60m", series=_process("a", "0.10.2") | _process("b", "0.10.2")),
        Case(kind="recovering", at="60m", series=_process("a", "0.10.2") | _process("b", "0.10.1", "1x40 stale")),
        Case(
            kind="target_gone", at="60m",
            series=_process("a", "0.10.2", "1x40 stale") | _process("b", "0.10.1", "1x40 stale"),
        ),
    ),
)  # fmt: skip
