"""jax.distributed.initialize came after the backend was used."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="jax.distributed.initialize was called after JAX had used a device",
    impact=ENDED,
    signs=(
        Line(r"jax\.distributed\.initialize\(\) must be called before any JAX"),
        Line(r"distributed\.initialize should only be called once"),
    ),
    fix="Call it first, before importing any library that makes an array or asks for devices.",
)
