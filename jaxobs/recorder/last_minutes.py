"""The last minutes of a process as a text for a person: what ended it, what it was doing, what had happened.

Facts in, text out.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxobs.base.symptoms import symptom_url
from jaxobs.facts.actions import Action
from jaxobs.facts.compilations import CacheLookup, Compilation, OpenCompilation
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.events import Event, timestamp
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import ArrayGroup, DeviceState
from jaxobs.facts.numbers import NonFinite, WatchedState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.wall import TimeState
from jaxobs.recorder.oom_texts import human
from jaxobs.recorder.report_text import accelerator_line, device_line, fact, section, wrapped

SECONDS = 300.0
"""How far back it goes."""
MOST_EVENTS = 60
MOST_FUNCTIONS = 10
MOST_FINDINGS = 5
MOST_GROUPS = 8
MOST_DEVICES = 16
MOST_SAMPLES = 6
"""Samples of one device, spread over the time."""
_MOST_SENTENCE = 400
MOST_INPUTS = 8
MOST_WATCHED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """End of a process, without a line of its source."""

    time: float
    what: str
    """`ValueError: bad shape`, `SIGTERM`, `SystemExit, exit code 3`."""
    call_site: str | None = None
    traceback: tuple[str, ...] = ()
    """`file:line in function`, the innermost last."""
    causes: tuple[str, ...] = ()
    """The exceptions that it was raised from, a line each."""
    threads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Place of each thread, if no traceback tells; the innermost frame last."""
    flags: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, int] = field(default_factory=dict)


def text(ending: Ending, snapshot: Snapshot, events: Sequence[Event]) -> str:
    """The text, ending in a newline."""
    return "\n".join(_lines(ending, snapshot, events)) + "\n"


def _lines(ending: Ending, snapshot: Snapshot, events: Sequence[Event]) -> Iterator[str]:
    process, observer = snapshot.process, snapshot.observer
    yield f"The last minutes of {process.program or 'python'}"
    place = f"process {process.process_index} of {process.process_count}"
    yield f"{timestamp(ending.time)}, {place}, pid {process.pid}, {process.hostname}"
    yield ""
    yield from fact("ended by", ending.what)
    for line in ending.causes:
        yield from fact("raised from", line)
    yield from fact("call site", ending.call_site)
    yield from fact("see", symptom_url("uncaught_error"))
    yield from fact("observed for", _duration(ending.time - process.started))
    for row in snapshot.in_progress:
        since = f"{_clock(row.started)}, for {_duration(ending.time - row.started)}"
        site = f" at {row.call_site}" if row.call_site else ""
        yield from fact(
            "in progress", f"{row.function}{site}: {row.phase.replace('_', ' ')} since {since}, in {row.thread}"
        )
    for row in snapshot.unfinished:
        yield from fact("unfinished", unfinished(row, ending.time))
    yield from section("TRACEBACK, INNERMOST LAST", ending.traceback)
    for name, lines in ending.threads.items():
        yield from section(f"WHERE IT WAS: {name}", lines)
    standing = [each for each in snapshot.findings if each.ended is None][:MOST_FINDINGS]
    yield from section("ACTIVE FINDINGS", [line for each in standing for line in _finding(each)])
    yield from section("STEPS", list(_loop_lines(snapshot.loops, ending.time)))
    yield from section("WHERE THE TIME WENT", list(_time_lines(snapshot.wall)))
    yield from section("INPUT", list(_input_lines(snapshot.inputs)))
    yield from section("WATCHED VALUES", list(_watched_lines(snapshot.watched)))
    recent = [each for each in events if ending.time - each.time <= SECONDS]
    events_told = [line for line in map(_told, _grouped(recent)) if line is not None]
    more = [f"({len(events_told) - MOST_EVENTS:,} earlier ones)"] if len(events_told) > MOST_EVENTS else []
    happened = [*events_told[: -MOST_EVENTS - 1 : -1], *more]
    yield from section(f"THE {SECONDS / 60:.0f} MINUTES BEFORE, LATEST FIRST", happened or ["Nothing compiled."])
    devices = snapshot.devices[:MOST_DEVICES]
    yield from section("MEMORY OVER THIS TIME", [told for each in devices if (told := _history(each, ending.time))])
    yield from section("DEVICES AT THE LAST SAMPLE", [device_line(each.memory) for each in devices if each.memory])
    yield from section("DEVICES BY THEIR DRIVER", [accelerator_line(each) for each in snapshot.accelerators])
    host = ", ".join(f"{name} {human(size)}" for name, size in ending.host.items())
    yield from section("HOST", [host] if host else [])
    groups = [_group(each) for each in snapshot.array_groups[:MOST_GROUPS]]
    yield from section("LARGEST GROUPS OF LIVE ARRAYS AT THE LAST SAMPLE", groups)
    order = sorted(snapshot.functions, key=lambda each: -sum(each.phase_seconds.values()))
    shown = [_function(each) for each in order[:MOST_FUNCTIONS] if each.compiled]
    yield from section("FUNCTIONS BY COMPILE TIME", shown)
    yield from section("FLAGS", [f"{name}={value}" for name, value in ending.flags.items()])
    yield from section("VERSIONS", [", ".join(f"{name} {version}" for name, version in process.versions.items())])
    blind = [
        (f"not available with this version of JAX: {name}") for name, seen in observer.capabilities.items() if not seen
    ]
    lost = [f"dropped: {reason} ({count:,})" for reason, count in observer.dropped.items() if count]
    failed = [f"failed: {where} ({count:,})" for where, count in observer.internal_errors.items()]
    failed += [f"  {where}: {each.text}" for where, each in observer.latest_errors.items()]
    yield from section("JAXOBS ITSELF", [*blind, *lost, *failed, *observer.notes])


