"""The machine was taken away, or its work moved."""

from __future__ import annotations

from jaxobs.ops.diagnosis.evidence import END, LINE, PROGRESS, START, Evidence, Observation, is_before
from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

_ONLY_MENTIONED = (
    r"[Ee]ither\b|(?:may|might|could) (?:be|have)|e\.g\.|such as|preempted(?:/|,? or\b)|"
    r"[Cc]ancelled call|\b0 preempt|PreemptionMode|[Ss]equence group|[Rr]equest\b|KV cache|expected (?:upon|at|"
    r"on)|[Ff]ailed to (?:retrieve|get|read|query|poll)|"
    r"[Rr]egister|[Ll]isten|[Ee]nabl|[Hh]andler|[Ww]atching for|\bif\b"
)
"""It is one of several things that may have happened, or something is prepared for it."""
_NOT_YET = (
    r"(?:[Ww]hen|[Ii]f|[Oo]nce|[Uu]ntil|[Ii]n case)\b.{0,30}SIGTERM|SIGTERM received\W{1,3}(?:[Ff]alse|no|0)\b|"
    r"\bEXPECTED_TERMINATION\b"
)
"""No signal has come, or a node that nobody uses goes away."""


def _was_survived(evidence: Evidence, sign: Observation) -> bool:
    """Whether the job starts again behind a line of a log, and comes further or serves; or ends as it should."""
    if sign.kind != LINE:
        return False
    if not any(each.shows(sign) for each in KNOWN.signs if not each.weak) and _ended_well(evidence, sign):
        return True
    own = [each for each in evidence.of_kind(PROGRESS, START) if each.source == sign.source]
    again = min((each.place for each in own if each.kind == START and each.place > sign.place), default=None)
    reached = max((each.value or 0.0 for each in own if each.place < sign.place), default=0.0)
    return again is not None and any(
        each.kind == PROGRESS and each.place > again and (each.value is None or each.value > reached) for each in own
    )


def _ended_well(evidence: Evidence, sign: Observation) -> bool:
    """Whether the event log of the process has its end by itself: it handled the signal, whoever sent it."""
    return any(
        each.name.startswith("exit:normal") and each.process == sign.process and is_before(each, sign) is not True
        for each in evidence.of_kind(END)
    )


KNOWN = Knowledge(
    title="The platform preempted the machine",
    impact=ENDED,
    signs=(
        Line(
            "[Pp]reempt(?:ion)? (?:notice|signal|warning|event)|(?:has been|was|being|"
            r"is) preempted\b|\bPreempted\b|\bPREEMPTED\b|imminent node shutdown|[Ii]nterruption notice",
            unless=_ONLY_MENTIONED,
            unless_followed=r"(?s)[Rr]esum(?:ing|ed) from.*\b(\d[\w.]*)/(?:\1)\b",
            info=True,
            passes=False,
        ),
        Line(
            "(?:DUE|due) (?:TO|to) PREEMPTION|Node is shutting down, evicting pods|TerminationByKubelet|"
            "TaintManagerEviction|"
            r"[Ss]pot (?:instance )?interruption|compute\.instances\.preempted",
            info=True,
            passes=False,
        ),
        Line(
            r"EvictionByEvictionAPI|Eviction API: evicting|^evicting pod \S+/|PreemptionByScheduler|"
            "[Pp]reempting to accommodate a higher priority pod|[Pp]reempted in order to admit|"
            r"deleting pod for node scale down|EvictedDueTo(?!NodeFailures)\w+|Exceeded the PodsReady timeout|"
            r"\"EventType\": ?\"(?:Preempt|Terminate)\"|INTERRUPTED_BY_NO_CAPACITY|"
            r"Host EC2 (?:\(instance \S+\) )?[Tt]erminated|"
            "instance-(?:terminated|stopped|hibernated)-(?:by-price|no-capacity|capacity-oversubscribed)",
            info=True,
            passes=False,
        ),
        Line(
            r"[Tt]ermination (?:is imminent|notice)|(?:[Ii]nstance|[Mm]achine|VM|[Nn]ode) (?:is |was |has been )?"
            r"(?:marked|scheduled|selected) for (?:termination|reclamation|interruption)|"
            r"(?:[Ss]pot|[Pp]reemptible) (?:instance|VM|machine|node)s? (?:\S+ )?(?:is being |was |has been |will be )"
            r"(?:terminated|reclaimed|interrupted|evicted|revoked)",
            unless=rf"\b[Nn]o\b|\bnot\b|[Pp]oll|{_ONLY_MENTIONED}",
            info=True,
            passes=False,
        ),
        Line(
            "(?:TERMINATE|MIGRATE)_ON_HOST_MAINTENANCE|[Mm]aintenance event|DisruptionTarget|"
            "(?:[Hh]ost|[Nn]ode|[Uu]pcoming|[Ii]mminent|[Ee]nter(?:s|ed|ing)|[Ii]n|[Dd]uring|[Ff]or|[Dd]ue to) "
            "(?:the |a )?maintenance window|(?:[Ss]cheduled|[Uu]nplanned|[Ii]mminent|[Ff]or|[Dd]ue to|[Bb]ecause of) "
            "(?:the |a )?(?:host|node|system|hardware) maintenance",
            unless=rf"\b[Nn]o\b.{{0,20}}maintenance|[Pp]olling|\bNONE\b|\b[Nn]ext\b|{_ONLY_MENTIONED}",
            info=True,
            passes=False,
        ),
        Line("Preemption sync barrier failed", weak=True),
        Line(
            r"SIGTERM (?:caught|received)|(?:[Rr]eceived|[Cc]aught|got) (?:signal )?SIGTERM|^Terminated$|"
            r"CANCELLED AT [\d:T-]+ \*\*\*",
            unless=_NOT_YET,
            weak=True,
            info=True,
            passes=False,
        ),
        Event("exit:signal:SIGTERM", weak=True),
    ),
    rivals=("host_out_of_memory",),
    ordinary=_was_survived,
    fix=(
        "Nothing is broken in the program: restart from the last checkpoint. Save when the "
        "notice comes: check multihost_utils.reached_preemption_sync_point in each step."
    ),
    collect=(
        "The events of the platform for that machine (`kubectl get events`, the cloud's audit "
        "log, `sacct -j JOB`): was it preempted?"
    ),
    runbook="JaxFleetRestarts",
)
