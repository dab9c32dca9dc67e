"""Processes did not find each other when the job started."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import PROGRESS, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, Knowledge, Line, Raised

_TOO_LATE = re.compile(r"must be called before any JAX|should only be called once")
_REFUSED = ("failed to connect to all addresses", "Connection refused", "Failed to connect to remote host")


def _at_the_start(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A connection that is refused after steps were made shows that a process was lost; a call too late is no wait."""
    stepped = {(each.source, each.process) for each in evidence.of_kind(PROGRESS)}
    return [
        each
        for each in signs
        if not _TOO_LATE.search(each.text)
        and ((each.source, each.process) not in stepped or not any(one in each.text for one in _REFUSED))
    ]


KNOWN = Knowledge(
    title="The processes of the job did not find each other at the start",
    impact=ENDED,
    signs=(
        Line(
            "Barrier timed out.{0,40}Wait_for_all_tasks_to_register|"
            "Wait_for_all_tasks_to_register.{0,120}(?:timed out|DEADLINE)",
            passes=False,
        ),
        Line(
            r"timed out .{0,40}(?:tasks|workers|processes|clients) to (?:connect|register|join)|\d+/\d+ clients joined"
        ),
        Line("Stopping coordination service as cluster registration failed"),
        Line(
            "(?:PjRT_Client_Connect|PJRT_Client_Connect).{0,200}[Tt]imed out|[Tt]imed out.{0,200}P[jJ]RT_Client_Connect"
        ),
        Line("CoordinationService/RegisterTask", passes=False),
        Line("failed to connect to (?:the )?coordinat"),
        Line(r"host topology with \d+ missing hosts, but \d+ hosts in total"),
        Line("Failed to get global TPU topology|slice_builder_worker_addresses|Expected \\d+ worker addresses, got"),
        Line(
            r"coordinator_address should be defined|Number of processes must be defined|"
            r"The process id of the current process must be defined|automatic detection of process_id is not possible"
        ),
        Line(
            r"Unexpected task registered|task\w* (?:id|index)?.{0,40}out of (?:range|bounds)|"
            r"process_id .{0,60}num_processes"
        ),
        Line(
            r"(?:coordinat|[Rr]endezvous|MASTER_ADDR|jax_worker|distributed).{0,200}(?:Name or service not known|"
            r"DNS resolution failed|[Nn]ame resolution|getaddrinfo)|DNS resolution failed for"
        ),
        Line(
            r"client socket has timed out after \w+ while trying to connect|Timed out initializing process group|"
            r"Gloo connectFullMesh failed|[Ww]aiting for all (?:tasks|workers|processes) to (?:connect|register).{0,60}"
            r"(?:timed out|failed)|(?:TPU_WORKER_HOSTNAMES|TPU_WORKER_ID|TPU_PROCESS_ADDRESSES|"
            r"MEGASCALE_\w+).{0,80}(?:not set|missing|must|invalid|KeyError)|KeyError: '(?:TPU_WORKER_|"
            r"MEGASCALE_|SLURM_|OMPI_)"
        ),
        Line("failed to connect to all addresses|Connection refused.{0,80}coordinat|Failed to connect to remote host"),
        Raised(
            frames=r"[/\\]jax/_src/(?:distributed|clusters/\w+)\.py\Z",
            about="^(?:[\\w.]+: )*(?:Value|Runtime|Type|Key|Index|Xla\\w+|Jax\\w+)Error",
        ),
        Raised(
            frames=r"[/\\]jax/_src/clusters/\w+\.py",
            about=r"^[\w.]*(?:Connection|Connect|Read|HTTP|URL)(?:Error|Timeout)\b",
        ),
        Line(r"Getting topolog\w+.{0,120}(?:timed out|DEADLINE_EXCEEDED)|Timed out.{0,60}topolog"),
        Line(
            r"(?:[Uu]nexpected|[Ii]nvalid|[Uu]nknown|could not determine) (?:TPU )?(?:worker|coordinator|process) "
            r"(?:host ?name|address|id|ip)s?\b"
        ),
        Line(
            r"Getting \w+ topolog\w+.{0,120}(?:timed out|DEADLINE)|topology/.{0,80}duration|already connected|"
            r"out of range, num_processes|gaierror"
        ),
        Line(r"[Ff]ailed to connect to (?:the )?coordinat|(?:ORTE|PRTE|mpirun) .{0,40}unable to"),
    ),
    narrow=_at_the_start,
    follows=(
        ANY_END,
        "killed",
        "native_crash",
        "address_in_use",
        "jaxlib_mismatch",
        "plugin_mismatch",
        "unknown_xla_flag",
        "program_error",
        "disk_full",
        "no_accelerator",
    ),
    fix=(
        "Start every process with the same coordinator address and process count, and check that "
        "each reaches that port (`nc -vz HOST PORT`). For slow starts: initialization_timeout. On a TPU, start it on "
        "all hosts of the slice, and check TPU_WORKER_HOSTNAMES and TPU_PROCESS_ADDRESSES."
    ),
    collect="The logs of the processes that did not register, from their first line.",
    runbook="JaxProcessCountMismatch",
)
