"""The platform has no place for the job."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The platform has no machine for the job",
    impact=ENDED,
    signs=(
        Line(
            r"FailedScheduling|\d+/\d+ nodes are available|Unschedulable|didn't trigger scale-up",
            info=True,
            passes=False,
        ),
        Line(
            r"couldn't assign flavors|insufficient (?:unused )?quota|[Ww]orkload .{0,60}is inadmissible|"
            r"ResourcesUnavailableError|Failed to (?:provision all possible|acquire resources in all)|"
            r"\bOutOf(?:cpu|memory|pods|[\w.-]+/\w+)\b|didn't have enough resource|"
            r"[Ii]nsufficient (?:reserved )?capacity|FAILED_TO_START_DUE_TO_NO_CAPACITY|[Qq]uota '?\w+'? exhausted|"
            r"VcpuLimitExceeded|"
            r"There is not enough capacity|do not have sufficient \S+ capacity|"
            r"LimitExceeded\) when calling the RunInst|"
            r"QUOTA_EXCEEDED|VM_MIN_COUNT_NOT_REACHED|accelerator \S+ was not found in zone|"
            r"No available node types can fulfill|resource request cannot be scheduled|"
            r"autoscaler error: .{0,80}cannot be scheduled",
            info=True,
            passes=False,
        ),
        Line(
            r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available to fulfill|"
            r"[Nn]o more capacity in the zone|"
            r"InsufficientInstanceCapacity|[Qq]uota\b.{0,160}\bexceeded|[Qq]uota exceeded for|exceeded quota:|STOCKOUT",
            unless="[Dd]isk",
            info=True,
            passes=False,
        ),
        Line(
            r"Requested node configuration is not available|More processors requested than permitted|"
            r"not enough slots available|Unable to allocate resources|Unable to create step for job|"
            r"Batch job submission failed|ReqNodeNotAvail|Nodes required for job are DOWN|"
            r"Job violates accounting/QOS policy|\((?:QOS|Assoc)\w+(?:Limit|PerUser|"
            r"PerJob|PerAccount)\)|"
            r"Invalid (?:partition|generic resource|account)",
            unless="Address already in use|Connection refused|[Tt]imed out",
            info=True,
            passes=False,
        ),
    ),
    refuted_by=(Line(r"Successfully assigned|Started container|\bScheduled\b|Created container", info=True),),
    fix=(
        "See what the job asks for and what is free (`kubectl describe pod`, `sinfo`): end jobs that hold devices, "
        "correct selectors and tolerations, or ask for quota or another zone."
    ),
)