def _finding(finding: Finding) -> Iterator[str]:
    yield from wrapped(f"{finding.summary} [{finding.finding}]", "- ")
    yield from wrapped(finding.advice, "  ")


def _grouped(events: Sequence[Event]) -> Iterator[list[Event]]:
    """The events in order; eager operations that were compiled in a row are one."""
    ordered = sorted(events, key=lambda each: (each.time, each.sequence))
    # A lookup that says no more than the compilation that follows is left out.
    told = [e for e in ordered if not isinstance(e, CacheLookup) or e.reason or e.differs or e.saved_seconds]
    for eager, group in itertools.groupby(told, lambda each: isinstance(each, Compilation) and each.eager):
        if eager:
            yield list(group)
        else:
            yield from ([each] for each in group)


def _told(group: list[Event]) -> str | None:
    """Some events as one line; None for those that are reported elsewhere."""
    event = group[-1]
    sentence = _sentence(event)
    if isinstance(event, Compilation) and len(group) > 1:
        seconds = sum(sum(each.phases.values()) for each in group if isinstance(each, Compilation))
        sentence = f"compiled {len(group):,} eager operations, {seconds:.2f} s"
    return None if sentence is None else f"{_clock(event.time)} {' '.join(sentence.split())[:_MOST_SENTENCE]}"


def _sentence(event: Event) -> str | None:
    if isinstance(event, Compilation):
        done = "loaded" if event.cache == "hit" else "compiled"
        site = f" at {event.where}" if event.where else ""
        cache = ", cache miss" if event.cache == "miss" else ""
        return f"{done} {event.function} ({event.cause}, {sum(event.phases.values()):.2f} s{cache}){site}"
    if isinstance(event, CacheLookup):
        saved = f", saved {event.saved_seconds:.1f} s" if event.saved_seconds else ""
        return f"cache {event.result} {event.function}{saved}{f': {event.reason}' if event.reason else ''}"
    if isinstance(event, Finding):
        over = " (over)" if event.ended is not None else ""
        return f"finding {event.finding} {event.function}{over}: {event.summary}"
    if isinstance(event, OutOfMemory):
        wanted = "" if event.wanted_bytes is None else f", {human(event.wanted_bytes)} wanted"
        cause = f": {event.causes[0].summary}" if event.causes else ""
        return f"out of memory {event.function}{wanted}{f', see {event.report}' if event.report else ''}{cause}"
    if isinstance(event, NonFinite):
        return nonfinite(event)
    if isinstance(event, Error):
        kind = f" ({event.error_kind})" if event.error_kind else ""
        return f"error {event.error}{kind}{f' at {event.call_site}' if event.call_site else ''}"
    if isinstance(event, Action):
        return f"action {event.name}, {event.result}{f': {event.path}' if event.path else ''}"
    return None


def unfinished(row: OpenCompilation, now: float) -> str:
    """Returns what was compiling when it ended, for how long, and how far it was."""
    site = f" at {row.call_site}" if row.call_site else ""
    return f"compilation of {row.function}{site}, after {_duration(row.seconds(now))}, in its phase {row.phase}"


def nonfinite(event: NonFinite) -> str:
    """Returns the value that turned NaN or infinite, and when, in a few words."""
    path = f"{event.name}{event.path}"
    first = "at" if event.exact else "at or before"
    step = "" if event.step is None else f" {first} call {event.step} of watch"
    return f"{path} is {event.what}{step}{', reported by jax_debug_nans' if event.source == 'debug_nans' else ''}"


