"""`memory_ran_out`: a call ran out of memory."""

from collections.abc import Iterator

from jaxobs.facts.errors import OutOfMemory
from jaxobs.findings.cases import Case, Scene
from jaxobs.recorder.oom_texts import human

NAME = "memory_ran_out"
NEEDS = Scene
FOLLOWS = ("array_leak", "executable_leak")


def find(scene: Scene) -> Iterator[Case]:
    """A case for each function."""
    latest: dict[str, OutOfMemory] = {}
    counts: dict[str, int] = {}
    for event in scene.out_of_memory:
        counts[event.function] = counts.get(event.function, 0) + 1
        if event.causes or event.function not in latest:
            latest[event.function] = event
    for function, event in latest.items():
        yield _case(event, counts[function])


def _case(event: OutOfMemory, count: int) -> Case:
    device = f" on {event.device}" if event.device else ""
    wanted = f" when it needed {human(event.wanted_bytes)}" if event.wanted_bytes is not None else ""
    times = f" {count:,} times" if count > 1 else ""
    cause = event.causes[0] if event.causes else None
    why = f" {cause.summary}" if cause is not None else ""
    return Case(
        function=event.function,
        severity="critical",
        summary=f"`{event.function}` ran out of memory{device}{times}{wanted}.{why}",
        advice=cause.advice if cause is not None else "Read the report that the event `out_of_memory` names.",
        where=event.call_site,
        count=count,
        bytes=event.wanted_bytes,
        since=event.time,
        evidence=[*(cause.evidence if cause is not None else ()), f"Report: {event.report}" if event.report else ""],
        data={"device": event.device, "stage": event.stage, "cause": cause.cause if cause is not None else None},
    )
