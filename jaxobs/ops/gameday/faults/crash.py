"""An exception that nothing catches."""

from __future__ import annotations

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """A record with a label that does not exist."""
    raise ValueError(f"label 17 of record {scene.random.randrange(10_000)} is out of range for 10 classes")


FAULT = Fault(
    title="A label out of range raises ValueError, and the program ends.",
    causes=("program_error",),
    alert="JaxTrainingGone",
    lead=10,
    only="the job has several processes or is 6 h old, and its target is dropped: so not in a rehearsal",
    undo="Fix the record or the check, then restart from the last checkpoint.",
    on_input=inject,
)
