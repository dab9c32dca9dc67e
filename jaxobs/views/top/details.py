"""Details behind a row: everything that is known of one finding, function or compilation."""

from collections import Counter
from collections.abc import Mapping, Sequence

from jaxobs.base.symptoms import symptom_reference
from jaxobs.facts.compilations import EAGER, PHASES, CacheLookup, Change, Compilation
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import MEMORY_SECTIONS, FunctionState, Histogram
from jaxobs.facts.verdicts import VerdictFinding
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.findings import STYLES
from jaxobs.views.terminal.lines import Column, Line, heading, plain, row, sentence
from jaxobs.views.terminal.text import ago, clock, duration, flops, number, program_bytes, size, tail
from jaxobs.views.top.prose import bullets, facts, part, text

MOST_COMPILATIONS = 50
MOST_SITES = 10


def compilation(view: Overview, event: Compilation, surface: Surface) -> list[Line]:
    """All that its event says."""
    return [
        *text(event.reason.removeprefix(f"`{event.function}`: "), surface),
        [],
        *facts(_about_compilation(event), surface),
        *part("Changes from the nearest earlier signature", bullets(map(change, event.changes), surface)),
        *part("Program", facts(program_facts(event.flops, event.bytes_accessed, event.memory), surface)),
        *part("Persistent cache", facts(_cache(event, view.lookups), surface)),
    ]


def change(each: Change) -> str:
    """`batch['image']: float32[128,8,8] to float32[5,8,8] (shape)`."""
    return f"{each.path or each.what}: {each.before} to {each.after}{f' ({each.what})' if each.path else ''}"


def phases(seconds: Mapping[str, float]) -> str:
    """`trace 120 ms, lower 60 ms, compile 800 ms`."""
    return ", ".join(f"{each.replace('_', ' ')} {duration(seconds[each])}" for each in PHASES if each in seconds)


def program_facts(operations: float | None, accessed: float | None, memory: Mapping[str, int]) -> list[tuple[str, str]]:
    """Cost of one execution of a program, by the compiler's analysis."""
    sections = ", ".join(f"{each} {size(memory[each])}" for each in MEMORY_SECTIONS if memory.get(each))
    total = size(program_bytes(memory))
    return [
        ("Memory", f"{total} on each device: {sections}" if total else ""),
        ("Operations", flops(operations)),
        ("Data moved", size(None if accessed is None else int(accessed))),
    ]


def _about_compilation(event: Compilation) -> list[tuple[str, str]]:
    return [
        ("Function", event.function),
        ("Cause", event.cause + (f", transformation `{event.transform}`" if event.transform else "")),
        ("Call site", event.call_site or ""),
        ("In a library", event.library_site or ""),
        ("Time", clock(event.time, "%Y-%m-%d %H:%M:%S")),
        ("Took", f"{duration(sum(event.phases.values()))}: {phases(event.phases)}" if event.phases else ""),
        ("Fingerprint", event.fingerprint or ""),
        ("Event", f"number {event.sequence}" if event.sequence else ""),
    ]


def _cache(event: Compilation, lookups: Sequence[CacheLookup]) -> list[tuple[str, str]]:
    # A lookup has the function and the time of its compilation.
    asked = [each for each in lookups if (each.function, each.time) == (event.function, event.time)]
    missed = "".join(each.reason or "" for each in asked[:1])
    differs = ", ".join(name for each in asked[:1] for name in each.differs)
    return [
        ("Result", event.cache),
        ("Not stored", event.uncached_detail or (event.uncached_because or "").replace("_", " ")),
        ("Missed", missed),
        ("Key differs", differs),
    ]


def finding(view: Overview, found: Finding, surface: Surface) -> list[Line]:
    """All that is known of it; if no sentence shows it, the compilations that belong to it."""
    entries = {} if view.snapshot.verdict is None else {each.id: each for each in view.snapshot.verdict.findings}
    entry = entries.get(found.id)
    severity = entry.severity if entry is not None else found.severity
    cause = entries.get(entry.caused_by or "") if entry is not None else None
    follow = [each.title for each in entries.values() if each.caused_by == found.id]
    mine = [each for each in view.compilations if each.sequence in set(found.sequences)]
    return [
        plain(f" {severity.upper()}", "dim" if found.ended is not None else STYLES[severity]),
        *text(found.summary, surface),
        *part("What to do", text(found.advice, surface, "good") if found.advice else []),
        [],
        *facts(_about_finding(found, entry), surface),
        *part("Follows from", text(cause.title, surface) if cause is not None else []),
        *part("Followed by", bullets(follow, surface)),
        *part("Evidence", bullets(found.evidence, surface)),
        *part("Compilations", [] if found.evidence else bullets(map(_told, reversed(mine)), surface)),
    ]


