"""The build of JAX needs instructions that this CPU does not have."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="This build of JAX needs instructions that the CPU of the machine does not have",
    impact=ENDED,
    signs=(
        Line(
            r"was built using \w+ instructions, which your CPU|compiled to use \w+ instructions, but these aren't avail"
        ),
        Line(r"SIGILL|Illegal instruction", weak=True, info=True, passes=False),
    ),
    rivals=("cache_other_cpu",),
    fix=(
        "Run it on a machine with AVX; let the virtual machine show its host's CPU; on an ARM machine use a Python for "
        "ARM, not one for x86; or build jaxlib from source."
    ),
    collect="The model and the flags of that CPU (`lscpu`), and where it crashed (`python -X faulthandler`).",
)
