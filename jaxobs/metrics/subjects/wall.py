"""The wall time by category."""

from collections.abc import Iterator

from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.wall import CHECKPOINT_OPERATIONS, TIME_CATEGORIES
from jaxobs.metrics.metric import Labels, Metric, Value

RUN_LOSSES = ("down", "redone", "at_risk")


def _goodput(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    if snapshot.wall is not None and snapshot.wall.goodput is not None:
        yield ("process",), snapshot.wall.goodput
    if snapshot.wall is not None and snapshot.wall.run is not None and snapshot.wall.run.goodput is not None:
        yield ("run",), snapshot.wall.run.goodput


def _run_losses(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    run = None if snapshot.wall is None else snapshot.wall.run
    if run is not None:
        yield ("down",), run.down_seconds
        if run.redone_seconds is not None:
            yield ("redone",), run.redone_seconds
            yield ("at_risk",), run.unsaved_seconds


def _seconds(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    """Yields all categories, but for `transfer` if nothing counts it: see the setting `transfers`."""
    for category, seconds in snapshot.wall.counted.items() if snapshot.wall is not None else ():
        if category != "transfer" or seconds > 0:
            yield (category,), seconds


METRICS = (
    Metric("jax_time_seconds_total", "Time since the process was started, each second in exactly one category.",
           _seconds, ("category",), values=(("category", TIME_CATEGORIES),)),
    Metric("jax_goodput_ratio",
           "Share of the time in steps: of this process, and of its run, where lost work does not count.", _goodput,
           ("scope",), values=(("scope", ("process", "run")),)),
    Metric("jax_run_lost_seconds",
           "Time that a run with a run_id lost: without a process (down), in repeated steps; at_risk is unsaved now.",
           _run_losses, ("cause",), values=(("cause", RUN_LOSSES),)),
    Metric("jax_checkpoint_seconds",
           ("Time of checkpoints: `save` is the time that a save blocked the program, `save_async` the whole time of a "
            "save in the background."),
           lambda s: [] if s.wall is None else [((name,), each) for name, each in s.wall.checkpoints.items()],
           ("operation",), kind="histogram", values=(("operation", CHECKPOINT_OPERATIONS),)),
    Metric("jax_checkpointed_bytes_total",
           "Bytes of arrays that Orbax saved and restored, of all processes of a job, reported by its first process.",
           lambda s: [] if s.wall is None else [((name,), each) for name, each in s.wall.checkpoint_bytes.items()],
           ("operation",), values=(("operation", CHECKPOINT_OPERATIONS),)),
    Metric("jax_checkpoint_failures_total",
           ("Checkpoint operations that raised an exception. An asynchronous save raises where the program waits for "
            "the save."),
           lambda s: [] if s.wall is None else [((name,), each) for name, each in s.wall.checkpoint_failures.items()],
           ("operation",), values=(("operation", CHECKPOINT_OPERATIONS),)),
)  # fmt: skip
