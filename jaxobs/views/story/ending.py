"""How a process ended, as far as its events tell: memory that ran out, exceptions that nothing caught, the exit."""

from collections.abc import Iterator

from jaxobs.base.symptoms import symptom_reference
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.process import Exit
from jaxobs.recorder.last_minutes import nonfinite, unfinished
from jaxobs.recorder.oom_texts import human
from jaxobs.views.story.log import ProcessEvents
from jaxobs.views.terminal.lines import Line, Surface, plain, sentence, titled
from jaxobs.views.terminal.text import clock, short

MOST_TOLD = 5
"""Events of each kind that are shown, the latest."""


def outline(process: ProcessEvents) -> tuple[object, ...]:
    """Returns a key that is equal for processes that ended alike."""
    end = process.exit
    return (
        tuple((each.function, each.causes[0].cause if each.causes else None) for each in process.out_of_memory),
        tuple((each.name, each.what, each.step) for each in process.nonfinite),
        tuple((each.error, each.call_site) for each in process.errors),
        None if end is None else (end.reason, end.detail, end.code),
    )


def ending(process: ProcessEvents, surface: Surface) -> Iterator[Line]:
    """The section; nothing where it ended well, or still runs and had no trouble."""
    end = process.exit
    well = end is None or (end.reason == "normal" and not end.code)
    if well and not process.out_of_memory and not process.errors and not process.nonfinite:
        return
    yield from titled("How it ended" if not well else "Trouble", _in_words(end), surface)
    if end is not None and not well:
        for row in end.compiling:
            yield from sentence(f"Never finished: {unfinished(row, end.time)}.", surface, "bad", 11)
    for memory in process.out_of_memory[-MOST_TOLD:]:
        yield from _out_of_memory(memory, surface)
    for value in process.nonfinite[-MOST_TOLD:]:
        yield from _event(value.time, nonfinite(value), value.call_site, surface)
    for error in process.errors[-MOST_TOLD:]:
        said = error.message.splitlines()[0] if error.message and error.message.strip() else ""
        yield from _event(error.time, f"{error.error}{f': {said}' if said else ''}", error.call_site, surface)
        if error.meaning and error.advice:
            yield from sentence(f"{error.meaning} [{error.error_kind}]", surface, "sentence", 11)
            yield from sentence(f"Do: {error.advice}", surface, "good", 11)
    told = process.out_of_memory, process.nonfinite, process.errors
    left = sum(len(each[:-MOST_TOLD]) for each in told)
    if left:
        yield plain(f" {left:,} earlier ones", "dim")
    report = end.report if end is not None else None
    if report or any(each.report for each in process.errors):
        yield from sentence(f"The last minutes: {report or process.errors[-1].report}", surface, "", 11)
    seen = "out_of_memory" if process.out_of_memory else "nonfinite" if process.nonfinite else "uncaught_error"
    yield from sentence(f"By symptom: {symptom_reference(seen)}", surface, "dim", 11)


def _in_words(end: Exit | None) -> str:
    if end is None:
        return ""
    detail = f" {end.detail}" if end.detail else ""
    code = f", exit code {end.code}" if end.code else ""
    return f"{end.reason}{detail}{code}"


def _out_of_memory(event: OutOfMemory, surface: Surface) -> Iterator[Line]:
    wanted = "" if event.wanted_bytes is None else f", {human(event.wanted_bytes)} wanted"
    device = f" on {event.device}" if event.device else ""
    told = f"out of memory in {short(event.function)}{device}{wanted}"
    yield from _event(event.time, told, event.call_site, surface)
    for cause in event.causes[:1]:
        yield from sentence(f"{cause.summary} [{cause.cause}]", surface, "sentence", 11)
        yield from sentence(f"Do: {cause.advice}", surface, "good", 11)
    if event.report:
        yield from sentence(f"The report: {event.report}", surface, "", 11)


def _event(moment: float, told: str, call_site: str | None, surface: Surface) -> Iterator[Line]:
    site = surface.safe(call_site or "call site unknown")
    yield [(f" {clock(moment)}  ", "dim"), (surface.safe(told), "bad"), (f"  {site}", "dim")]
