"""The story as lines for a person: the findings first, then the functions by cost, each with its recompilations."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jaxobs.base.symptoms import symptom_reference
from jaxobs.facts.compilations import EAGER, PHASES, Compilation
from jaxobs.findings.compilations.support.case import plural
from jaxobs.findings.verdict import costs
from jaxobs.views.story.ending import ending
from jaxobs.views.story.functions import FunctionStory, Story
from jaxobs.views.terminal.findings import STYLES, headline
from jaxobs.views.terminal.lines import Column, Line, Surface, heading, plain, row, section, sentence, titled
from jaxobs.views.terminal.overview import host_work, loops
from jaxobs.views.terminal.text import clock, duration, short
from jaxobs.views.terminal.wall import BY_LINE, goodput, host_lines, wall

MOST_REASONS = 20
"""Reasons of one function that are shown, the latest, unless all are asked for."""
MOST_NAME = 40
"""Characters of a function's name with which the cost of a finding has room in the line."""
_FIGURES = re.compile(r"[\d.,]*\d")
_SENTENCES = re.compile(r"(?<=\.)\s+(?=[A-Z`])")


def lay_out(
    stories: Sequence[Story], source: str, notes: Sequence[str], surface: Surface, *, all_of: bool = False
) -> list[Line]:
    """All stories, alike ones once; `notes` are about the source, and `all_of` lists all recompilations."""
    lines: list[Line] = [[(f" jaxobs explain {surface.safe(source)}", "program")]]
    for note in notes:
        lines += sentence(note, surface, "warn")
    alike: dict[object, list[Story]] = {}
    for story in stories:
        alike.setdefault(story.outline, []).append(story)
    for group in alike.values():
        dearest = max(group, key=lambda story: story.seconds)
        lines += _process(dearest, len(group) - 1, surface, all_of)
    return lines


def _process(story: Story, others: int, surface: Surface, all_of: bool) -> Iterator[Line]:
    yield plain("")
    yield from sentence(_who(story, others, surface), surface, "summary")
    yield plain("")
    yield from headline(story.verdict, surface)
    if story.snapshot is not None:
        time, going = story.snapshot.wall, story.snapshot.loops
        parts = (
            ("Where the time went", goodput(time), wall(time, surface, None)),
            (BY_LINE, "", host_lines(going, surface, None)),
            ("Steps", "", [*loops(going, surface, None), *host_work(story.snapshot, surface)]),
        )
        for title, summary, rows in parts:
            yield from (*titled(title, summary, surface), *rows) if rows else ()
    yield from _findings(story, surface)
    yield from ending(story.process, surface)
    yield from _functions(story, surface)
    yield from _cache(story, surface)
    for function in story.functions:
        if function.recompilations:
            yield from _recompilations(function, surface, all_of)


def _who(story: Story, others: int, surface: Surface) -> str:
    process, manifest = story.process, story.process.manifest
    parts = [] if manifest is None else [manifest.program or ""]
    if others:
        parts.append(f"process {process.process_index} and {plural(others, 'other')} that compiled the same")
    elif manifest is not None and manifest.process_count > 1:
        parts.append(f"process {process.process_index} of {manifest.process_count}")
    parts.append(f"pid {process.pid}")
    if manifest is not None:
        parts += [f"{name} {manifest.versions[name]}" for name in ("jax", "jaxobs") if name in manifest.versions]
    if process.missing:
        parts.append(f"{plural(process.missing, 'older event')} that the process no longer keeps")
    return f" {surface.glyphs.separator} ".join(each for each in parts if each)


# ---------------------------------------------------------------------------------------------------- findings


def _findings(story: Story, surface: Surface) -> Iterator[Line]:
    if not story.findings:
        return
    entries = {each.id: each for each in story.verdict.findings}
    followers = {each.id for each in story.verdict.findings if each.caused_by}
    count = plural(len(story.findings) - len(followers), "finding")
    yield from titled("Findings", f"{count}, {len(followers)} caused by another" if followers else count, surface)
    advice = ""
    for finding in story.findings:
        entry = entries.get(finding.id)
        style = "dim" if entry is None else STYLES[entry.severity]
        function = "" if finding.function == "<unknown>" else short(finding.function)
        function = function if len(function) <= MOST_NAME else ".".join(function.split(".")[-2:])
        pieces = [
            finding.finding, function, finding.subject if finding.subject != finding.where else "",
            costs(entry.cost) if entry is not None else "over",
            "caused by the one above" if finding.id in followers else "", finding.where or "",
        ]  # fmt: skip
        yield [(f" {surface.glyphs.marker} ", style), (surface.joined(pieces, 3), style)]
        yield from sentence(finding.summary, surface, "sentence", indent=3)
        if finding.id not in followers or finding.advice != advice:
            yield from sentence(f"Do: {finding.advice}", surface, "good", indent=3)
        advice = finding.advice
        for shown in finding.evidence:
            yield from sentence(f"- {shown}", surface, "dim", indent=3)
        if finding.id not in followers and (symptom := symptom_reference(finding.finding)):
            yield from sentence(f"By symptom: {symptom}", surface, "dim", indent=3)


# --------------------------------------------------------------------------------------------------- functions


