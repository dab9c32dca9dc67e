"""What is known of an incident: observations and the sources they come from. Frozen, plain, in one order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MOST_TEXT = 4096
"""Characters of an observation."""
MOST_QUOTED = 300
"""Characters of it in a report."""

LINE, EVENT, METRIC, ALERT, PROGRESS, START, END, LAST, SAID = (
    "line", "event", "metric", "alert", "progress", "start", "end", "last", "said",
)  # fmt: skip
"""Kinds of observations: a line of a job's log; an event of jaxobs; a sample of a metric; a firing alert; a step that
was made; a process that starts; one that ends as it should; the last that is heard of one; a line that speaks of
trouble, whether or not a sign knows it."""
NO_EXIT = "the log of the process ends without an exit"
"""The text of the last that an event log says of a process that did not say that it ends."""
FORMER = "former"
"""Field of the data of a sample of a process that was replaced: when its life was over."""
BEFORE, AGAIN = "before", "again"
"""Fields of the data of a last line: the lines before it, each behind its number; how often the process said it again,
with other digits."""
INTERNAL = "internal:"
"""Begins the name of an event that is a failure of jaxobs itself, which no program ends of."""
RAISED, FATAL = "raised", "fatal"
"""Names of lines: the one that ends a traceback, and the message with which a library in C++ ends the process."""

ONE_WRITE = 1.0
"""Seconds within which the lines of one message get their times, where a shipper of logs dates each line."""
SKEW = 5.0
"""Seconds by which the clocks of two sources may differ."""
SKEW_OF_FINDINGS = 60.0
"""The same of findings: it takes some steps until there is one, and what follows from a fault may be found first."""
_NO_LABELS = ("__name__", FORMER)
_FINDING = "finding:"
_BADLY = re.compile(r"fail|error|abort|(?:code|status):? [1-9]", re.IGNORECASE)
"""It came to its end, and not as it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One thing that a source says. Its text is data from outside: quoted in reports, never interpreted."""

    kind: str
    """One of the kinds above."""
    source: str
    """The file or address."""
    place: int = 0
    """The line in a file; the number of the event or sample elsewhere."""
    name: str = ""
    """Of an event: its kind and type, `finding:straggler`. Of a metric or an alert: its name."""
    time: float | None = None
    """Seconds since the epoch; None if the source has no clock."""
    process: str = ""
    """`process 3`, a host or an instance; empty if unknown."""
    text: str = ""
    level: str = ""
    """Of a line: `I`, `W`, `E` or `F`, as far as it shows one."""
    value: float | None = None
    """Of a metric its value, of progress the number of the step."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Labels and further fields."""
    history: tuple[tuple[float, float], ...] = ()
    """Of a metric: times and values within the window, as far as the source has them."""

    @property
    def order(self) -> tuple[float, str, int, str, str, str]:
        """Equal evidence is judged in an equal order, however it was gathered."""
        moment = float("inf") if self.time is None else self.time
        return moment, self.source, self.place, self.kind, self.name, self.text

    @property
    def quoted(self) -> str:
        """The text in one line, without control characters, bounded."""
        said = self.text if self.value is None else f"{self.text or self.name} {self.value:g}"
        if self.kind == METRIC:
            labels = ",".join(
                f'{name}="{value}"' for name, value in sorted(self.data.items()) if name not in _NO_LABELS
            )
            said = f"{self.name}{{{labels}}} {self.value or 0:g}"
            if len(self.history) > 1 and self.name.endswith("_total"):
                said += f" more in {self.history[-1][0] - self.history[0][0]:.0f} s"
            said += ", before the process was replaced" if FORMER in self.data else ""
        return clean(said or self.name)


def clean(text: str, most: int = MOST_QUOTED) -> str:
    """Text from outside as one bounded line of printable characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input, and whether it could be read."""

    kind: str
    """`log`, `event-log`, `metrics-file`, `target` or `prometheus`."""
    name: str
    problem: str | None = None
    """Why it could not be read; None if it was."""
    notes: tuple[str, ...] = ()
    """What was left out of it: damaged lines, a middle that is too long."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it was read: only then an absence in it says something."""
        return self.problem is None and not self.notes


@dataclass(frozen=True, slots=True)
class Evidence:
    """All observations, in one order, and all sources. What `diagnose` judges; nothing else enters."""

    observations: tuple[Observation, ...]
    sources: tuple[Source, ...]
    _metrics: dict[str, list[Observation]] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.observations:
            if each.kind == METRIC:
                self._metrics.setdefault(each.name, []).append(each)

    @classmethod
    def of(cls, observations: Iterable[Observation], sources: Iterable[Source]) -> Evidence:
        """In its order, whatever order it came in; what is there twice counts once."""
        unique = {(*each.order, each.process): each for each in observations}
        return cls(
            tuple(sorted(unique.values(), key=lambda each: (each.order, each.process))),
            tuple(sorted(set(sources), key=lambda each: (each.kind, each.name, each.problem or "", each.notes))),
        )

    def of_kind(self, *kinds: str) -> Iterator[Observation]:
        """Those of the given kinds."""
        return (each for each in self.observations if each.kind in kinds)

    def metric(self, name: str) -> Sequence[Observation]:
        """The samples of one metric."""
        return self._metrics.get(name, ())

    def without(self, unwanted: Iterable[Observation]) -> Evidence:
        """The same without some observations."""
        gone = set(map(id, unwanted))
        return Evidence(tuple(each for each in self.observations if id(each) not in gone), self.sources)