def _history(device: DeviceState, end: float) -> str | None:
    """Samples of one device, a few of them spread over the time, the oldest first."""
    recent = [each for each in device.history if end - each[0] <= SECONDS]
    kind, position = ("in use", 1) if any(each[1] is not None for each in recent) else ("live", 2)
    known = [(each[0], size) for each in recent if (size := each[position]) is not None]
    if not known:
        return None
    step = max(1, (len(known) - 1) // (MOST_SAMPLES - 1)) if len(known) > MOST_SAMPLES else 1
    shown = [*known[:-1][::-step][: MOST_SAMPLES - 1][::-1], known[-1]]
    return f"{device.device:<8} {kind}: {', '.join(f'{_clock(when)} {human(size)}' for when, size in shown)}"


def _group(group: ArrayGroup) -> str:
    shape = f"{group.dtype}[{','.join(map(str, group.shape))}]"
    made = f", created at {', '.join(group.call_sites)}" if group.call_sites else ""
    return f"{human(group.bytes):>10} {group.count:>7,} x {shape}  {group.sharding}{made}"


def _function(row: FunctionState) -> str:
    causes = ", ".join(f"{cause} {sum(by_cache.values())}" for cause, by_cache in row.compilations.items())
    calls = "" if row.calls is None else f", {row.calls:,} calls"
    programs = f"{row.compiled} program{'s' * (row.compiled != 1)}"
    return f"{sum(row.phase_seconds.values()):>8.2f} s  {row.name}: {programs} ({causes}){calls}"


def _clock(moment: float) -> str:
    return timestamp(moment)[11:19]


def _duration(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _loop_lines(loops: Sequence[LoopState], now: float) -> Iterator[str]:
    """A line for each loop, the one that continued last first."""
    for loop in sorted(loops, key=lambda loop: -(loop.ended or 0.0)):
        typical = loop.mean_seconds if loop.p50_seconds is None else loop.p50_seconds
        told = [
            f"{loop.steps:,} steps",
            "" if typical is None else f"{typical:.3g} s each",
            "" if loop.p99_seconds is None else f"p99 {loop.p99_seconds:.3g} s",
            "" if (rate := loop.items_per_second) is None else f"{float(f'{rate:.3g}'):,.9g} items per second",
            f"{loop.slow:,} slow" if loop.slow else "",
            f"{loop.failed:,} failed" if loop.failed else "",
            "" if loop.ended is None else f"the last one {max(0.0, now - loop.ended):.1f} s before",
        ]
        yield f"{loop.name}: {', '.join(filter(None, told))}"


def _time_lines(time: TimeState | None) -> Iterator[str]:
    """Seconds by category, the most first, of this process; and of its run, where it is one of several attempts."""
    if time is None or time.wall_seconds <= 0:
        return
    most = sorted(time.seconds.items(), key=lambda each: -each[1])
    parts = [f"{name} {value:.1f} s ({value / time.wall_seconds:.0%})" for name, value in most if value >= 0.05]
    goodput = "" if time.goodput is None else f"goodput {time.goodput:.0%}: "
    yield from wrapped(f"{goodput}{', '.join(parts)}; at last {time.category}", "- ")
    run = time.run
    if run is not None:
        lost = f"{run.unsaved_steps:,} steps ({run.unsaved_seconds:.1f} s) since the last checkpoint"
        whole = "" if run.goodput is None else f", goodput {run.goodput:.0%}"
        yield from wrapped(f"run {run.id}, attempt {run.attempt}{whole}, {lost}", "- ")


def _input_lines(inputs: Sequence[InputState]) -> Iterator[str]:
    """Yields who holds the loop up, for each input: those waited for most first."""
    order = sorted(inputs, key=lambda each: -each.wait_seconds)
    for waiting in order[:MOST_INPUTS]:
        yield from wrapped(
            f"{waiting.name}: {waiting.batches:,} batches, {waiting.wait_seconds:.1f} s waited. {waiting.summary}", "- "
        )


def _watched_lines(watched: Sequence[WatchedState]) -> Iterator[str]:
    """Yields the values that were not finite, then the number of the others."""
    bad = [each for each in watched if each.nonfinite]
    for value in bad[:MOST_WATCHED]:
        since = "" if value.step is None else f", first at call {value.step:,}"
        now = "finite again" if value.finite else "not finite"
        yield f"{value.name}: {now}{since}, {value.nonfinite:,} of {value.checked:,} values"
    if len(bad) > MOST_WATCHED:
        yield f"({len(bad) - MOST_WATCHED:,} more that were not finite)"
    fine = [each.name for each in watched if not each.nonfinite and each.checked]
    if fine:
        yield from wrapped(f"finite: {', '.join(fine)}", "")
