"""Shardings, meshes or devices do not fit."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="Shardings do not fit: the mesh, the devices, or the sizes of the axes",
    impact=ENDED,
    signs=(
        Line("Received incompatible devices for jitted computation|does not evenly divide the dimension size"),
        Line(
            "was given the sharding of .{0,300}which implies that|"
            r"should be divisible by \d+, but it is equal to"
        ),
        Line(
            r"Number of devices \d+ must (?:be|equal)|(?:mesh|Mesh) .{0,100}(?:requires|must equal|"
            "does not match).{0,60}device"
        ),
        Line(r"cannot reshape array of size \d+ into shape", code=r"devices\(\)|[Mm]esh"),
    ),
    fix=(
        "Make the sizes of sharded axes multiples of the mesh's axes, and put all arguments on "
        "one mesh; check that the job got as many devices as its mesh asks for."
    ),
    runbook="JaxFunctionErrors",
)