def _functions(story: Story, surface: Surface) -> Iterator[Line]:
    summary = f"{plural(story.programs, 'program')}, {duration(story.seconds)}"
    yield from titled("Functions by cost", summary, surface)
    if not story.functions:
        yield plain(" No compilation has ended.", "dim")
        return
    phases = [phase for phase in PHASES if any(phase in each.phases for each in story.functions)]
    names = ("programs", "seconds", *(phase.removeprefix("cache_") for phase in phases))
    numbers = [Column(name, 8, right=True) for name in names]
    room = surface.width - 1 - sum(column.width + 2 for column in numbers)
    longest = max(len(short(each.name)) for each in story.functions)
    width = max(min(longest, room - 26), 12)
    columns = [Column("function", width), *numbers, Column("why", max(room - width - 2, 12))]
    yield heading(columns)
    for function in story.functions:
        values = [
            plain(surface.cut(short(function.name), width), "name"),
            plain(f"{function.programs:,}", "number"),
            plain(duration(function.seconds), "number"),
            *(plain(duration(function.phases[phase]) if phase in function.phases else "", phase) for phase in phases),
        ]
        first, *more = surface.wrapped(_counts(function.causes), surface.width - columns[-1].width)
        yield row(columns, [*values, plain(first, "cause")])
        for part in more:
            yield row(columns, [*(plain("") for _ in values), plain(part, "cause")])


def _recompilations(function: FunctionStory, surface: Surface, all_of: bool) -> Iterator[Line]:
    yield plain("")
    again = function.recompilations
    cost = duration(sum(sum(each.phases.values()) for each in again))
    title = "<eager>: operations outside any jitted function" if function.name == EAGER else short(function.name)
    title = surface.cut(title, max(surface.width - 40, 20))
    yield section(title, f"recompiled {plural(len(again), 'time')}, {cost}", surface)
    alike: dict[object, list[Compilation]] = {}
    for event in again:
        if all_of:
            key: object = event.function, event.reason, event.where, event.cache
        elif event.eager:  # one line of the program may compile dozens of operations, with the same advice for each
            key = event.cause, event.call_site, event.cache
        else:
            key = _FIGURES.sub("0", event.reason), event.where, event.cache
        alike.setdefault(key, []).append(event)
    shown = [*alike.values()] if all_of else [*alike.values()][-MOST_REASONS:]
    reasons = len({each.reason for each in again}) - len(shown)
    if reasons > 0 and not all_of:
        more = plural(reasons, "more reason")
        yield from sentence(f"{more}: add --function '{short(function.name)}'", surface, "dim")
    told: set[str] = set()
    for events in shown:
        yield from _recompilation(events, surface, told)


def _recompilation(alike: Sequence[Compilation], surface: Surface, told: set[str]) -> Iterator[Line]:
    """Lines of a recompilation, or of several whose reasons are alike, without the advice that was `told`."""
    event = alike[-1]
    operations = Counter(each.function for each in alike if each.eager)
    times = f"{surface.glyphs.times}{len(alike)}" if len(alike) > 1 else ""
    cost = duration(sum(sum(each.phases.values()) for each in alike))
    where = event.where if len({each.where for each in alike}) == 1 else event.call_site
    words = [_names(operations), event.cause, times, cost, "hit" if event.cache == "hit" else ""]
    yield [
        (f" {clock(alike[0].time)}  ", "dim"),
        (surface.safe(" ".join(word for word in words if word)), "cause"),
        (f"  {surface.safe(where or 'call site unknown')}", "dim"),
    ]
    latest = "Latest: " if len({each.reason for each in alike}) > 1 else ""
    reason = event.reason if len(operations) > 1 else event.reason.removeprefix(f"`{event.function}`: ")
    change, *advice = _SENTENCES.split(reason)
    words = [change, *(each for each in advice if each not in told)]
    told.update(advice)
    yield from sentence(f"{latest}{' '.join(words)}", surface, "sentence", indent=11)


# ----------------------------------------------------------------------------------------- persistent cache


def _cache(story: Story, surface: Surface) -> Iterator[Line]:
    hits, misses, off = (sum(each.cache[result] for each in story.functions) for result in ("hit", "miss", "disabled"))
    saved = sum(each.saved_seconds for each in story.functions)
    summary = f"{plural(hits, 'hit')}, {misses:,} miss{'es' * (misses != 1)}, {off:,} not asked"
    yield from titled("Persistent cache", summary, surface)
    if saved:
        yield plain(f" Hits saved {duration(saved)} of compiling.", "good")
    unsaved: dict[str, Counter[str]] = {}
    missed: dict[str, Counter[str]] = {}
    detail: dict[str, str] = {}
    for function in story.functions:
        for reason, count in function.unsaved.items():
            unsaved.setdefault(reason, Counter())[short(function.name)] += count
            detail[reason] = function.unsaved_detail[reason] or reason.replace("_", " ")
        for lookup in function.lookups:
            parts = f" (differs: {', '.join(lookup.differs)})" if lookup.differs else ""
            told = f"missed what had been compiled before{parts}. {lookup.reason or ''}"
            missed.setdefault(told, Counter())[short(function.name)] += 1
    for reason, of in unsaved.items():
        told = f"{_names(of)}: {plural(of.total(), 'program')} not stored, {reason}. {detail[reason]}"
        yield from sentence(told, surface, "sentence")
    for told, of in missed.items():
        times = f"{surface.glyphs.times}{of.total()} " if of.total() > 1 else ""
        yield from sentence(f"{_names(of)}: {times}{told}", surface, "bad")
    if off and not hits and not misses:
        yield from sentence("The persistent cache is off, so every start recompiles everything.", surface, "dim")


# ----------------------------------------------------------------------------------------------------- helpers


def _counts(counts: Mapping[str, int]) -> str:
    """`shape 6, first_call 1`: a first call is expected, so it comes last."""
    order = sorted(counts, key=lambda cause: (cause == "first_call", -counts[cause], cause))
    return ", ".join(f"{cause} {counts[cause]}" for cause in order)


def _names(counts: Mapping[str, int]) -> str:
    """Returns the first three names of several."""
    return ", ".join([*counts][:3]) + (f" and {len(counts) - 3} more" if len(counts) > 3 else "")
