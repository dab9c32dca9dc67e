"""Another process holds the TPU."""

from __future__ import annotations

from jaxobs.ops.diagnosis.evidence import LINE, PROGRESS, START, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line


def _is_of_a_child(evidence: Evidence, sign: Observation) -> bool:
    """Whether a process that trains writes it between its steps: a child of it, which needs no accelerator, says so."""
    if sign.kind != LINE or sign.name or "Not attempting to load" not in sign.text:
        return False
    before = [
        each
        for each in evidence.of_kind(PROGRESS, START)
        if (each.source, each.process) == (sign.source, sign.process) and each.place < sign.place
    ]
    return bool(before) and max(before, key=lambda each: each.place).kind == PROGRESS


KNOWN = Knowledge(
    title="Another process holds the accelerator",
    impact=ENDED,
    signs=(
        Line(
            r"The TPU is already in use by (?:a )?process|libtpu\.so\b.{0,20} already in use", info=True, passes=False
        ),
        Line("libtpu_lockfile", info=True),
        Line(r"Device or resource busy.{0,80}/dev/(?:accel|vfio)|/dev/(?:accel|vfio)\S* .{0,60}busy", info=True),
        Line(r"libtpu.{0,40}lock ?file", info=True),
        Line(r"(?:ioctl|mmap|DMA|TPU|[Aa]ccel\w*) .{0,200}Device or resource busy"),
        Line(
            r"CUDA-capable devices?(?: is| are|\(s\) is/are) busy or unavailable|CUDA_ERROR_DEVICE_(?:UNAVAILABLE|"
            r"ALREADY_IN_USE)|cudaErrorDevice(?:sUnavailable|AlreadyInUse)",
        ),
    ),
    fix=(
        "End the process that the text names (`sudo lsof -w /dev/accel0` or `/dev/vfio/0`); if "
        "none is left, remove /tmp/libtpu_lockfile."
    ),
    ordinary=_is_of_a_child,
)
