"""Processes did not find each other when the job started."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ANY_END, ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The processes of the job did not find each other at the start",
    impact=ENDED,
    signs=(
        Line(
            "Barrier timed out.{0,40}Wait_for_all_tasks_to_register|"
            "Wait_for_all_tasks_to_register.{0,120}(?:timed out|DEADLINE)",
            passes=False,
        ),
        Line("Stopping coordination service as cluster registration failed"),
        Line(
            "(?:PjRT_Client_Connect|PJRT_Client_Connect).{0,200}[Tt]imed out|[Tt]imed out.{0,200}P[jJ]RT_Client_Connect"
        ),
        Line("CoordinationService/RegisterTask", passes=False),
        Line("failed to connect to (?:the )?coordinat"),
        Line(r"Getting topolog\w+.{0,120}(?:timed out|DEADLINE_EXCEEDED)|Timed out.{0,60}topolog"),
    ),
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
    ),
    fix=(
        "Start every process with the same coordinator address and process count, and check that "
        "each reaches that port (`nc -vz HOST PORT`). For slow starts: initialization_timeout."
    ),
    collect="The logs of the processes that did not register, from their first line.",
    runbook="JaxProcessCountMismatch",
)
