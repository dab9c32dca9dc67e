"""A process reports that another one failed, and no more."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, SYMPTOM, Knowledge, Line

KNOWN = Knowledge(
    title="A process reports that another one failed, and not why",
    impact=ENDED,
    role=SYMPTOM,
    general=2,
    signs=(
        Line("[Ss]ee (?:the )?root cause above|[Ss]ee (?:the )?(?:errors?|logs?) above"),
        Line(
            "(?:ChildFailed|WorkerCrashed|ActorDied|RayActor|EngineDead|ProcessExited|"
            r"CalledProcess)Error\b"
        ),
        Line(
            "(?:[Ww]orker|[Aa]ctor|[Ss]ubprocess|[Cc]hild process|[Ee]ngine core|"
            "[Rr]ank) .{0,60}(?:died|has died|crashed|failed to start|exited) .{0,40}(?:unexpectedly|"
            "with (?:exit )?code [1-9])"
        ),
        Line(
            r"\bhas failed because \d+ .{0,40}(?:replica|pod|worker)|(?:JobSet|TFJob|PyTorchJob|MPIJob|RayJob|"
            r"Job) has failed|"
            r"BackoffLimitExceeded|[Rr]eached the specified backoff limit|FailedJobs|CrashLoopBackOff|"
            r"Back-off restarting failed container",
            info=True,
            passes=False,
        ),
        Line(r"^MPI_ABORT was invoked on rank \d|^Primary job +terminated normally, but \d+ process returned"),
        Line("CANCELLED AT .{0,40}DUE TO TASK FAILURE"),
        Line("recvmsg:Connection reset by peer|BrokenPipeError|Broken pipe"),
    ),
    follows=(
        ANY_END,
        "killed",
        "native_crash",
        "peer_lost",
        "input_worker_died",
        "collective_stuck",
        "programs_diverge",
    ),
    fix="Read the first error in the log of the process that failed.",
    collect=("The whole log of the process that failed first, from its start: what is here only points to it."),
    runbook="JaxFunctionErrors",
)
