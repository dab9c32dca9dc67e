"""A process hears that another one of its job is gone. It is a victim."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, SYMPTOM, Knowledge, Line

KNOWN = Knowledge(
    title="Another process of the job was lost",
    impact=ENDED,
    role=SYMPTOM,
    signs=(
        Line("[Tt]he following tasks are unhealthy|stopped sending heartbeats", passes=False),
        Line("another task died|(?:different|newer) incarnation"),
        Line(r"but the service thinks .{0,40}instance\. The service or task probably restarted"),
        Line("NCCL WARN .{0,80}(?:Connection closed by remote peer|Connection reset by peer)"),
        Line("JAX distributed service detected fatal errors"),
        Line(
            r"(?:ORTE|PRTE) has lost communication with|Error recorded from \w+: Socket closed|"
            "may be due to a preemption in a connected worker",
            info=True,
        ),
        Line(r"Task with incarnation id \S+ is not connected"),
        Line("[Hh]eartbeat timeout|lame workers found"),
        Line(
            "(?:gloo|Gloo|NCCL|nccl|coordination|Connection closed by peer|"
            "ncclRemoteError).{0,300}(?:Connection (?:reset|closed|refused)|Socket closed|"
            r"remote process exited)|Connection closed by peer \[",
            unless="Failed to retrieve preemption notice",
        ),
        Line(
            "leader .{0,200} (?:is|has) (?:gone|died)|coordination service (?:has )?(?:stopped|"
            "shut down)|[Pp]olled an error notification from coordination service|"
            "Failed to send RPC to coordination service|Error reported from Coordination Service|"
            "/job:jax_worker/.{0,40}(?:heartbeat|unhealthy)"
        ),
    ),
    follows=(
        ANY_END,
        "killed",
        "native_crash",
        "network_fault",
        "nccl_failure",
        "process_silent",
        "programs_diverge",
    ),
    fix="Find the process that ended first: its log, its exit code, its host.",
    collect=(
        "The log and the exit code of the process that is named as unhealthy or lost, and the "
        "kernel's messages of its host: this one is only a victim."
    ),
    runbook="JaxFleetRestarts",
)
