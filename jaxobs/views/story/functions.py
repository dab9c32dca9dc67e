"""The story of a process: its functions by cost, why each compiled, what the caches did, and the findings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from jaxobs.facts.actions import Action
from jaxobs.facts.compilations import EAGER, CacheLookup, Compilation
from jaxobs.facts.findings import Finding
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.verdicts import Verdict
from jaxobs.findings import verdict
from jaxobs.findings.patterns import Patterns
from jaxobs.views.story import ending
from jaxobs.views.story.log import ProcessEvents


@dataclass(slots=True)
class FunctionStory:
    """Compilations of a function; operations outside any jitted function are one function, `<eager>`."""

    name: str
    programs: int = 0
    seconds: float = 0.0
    phases: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    cache: Counter[str] = field(default_factory=Counter)
    unsaved: Counter[str] = field(default_factory=Counter)
    unsaved_detail: dict[str, str] = field(default_factory=dict)
    """The latest sentence for each reason."""
    recompilations: list[Compilation] = field(default_factory=list)
    """All but first calls, in order."""
    operations: Counter[str] = field(default_factory=Counter)
    """Compilations of each operation, for `<eager>`."""
    lookups: list[CacheLookup] = field(default_factory=list)
    """Questions to the persistent cache that say something of themselves: misses of what had been compiled before."""
    saved_seconds: float = 0.0

    def add(self, event: Compilation) -> None:
        """Counts a compilation in."""
        self.programs += 1
        self.seconds += sum(event.phases.values())
        self.phases.update(event.phases)
        self.causes[event.cause] += 1
        self.cache[event.cache] += 1
        if event.cache == "miss" and event.uncached_because is not None:
            self.unsaved[event.uncached_because] += 1
            self.unsaved_detail[event.uncached_because] = event.uncached_detail or ""
        if event.eager:
            self.operations[event.function] += 1
        if event.cause != "first_call":
            self.recompilations.append(event)

    def add_lookup(self, event: CacheLookup) -> None:
        """Counts in what the persistent cache answered."""
        self.saved_seconds += max(0.0, event.saved_seconds or 0.0)
        if event.reason or event.differs:
            self.lookups.append(event)


@dataclass(frozen=True, slots=True)
class Story:
    """Compilations of one process with their reasons, and its findings."""

    process: ProcessEvents
    functions: tuple[FunctionStory, ...]
    """The most expensive first."""
    findings: tuple[Finding, ...]
    """In the order of the verdict; those that are over come last."""
    verdict: Verdict
    snapshot: Snapshot | None = None
    """State of the process; None if only a function is looked at."""

    @property
    def programs(self) -> int:
        """Executables in all."""
        return sum(each.programs for each in self.functions)

    @property
    def seconds(self) -> float:
        """Time that they took, all phases."""
        return sum(each.seconds for each in self.functions)

    @property
    def outline(self) -> tuple[object, ...]:
        """Key that is equal for processes that did the same."""
        functions = sorted((each.name, tuple(sorted(each.causes.items()))) for each in self.functions)
        return tuple(functions), tuple(sorted(each.id for each in self.findings)), ending.outline(self.process)


def tell(process: ProcessEvents, function: str | None = None, snapshot: Snapshot | None = None) -> Story:
    """The story of a process, or of a function in it; a snapshot, if given, has the findings."""
    rows: dict[str, FunctionStory] = {}
    eager = {each.function for each in process.compilations if each.eager}
    own = {each.function for each in process.compilations if not each.eager}
    for event in process.compilations:
        name = EAGER if event.eager else event.function
        if matches(name, function):
            rows.setdefault(name, FunctionStory(name)).add(event)
    for lookup in process.lookups:
        name = EAGER if lookup.function in eager and lookup.function not in own else lookup.function
        if name in rows:
            rows[name].add_lookup(lookup)
    known: Iterable[Finding] = (
        snapshot.findings if snapshot is not None
        else latest_findings(process.findings, _replayed(process.compilations))
    )  # fmt: skip
    findings = [_traced(each, process.actions) for each in known if matches(each.function, function)]
    whole = replace(snapshot, findings=tuple(findings)) if snapshot is not None and function is None else None
    judged = _judged(process, findings, whole)
    place = {each.id: number for number, each in enumerate(judged.findings)}
    return Story(
        process,
        tuple(sorted(rows.values(), key=lambda row: (-row.seconds, row.name))),
        tuple(sorted(findings, key=lambda each: (place.get(each.id, len(place)), each.id))),
        judged,
        whole,
    )


def _judged(process: ProcessEvents, findings: Sequence[Finding], snapshot: Snapshot | None) -> Verdict:
    if snapshot is not None:
        return verdict.verdict(snapshot)
    times = [each.time for each in (*process.compilations, *findings)]
    seconds = max(times) - min(times) if times else 0.0
    return verdict.of(findings, seconds)


def _traced(finding: Finding, actions: Sequence[Action]) -> Finding:
    """Adds the latest trace that was taken while a finding lasted to its evidence, as the live page does."""
    end = float("inf") if finding.ended is None else finding.ended
    during = (each for each in reversed(actions) if finding.since <= each.time <= end)
    path = next((each.path for each in during if each.name == "profile" and each.path), None)
    if path is None:
        return finding
    return replace(finding, evidence=(*finding.evidence, f"A trace of that time: `jaxobs profile {path}`"))


def matches(name: str, function: str | None) -> bool:
    """Whether `function` is the name of a function or the end of it: `train_step` for `train.train_step`."""
    return function is None or name == function or name.endswith(f".{function}")


def latest_findings(told: Iterable[Finding], replayed: Iterable[Finding]) -> Iterable[Finding]:
    """Merges reported findings, which come again only when doubled, with those that compilations show now."""
    found: dict[str, Finding] = {}
    for finding in told:
        known = found.get(finding.id)
        if known is None or finding.count >= known.count:
            found[finding.id] = finding
    for finding in replayed:
        known = found.get(finding.id)
        # Its compilations do not show that it is over; the process would have told that it is not.
        if known is None or (finding.count >= known.count and known.ended is None):
            found[finding.id] = finding
    return found.values()


def _replayed(compilations: Sequence[Compilation]) -> list[Finding]:
    patterns = Patterns()
    for event in sorted(compilations, key=lambda each: each.sequence):
        patterns.see(event)
    return patterns.standing()
