"""The scheduler ended the job at its time limit."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The scheduler ended the job at its time limit",
    impact=ENDED,
    signs=(
        Line("DUE TO TIME LIMIT", info=True, passes=False),
        Line(
            "DeadlineExceeded.{0,80}(?:active longer|activeDeadlineSeconds)|active longer than specified deadline",
            info=True,
            passes=False,
        ),
        Line(
            r"job killed: walltime|walltime .{0,40}exceeded|TERM_RUNLIMIT|maximum run(?:time| duration)|"
            r"exceeded its time limit|hitting max wall clock limit|MaxRuntimeExceeded|exceeded MaxRuntimeInSeconds",
            info=True,
            passes=False,
        ),
    ),
    rivals=("preemption",),
    fix="Ask for more time, or save before the limit and go on from there.",
)