def _about_finding(found: Finding, entry: VerdictFinding | None) -> list[tuple[str, str]]:
    where = entry.where if entry is not None else None
    return [
        ("Finding", found.finding),
        ("Function", "" if found.function == "<unknown>" else found.function),
        ("About", found.subject),
        ("Call site", found.where or where or ""),
        ("Cost", _cost(found, entry)),
        ("Count", number(found.count) if found.count else ""),
        ("Since", clock(found.since, "%Y-%m-%d %H:%M:%S") if found.since else ""),
        ("Over since", clock(found.ended, "%Y-%m-%d %H:%M:%S") if found.ended else ""),
        ("By symptom", symptom_reference(found.finding)),
    ]


def _cost(found: Finding, entry: VerdictFinding | None) -> str:
    """Seconds that the advice would have saved, if the verdict knows them; else the seconds that were lost."""
    if entry is None:
        known = [duration(found.seconds) if found.seconds else "", size(found.bytes)]
    else:
        cost = entry.cost
        share = f" ({cost.share:.0%} of the time)" if cost.share is not None and cost.share >= 0.005 else ""
        known = [f"{duration(cost.seconds)}{share}" if cost.seconds else "", size(cost.bytes)]
    return ", ".join(each for each in known if each)


def _told(event: Compilation) -> str:
    at = f" at {event.where}" if event.where else ""
    took = duration(sum(event.phases.values()))
    return f"{clock(event.time)} {event.cause}, {took}{at}: {event.reason.removeprefix(f'`{event.function}`: ')}"


def function(view: Overview, state: FunctionState, surface: Surface) -> list[Line]:
    """All that is known of it, with its latest compilations as far as the view holds them."""
    mine = [each for each in reversed(view.compilations) if each.function == state.name]
    if state.name == EAGER:
        # Each of them has its operation's name.
        mine = [each for each in reversed(view.compilations) if each.eager]
    findings = [each for each in view.snapshot.findings if each.function == state.name and each.ended is None]
    return [
        *facts(_summary(view, state), surface),
        *part("Findings", bullets((each.summary for each in findings), surface)),
        *part("Why it compiled", _causes(state, surface)),
        *part("Time to compile", _phases(state, surface)),
        *part("Program", facts(_program(state, mine), surface)),
        *part("Calls", facts(_calls(state), surface)),
        *part("Slow calls that compiled nothing", _slow(state, surface)),
        *part("Errors", bullets(_errors(state), surface)),
        *part("Call sites of its latest compilations", bullets(_sites(mine), surface)),
        *part("Latest compilations", _compilations(mine, surface)),
    ]


def _summary(view: Overview, state: FunctionState) -> list[tuple[str, str]]:
    rate = view.rates.get(state.name)
    now = view.snapshot.time + view.age
    last = "" if state.last_compiled is None else f"{clock(state.last_compiled)}, {ago(now - state.last_compiled)}"
    calls = "" if state.calls is None else f"{state.calls:,}{f', {number(rate)} per second' if rate else ''}"
    if state.calls is None and not state.name.startswith("<"):
        calls = "not counted: the function is not instrumented"
    return [
        ("Function", state.name),
        ("Calls", calls),
        ("Compilations", f"{state.compiled:,} in {duration(sum(state.phase_seconds.values()))}"),
        ("Last compiled", last),
        ("Reason", (state.last_reason or "").removeprefix(f"`{state.name}`: ")),
    ]


def _causes(state: FunctionState, surface: Surface) -> list[Line]:
    order = sorted(state.compilations, key=lambda cause: -sum(state.compilations[cause].values()))
    told = {cause: _counted(state.compilations[cause]) for cause in order}
    return facts(told.items(), surface, max(map(len, told), default=0) + 1)


def _counted(counts: Mapping[str, int]) -> str:
    """`3: 2 miss, 1 hit`."""
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{sum(counts.values()):,}: cache {parts}" if set(counts) - {"disabled"} else f"{sum(counts.values()):,}"


def _phases(state: FunctionState, surface: Surface) -> list[Line]:
    known = [each for each in PHASES if state.phase_seconds.get(each)]
    if not known:
        return []
    columns = [Column("phase", 10), *(Column(title, 10, right=True) for title in ("times", "seconds", "mean"))]
    if surface.width < 50:
        columns.pop()
    rows = [heading(columns)]
    for phase in known:
        seconds, count = state.phase_seconds[phase], state.phase_counts.get(phase, 0)
        values = [
            plain(phase.replace("_", " "), phase),
            plain(number(count) if count else ""),
            plain(duration(seconds), "number"),
            plain(duration(seconds / count) if count else "", "dim"),
        ]
        rows.append(row(columns, values[: len(columns)]))
    return rows


