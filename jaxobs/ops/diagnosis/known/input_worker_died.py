"""A worker process of the input pipeline died."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="A worker process of the input pipeline died",
    impact=ENDED,
    signs=(
        Line(r"DataLoader worker \(pid\(?s?\)? ?[\d, ]+\)? (?:is killed|exited)"),
        Line(
            "[Gg]rain.{0,60}(?:worker )?process(?:es)? .{0,60}(?:died|exited|was terminated|failed|"
            r"crashed)|[Ww]orker process \d+ .{0,60}(?:died|exited unexpectedly|was killed|"
            "terminated (?:abruptly|unexpectedly))"
        ),
        Line("BrokenProcessPool|A process in the process pool was terminated abruptly"),
        Line("[Bb]us error encountered in worker|[Ww]orkers? (?:are|is|ran) out of shared memory"),
    ),
    follows=("host_out_of_memory", "killed", "disk_full", "nccl_start"),
    fix=(
        "Look for what ended the worker: memory of the host or /dev/shm, an exception in a "
        "transform, a record that cannot be decoded."
    ),
)
