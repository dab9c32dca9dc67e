"""`contended_lock`: the requests of a service wait for a lock while another thread works and no device computes."""

from collections.abc import Iterator

from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration

NAME = "contended_lock"
NEEDS = Scene

LEAST_SHARE, WARNING_SHARE = 0.2, 0.5
"""Shares of the time in which the service answers requests."""
LEAST_SECONDS = 5.0

_AT = {"jax": "in JAX or on a device", "lock": "at a lock", "host": "not seen in JAX"}


def find(scene: Scene) -> Iterator[Case]:
    """A case for each line that takes a lock; not if requests merely hand the lock on, and none of them works."""
    lines = () if scene.snapshot.wall is None else scene.snapshot.wall.answering
    for lock in lines:
        if lock.held_at is None or lock.seconds < LEAST_SECONDS or lock.share < LEAST_SHARE:
            continue
        yield Case(
            subject=lock.line,
            severity="warning" if lock.share >= WARNING_SHARE else "info",
            summary=(
                f"Requests waited for a lock at {lock.line} for {duration(lock.seconds)}, {lock.share:.0%} of the time "
                "in which the service answered requests. No device computed meanwhile; another thread most often "
                f"worked at {lock.held_at}."
            ),
            advice=(
                f"Check whether the thread at {lock.held_at} holds the lock while it works. If so, copy the data that "
                "the thread needs while it holds the lock, compute without the lock, and take it again to store the "
                "result."
            ),
            where=lock.line,
            seconds=lock.seconds,
            evidence=[f"{at.line}: {duration(at.seconds)}, {at.share:.0%} of the time, {_AT[at.at]}" for at in lines],
            data={"share": lock.share},
        )