def _program(state: FunctionState, mine: Sequence[Compilation]) -> list[tuple[str, str]]:
    program = state.program
    if program is None:
        latest = next((each for each in mine if each.memory or each.flops is not None), None)
        return [] if latest is None else program_facts(latest.flops, latest.bytes_accessed, latest.memory)
    kinds = {kind: count for kind, count in (program.instructions or {}).items() if count}
    instructions = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in kinds.items())
    collectives = ", ".join(f"{name} {size(count)}" for name, count in program.collective_bytes.items())
    looped = flops(program.all_flops) if program.all_flops != program.flops else ""
    return [
        *program_facts(program.flops, program.bytes_accessed, program.memory),
        ("With all loops", f"{looped}, counting every iteration of a loop" if looped else ""),
        ("Instructions", instructions),
        ("Collectives", collectives),
        ("Fingerprint", program.fingerprint or ""),
    ]


def _calls(state: FunctionState) -> list[tuple[str, str]]:
    skipped = ", ".join(f"{count:,} {why}" for why, count in state.device_skipped.items() if count)
    return [
        ("Dispatch", _times(state.dispatch)),
        ("On the device", _times(state.device)),
        ("Not measured", f"{skipped} (of the sampled calls)" if skipped else ""),
    ]


def _times(histogram: Histogram | None) -> str:
    """`p50 0.4 ms, p99 2.1 ms, mean 0.5 ms over 1,024 calls`."""
    count = 0 if histogram is None else sum(histogram.counts)
    if histogram is None or not count:
        return ""
    shares = [f"p{share:.0f} {told}" for share in (50, 99) if (told := duration(_quantile(histogram, share / 100)))]
    return f"{', '.join([*shares, f'mean {duration(histogram.sum / count)}'])} over {count:,} calls"


def _quantile(histogram: Histogram, share: float) -> float | None:
    """As Prometheus' `histogram_quantile`: linear inside a bucket; None in the last one, which has no bound."""
    wanted = share * sum(histogram.counts)
    below, least = 0, 0.0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        if count and below + count >= wanted:
            return least + (bound - least) * (wanted - below) / count
        below, least = below + count, bound
    return None


def _slow(state: FunctionState, surface: Surface) -> list[Line]:
    counts = {cause: count for cause, count in state.fastpath_misses.items() if count}
    if not counts:
        return []
    told = ", ".join(f"{count:,} {cause.replace('_', ' ')}" for cause, count in counts.items())
    return [*text(told, surface, "warn"), *(text(state.fastpath_reason, surface) if state.fastpath_reason else [])]


def _errors(state: FunctionState) -> list[str]:
    died = {device or "a device": count for device, count in state.out_of_memory.items()}
    return [
        *(f"{name}: {_calls_in_words(count)}" for name, count in state.errors.items()),
        *(
            (f"recognized by its text as {kind.replace('_', ' ')}: {count:,}")
            for kind, count in state.error_kinds.items()
        ),
        *(f"out of memory on {device}: {_calls_in_words(count)}" for device, count in died.items()),
    ]


def _calls_in_words(count: int) -> str:
    return f"{count:,} call{'s' * (count != 1)}"


def _sites(mine: Sequence[Compilation]) -> list[str]:
    counts = Counter(each.where for each in mine if each.where)
    more = len(counts) - MOST_SITES
    told = [f"{site}: {count:,}" for site, count in counts.most_common(MOST_SITES)]
    return [*told, f"{more:,} more"] if more > 0 else told


def _compilations(mine: Sequence[Compilation], surface: Surface) -> list[Line]:
    lines: list[Line] = []
    for each in mine[:MOST_COMPILATIONS]:
        lines += _compilation(each, surface)
    if len(mine) > MOST_COMPILATIONS:
        lines.append(plain(f" {len(mine) - MOST_COMPILATIONS:,} more", "dim"))
    return lines


def _compilation(event: Compilation, surface: Surface) -> list[Line]:
    quiet = event.cause == "first_call" or event.eager
    cache = "" if event.cache == "disabled" else f"  {event.cache}"
    head = f" {clock(event.time)}  {event.cause}  {duration(sum(event.phases.values()))}{cache}  "
    site = tail(surface.safe(event.where or ""), surface.width - len(head) - 1, surface.glyphs.ellipsis)
    lines: list[Line] = [[(head, "dim" if quiet else "cause"), (site, "dim")]]
    for said, style in (
        (event.reason.removeprefix(f"`{event.function}`: "), "dim" if quiet else "sentence"),
        *((change(each), "dim") for each in event.changes if len(event.changes) > 1),
        (phases(event.phases), "dim"),
    ):
        lines += sentence(said, surface, style, 3)
    return lines
