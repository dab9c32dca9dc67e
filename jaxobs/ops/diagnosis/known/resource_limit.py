"""The process hit a limit of the operating system."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The process reached a limit of threads, processes or open files",
    impact=ENDED,
    signs=(
        Line(
            r"(?:pthread_create|fork|clone|[Tt]hread\w*|create\w*).{0,80}Resource temporarily unavailable|"
            r"can't start new thread|failed to create (?:new OS )?thread|\[Errno 11\]|"
            r"pthread_create\(\) failed|"
            r"(?:RuntimeError|what\(\)|std::system_error): +Resource temporarily unavailable|"
            r"OMP: (?:Error #34|System error #11)\b"
        ),
        Line(r"Too many open files|\[Errno 24\]|\bEMFILE\b|\bENFILE\b"),
        Line(r"inotify watch limit reached|OpenBLAS blas_thread_init|RLIMIT_(?:NPROC|NOFILE|MEMLOCK)"),
    ),
    fix=(
        "Raise the limit (`ulimit -u`, `ulimit -n`, the container's pids limit), and find what keeps so many: loader "
        "workers, thread pools, files that are never closed."
    ),
)
