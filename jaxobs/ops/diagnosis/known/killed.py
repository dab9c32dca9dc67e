"""A process got SIGKILL; the text does not say from whom."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, NOT_YET_KILLED, SYMPTOM, Knowledge, Line

KNOWN = Knowledge(
    title="A process was killed with SIGKILL",
    impact=ENDED,
    role=SYMPTOM,
    general=2,
    signs=(
        Line(
            r"\"?[Ee]xit(?:ed)?(?: with)?(?: exit)?[ -]?(?:[Cc]ode|status)?[\":= ]*\(?137\b|^Killed$|"
            r"\bline \d+: +\d+ Killed\b|^\w*sh: killed\b|SIGKILL|[Ss]ignal:? 9\b",
            unless=NOT_YET_KILLED,
            info=True,
            passes=False,
        ),
    ),
    follows=(
        ANY_END,
        "host_out_of_memory",
        "preemption",
        "time_limit",
        "disk_full",
        "collective_stuck",
        "process_stuck",
    ),
    fix="Find out who killed it.",
    collect=(
        "The kernel's messages of that host (`dmesg -T`), the state of the pod (`kubectl "
        "describe pod`) or of the job (`sacct`): out of memory, preempted, or ended by somebody?"
    ),
    runbook="JaxFleetRestarts",
)
