"""A process crashed in native code."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, SYMPTOM, Fatal, Knowledge, Line

KNOWN = Knowledge(
    title="A process crashed in native code",
    impact=ENDED,
    role=SYMPTOM,
    general=1,
    signs=(
        Line(
            r"Segmentation fault|SIGSEGV|[Ss]ignal:? (?:4|6|7|8|11)\b|"
            r"[Ee]xit(?:ed)?(?: with)?(?: exit)?[ -]?(?:[Cc]ode|"
            r"status)?[:= ]*\(?139\b",
            passes=False,
            info=True,
        ),
        Line("Fatal Python error: (?!Aborted)", passes=False),
        Line("Check failed: ", passes=False),
        Fatal(),
        Line(r"\*\*\* SIG(?:ABRT|SEGV|BUS|ILL|FPE|TRAP)\b|\*\*\* (?:Process received signal|Aborted at)", passes=False),
        Line(
            r"terminate called (?:after|without)|LLVM (?:ERROR|Fatal Error)\b|double free or corruption|"
            r"free\(\): invalid|malloc\(\): |"
            r"corrupted (?:size|double-linked)|stack smashing detected|munmap_chunk\(\)|\(core dumped\)|"
            r"dumped core|Bus error|"
            r"Floating point exception|trap invalid opcode|segfault at [0-9a-f]+|^Aborted$|\bAbort trap: \d|"
            r"\bline \d+: +\d+ (?:Aborted|Trace/breakpoint trap)\b|^zsh: (?:abort|trace trap|bus error)\b|"
            r"failed assertion `|: Assertion `.{1,200}' failed|^Assertion failed: \(",
            passes=False,
            info=True,
        ),
        Line("SIGILL|Illegal instruction", passes=False),
        Line(
            r"[Ee]xit(?:ed)?(?: with)?(?: exit)?[ -]?(?:[Cc]ode|status)?[:= ]*\(?13[45]\b|"
            r"Aborted \(core dumped\)|SIGABRT|Fatal Python error: Aborted",
            passes=False,
            info=True,
        ),
    ),
    follows=(
        ANY_END,
        "peer_lost",
        "coordinator_unreachable",
        "unknown_xla_flag",
        "host_out_of_memory",
        "device_out_of_memory",
        "gpu_hardware",
        "kernel_fault",
        "cache_other_cpu",
        "cpu_unsupported",
        "collective_stuck",
        "cuda_library_mismatch",
        "programs_diverge",
        "compile_failed",
        "plugin_mismatch",
        "resource_limit",
        "no_accelerator",
        "tpu_halted",
        "address_in_use",
        "disk_full",
        "nccl_failure",
        "killed",
    ),
    fix="Run it with `python -X faulthandler` to see where.",
    collect=(
        "The lines above the crash, the stacks (`python -X faulthandler`), the core dump, and "
        "the kernel's messages of that host."
    ),
)
