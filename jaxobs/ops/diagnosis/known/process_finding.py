"""A process reports a problem that no other diagnosis is about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import FINDINGS, SLOW, Event, Knowledge, Metric

_OF_SOME_STEPS = re.compile("input_pauses|slow_steps")


def _by_itself(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """What follows from another finding is fixed with that one; what is information counts if each step has it."""
    return [
        each
        for each in signs
        if "caused_by" not in each.data
        and (each.data.get("severity") != "info" or not _OF_SOME_STEPS.search(each.name))
    ]


KNOWN = Knowledge(
    title="A process reports a problem of its own",
    impact=SLOW,
    general=4,
    signs=(
        Event(
            r"finding:(?!\w+_at_start|eager_initialization|long_compilation|no_persistent_cache|placeholder_data).*",
            counted=False,
        ),
        # Which error it was, or which requests fail, a metric does not say.
        Metric(FINDINGS, labels=(("finding", "uncaught_error|memory_ran_out|program_may_not_fit"),), weak=True),
    ),
    narrow=_by_itself,
    follows=("straggler",),
    needs=("event-log", "metrics-file", "target", "prometheus"),
    collect="The event log or the address of the process: `jaxobs explain` shows the finding with its figures.",
    fix="Do what the finding says; `jaxobs explain` shows it with its figures.",
)
