"""Processes of one job that run different versions."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step


def _process(instance: str, jax: str, values: str = "1x90", run: str = "r") -> dict[str, str]:
    target = f'job="train", instance="{instance}:9464"'
    whose = f'{target}, jaxobs="1", python="3.11.7"'
    return {
        f'jax_build_info{{{whose}, jax="{jax}", jaxlib="{jax}", plugin="", driver="", runtime=""}}': values,
        f'jax_run_info{{{target}, run_id="{run}", last_exit=""}}': values,
    }


def _replica(instance: str, jax: str, began: str = "-90000x200") -> dict[str, str]:
    target = f'job="train", instance="{instance}:9464"'
    return {
        **_process(instance, jax, "1x200", run=""),
        f"jax_requests_in_flight{{{target}}}": "0x200",
        f"jax_process_start_timestamp_seconds{{{target}}}": began,
    }


ALERT = Alert(
    name="JaxVersionSkew",
    severity="warning",
    concern="availability",
    summary="Processes of one job run different versions.",
    description=(
        "The processes of {{ $labels.job }} run {{ $value | humanize }} different combinations of jax, jaxlib, plugin "
        "and runtime."
    ),
    expr=(
        "max by (job) (count by (job, run_id) (count by (job, run_id, jax, jaxlib, plugin, runtime) (\n"
        '  jax_build_info{@} * on (job, instance) group_left (run_id) jax_run_info{@, run_id!=""}\n'
        "))) > 1\n"
        "or\n"
        "count by (job) (count by (job, jax, jaxlib, plugin, runtime) (\n"
        "  jax_build_info{@} and on (job, instance) jax_requests_in_flight{@}\n"
        ")) > 1\n"
        "unless on (job) time() - jax_process_start_timestamp_seconds{@} < 86400"
    ),
    for_="30m",
    panel=("fleet", "versions"),
    runbook=Runbook(
        meaning=(
            "For half an hour, the processes of one run (`run_id` of `jax_run_info`), or the replicas of a service, "
            "have not all had the same versions of jax, jaxlib, the accelerator's plugin and its runtime, and none "
            "of them is younger than an hour: no deployment is under way that would explain it. Independent runs "
            "under one name may differ."
        ),
        impact=(
            "In a job with collectives, processes of different versions may compile different "
            "programs and hang, or compute wrong numbers. Among replicas of a service, answers and "
            "speed differ, and the persistent cache is filled twice."
        ),
        diagnosis=(
            Step(
                do="See which versions there are, and on how many processes.",
                query="count by (job, jax, jaxlib, plugin, runtime) (jax_build_info{@})",
                answers=(
                    ("old and new, and the numbers change", "A deployment in progress: wait."),
                    ("old and new, unchanged", "A deployment that stopped half-way."),
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
                    ("`process_count` above 1", "One job: different versions are dangerous."),
                    ("`process_count` is 1", "Replicas: harmless, but not intended."),
                ),
            ),
            Step(
                do="See whether programs already differ.",
                command="jaxobs explain http://HOST_OF_PROCESS_0:9464",
                answers=(
                    ("`diverging_programs`", "JaxProgramDivergence: stop the job."),
                    ("no such finding", "It can wait for a convenient restart."),
                ),
            ),
        ),
        mitigation=(
            "Let the deployment finish, or roll it back.",
            "Pin image and packages, and restart the processes that differ.",
            "If you want two versions in one job, as in an experiment, give them different `job` labels.",
        ),
        look_alikes=(
            ("A recent deployment", "processes are younger than a quarter of an hour", "JaxDeploymentUnderWay"),
            ("Equal versions, different programs", "one combination only", "JaxProgramDivergence"),
        ),
        evidence=(
            "The table of versions from the fleet dashboard.",
            "The image's digest on both kinds of hosts.",
        ),
        verify="One combination of versions is left for the job.",
        tpu="`runtime` is libtpu: nodes of different age may bring different ones.",
    ),
    cases=(
        Case(
            kind="firing", at="45m", series=_process("a", "0.10.2") | _process("b", "0.10.1"),
            fires=(Fired(labels={"job": "train"}, values=("2",)),),
        ),
        Case(kind="pending", at="25m", series=_process("a", "0.10.2") | _process("b", "0.10.1")),
        Case(kind="healthy", at="60m", series=_process("a", "0.10.2") | _process("b", "0.10.2")),
        Case(kind="healthy", at="60m", series=_process("a", "0.10.2") | _process("b", "0.10.1", run="s")),
        Case(kind="healthy", at="60m", series=_process("a", "0.10.2", run="") | _process("b", "0.10.1", run="")),
        Case(
            kind="firing", at="45m", series=_replica("a", "0.10.2") | _replica("b", "0.10.1"),
            fires=(Fired(labels={"job": "train"}, values=("2",)),),
        ),
        Case(kind="healthy", at="45m", series=_replica("a", "0.10.2") | _replica("b", "0.10.1", "-82800x200")),
        Case(
            kind="firing", at="100m", series=_replica("a", "0.10.2") | _replica("b", "0.10.1", "-82800x200"),
            fires=(Fired(labels={"job": "train"}, values=("2",)),),
        ),
        Case(kind="healthy", at="45m", series=_replica("a", "0.10.2") | _replica("b", "0.10.2")),
        Case(kind="recovering", at="60m", series=_process("a", "0.10.2") | _process("b", "0.10.1", "1x40 stale")),
        Case(
            kind="target_gone", at="60m",
            series=_process("a", "0.10.2", "1x40 stale") | _process("b", "0.10.1", "1x40 stale"),
        ),
    ),
)  # fmt: skip
