"""Processes wait for each other in a collective."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, STUCK, SYMPTOM, Alert, Event, Knowledge, Line, Raised

KNOWN = Knowledge(
    title="Processes waited for each other in a collective",
    impact=STUCK,
    role=SYMPTOM,
    signs=(
        Line(r"may be stuck\. Expected \d+ threads to join the rendezvous, but not all"),
        Line("Termination timeout for .{0,300} exceeded|rendezvous.{0,300}Termination timeout"),
        Line("Megascale detects a hang|HANG_DETECTED", passes=False),
        Line("HangWatchdog"),
        Line("Watchdog caught collective operation timeout|collective operation timeout"),
        Line(r"Timed out waiting \d+ ?ms for (?:recv|send|\w+) operation|Gloo \w+ failed: .{0,200}[Rr]ead timeout"),
        Raised(
            frames=r"orbax/[^\n]*\Z",
            about=r"^(?:[\w.]+: )*(?:TimeoutError|BarrierTimeout\w*)|[Tt]imed out (?:after|while)",
        ),
        Event("finding:stuck"),
        Line(
            "[Bb]arrier .{0,120}timed out|Barrier timed out|sync_global_devices.{0,200}(?:timed out|DEADLINE_EXCEEDED)"
        ),
        Line(r"is invoked by the task, but the service thinks .{0,40}instance\. One task is probably way too"),
        Line("(?:[Bb]ackground|[Aa]sync)[ _]save.{0,200}[Bb]arrier timed out", passes=False),
        Alert("JaxProcessStuck"),
        Alert("JaxStepsStalled"),
    ),
    follows=(
        ANY_END,
        "killed",
        "native_crash",
        "programs_diverge",
        "process_stuck",
        "straggler",
        "tpu_halted",
        "kernel_fault",
        "gpu_hardware",
        "network_fault",
        "peer_lost",
        "storage_unavailable",
        "input_worker_died",
        "nccl_failure",
        "version_skew",
        "inputs_differ",
        "coordinator_unreachable",
        "process_silent",
    ),
    needs=("log", "event-log", "target", "prometheus"),
    fix="Find the process that is missing in the collective.",
    collect=(
        "Of every process: the last step, the stacks (`py-spy dump --pid PID`, or jaxobs' live "
        "page), and the log. The one that is not inside JAX is the one to look at."
    ),
    runbook="JaxProcessStuck",
)