AFTERMATH = re.compile(
    r"Event loop (?:is|was) closed|cannot schedule new futures after|at interpreter shutdown|"
    r"sys\.meta_path is None|InvalidStateError|[Ll]oop .{0,40}already (?:closed|stopped)"
)
"""What callbacks and threads raise when the work that they belong to has failed or ended."""


def is_before(one: Observation, other: Observation) -> bool | None:
    """Whether one was before the other; None if that cannot be known."""
    findings = one.name.startswith(_FINDING) or other.name.startswith(_FINDING)
    ordered = one.source == other.source and not findings
    if ordered and one.kind not in (METRIC, ALERT) and other.kind not in (METRIC, ALERT):
        return one.place < other.place
    if one.time is None or other.time is None or ALERT in (one.kind, other.kind):
        return None  # An alert fires some time after what it measures began.
    if abs(one.time - other.time) <= (SKEW_OF_FINDINGS if findings else SKEW):
        return None
    earlier = one if one.time < other.time else other
    # A line without a time has that of a line above it, and may have come any time later.
    return None if "at_least" in earlier.data else one is earlier


Courses = Mapping[tuple[str, str], Sequence[Observation]]
"""By source and process: its steps, starts and ends."""


def courses(evidence: Evidence) -> Courses:
    """What each process did, as far as each source shows it, in the order of the source."""
    found: dict[tuple[str, str], list[Observation]] = {}
    for each in evidence.of_kind(PROGRESS, START, END):
        found.setdefault((each.source, each.process), []).append(each)
    return {whose: sorted(did, key=lambda one: one.place) for whose, did in found.items()}


_BEGINS = re.compile("(?i:restor|resum)(?:e|ing|ed)|Starting (?:training|engine|vLLM)|Initializing an? .{0,30}engine")
"""What a process says that has started already, and now takes up its work."""


_SUCCESS = re.compile(
    r"^(?!.*\b(?:rank|worker|child|task|node|pod|container|process|pid|subprocess)\b).*"
    r"\bexit(?:ed)?(?: with)?(?: exit)?(?: code| status)?[ :=]+0(?!\w|\.\d)",
    re.IGNORECASE,
)
"""How a program says that it ends well, and not that another one did: it has handled what it told before."""


def went_on(course: Courses, sign: Observation) -> Observation | None:
    """The step that the same process made after a sign without having been started again: it survived that.

    So it did where it ends as it should after a warning. A step whose number is below those before the sign is one
    of a new run.
    """
    before: float | None = None
    is_first = True
    for each in course.get((sign.source, sign.process), ()):
        if each.kind == END:
            if each.place > sign.place and ((sign.level == "W" and not sign.name) or _SUCCESS.search(each.text)):
                return each
            continue
        if each.place <= sign.place:
            if each.kind == PROGRESS:
                before, is_first = each.value, False
            continue
        if each.kind == START:
            if is_first and not sign.name and _BEGINS.search(each.text):
                continue  # The sign is of the same start.
            return None
        if before is None or each.value is None or each.value > before:
            return each
        if each.value < before:
            return None
    return None


def had_ended(course: Courses, sign: Observation) -> bool:
    """Whether the process had ended as it should, and what it says behind that is about how it goes away."""
    before = [each for each in course.get((sign.source, sign.process), ()) if each.place <= sign.place]
    return bool(before) and max(before, key=lambda each: each.place).kind == END


def outlived(course: Courses, sign: Observation) -> bool:
    """Whether the platform told something of a job whose processes all reached their end later, as they should."""
    trained = {key: each for key, each in course.items() if any(one.kind == PROGRESS for one in each)}
    if sign.kind != LINE or sign.time is None or not trained or any(source == sign.source for source, _ in trained):
        return False
    lasts = [max(each, key=lambda one: one.place) for each in trained.values()]
    return all(
        each.kind == END and each.time is not None and each.time > sign.time + SKEW and not _BADLY.search(each.text)
        for each in lasts
    )


def came_back(course: Courses, sign: Observation) -> bool:
    """Whether the same log has steps of the job beyond those before, and then its good end."""
    did = course.get((sign.source, sign.process), ())
    after = [each for each in did if each.place > sign.place]
    if not after or after[-1].kind != END or _BADLY.search(after[-1].text):
        return False
    reached = [max((one.value or 0.0 for one in some if one.kind == PROGRESS), default=0.0)
               for some in ([each for each in did if each.place <= sign.place], after)]  # fmt: skip
    return reached[1] > reached[0]


def says_more(evidence: Evidence, sign: Observation) -> bool:
    """Whether the process says something after a sign that is no error."""
    lasts = (each for each in evidence.of_kind(LAST) if (each.source, each.process) == (sign.source, sign.process))
    return any(each.place > sign.place and each.level not in ("E", "F") for each in lasts)
