"""What a diagnosis knows: the signs of a fault, what it brings about, what rules it out, and what to do."""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from jaxobs.ops.diagnosis import tracebacks
from jaxobs.ops.diagnosis.evidence import ALERT, EVENT, FATAL, LAST, LINE, METRIC, RAISED, Evidence, Observation

ENDED, STUCK, WRONG, SLOW = "ended", "stuck", "wrong", "slow"
IMPACTS = (ENDED, STUCK, WRONG, SLOW)
"""What a fault does to the job, the worst first."""

CAUSE, SYMPTOM = "cause", "symptom"
"""A cause can be named. A symptom shows that something happened, but not what."""

ANY_END = "*"
"""In `follows`: whatever ends another process."""

_QUOTING = re.compile(
    r"\b(?:prompts?|completion|content|question|answer|generated(?:_text)?|(?:user|human|assistant|chat|system)"
    r"(?: (?!error|config)\w+)?)\b[\"']?\s*[:=]|\b(?:inputs?|outputs?|query|payload|body|title|response|request|sample|"
    r"text|message)\b"
    r"[\"']?\s*[:=]\s*[\"'`]",
    re.IGNORECASE,
)
"""What comes behind it is what somebody wrote, not what happened."""
_CODE_OF_ERROR = re.compile(r"[\"']?\b(?:code|status|reason|error)[\"']?\s*:")
_MESSAGE = re.compile(r"message[\"']?\s*[:=]\s*$")
_ERROR_QUOTED = re.compile(r"(?:caused|[Ee]rror|[Ff]ailed|because|[Rr]eason|desc|details?)\W*$")
"""What is quoted behind it happened all the same."""
_OF_A_TOOL = re.compile(r"\"(?:hip|cuda|hsa)\w*Error|\|.*\d+MiB */ *\d+MiB *\||\s*\"(?:OOMKilled|ExitCode)\"\s*:")
"""What a runtime prints in quotes itself; the table of `nvidia-smi`; what `docker inspect` says of a container."""
_UNSAID = ("unsaved:", "exit:exception:")
"""Events that mention an error that stopped nothing, for JAX caught it, or one that has an event of its own."""
_CAUGHT = re.compile("Error (?:reading|writing) persistent compilation cache entry")
"""The same in a log: the program was compiled instead, whatever the error was."""
_QUOTED_LINE = re.compile(r"\s*(?:(?:[>#|`-]{1,6}|\*{1,2})\s|```|//|\"|'|\S+::\S+\[)")


@dataclass(frozen=True, slots=True)
class Line:
    """A text in a job's log, or in the message of an error that jaxobs recorded."""

    pattern: str
    """A regular expression."""
    weak: bool = False
    info: bool = False
    """Whether it counts at the level of information, too. Otherwise a line that calls itself information is none."""
    passes: bool = True
    """Whether it does not count if the process made steps after it."""
    code: str = ""
    """A regular expression that the line of code must contain, from which it was raised; any if empty."""
    unless: str = ""
    """A regular expression: a text that contains it as well means something else."""
    unless_followed: str = ""
    """The same of the lines behind it."""
    followed: str = ""
    """A regular expression that the lines behind it must contain."""
    calls: str = ""
    """A regular expression that the code of its traceback must contain; any if empty."""
    within: str = ""
    """A regular expression that the file must contain from which it was raised, where that is known; any if empty."""

    def shows(self, observation: Observation) -> bool:
        """Whether it is in the text, as something that happened and not as something quoted."""
        if observation.kind not in (LINE, EVENT) or not observation.text or observation.name.startswith(_UNSAID):
            return False
        if observation.level in ("I", "D") and not self.info:
            return False
        expression = _compiled(self.pattern)
        found = expression.search(observation.text)
        if found is None or (self.unless and _compiled(self.unless).search(observation.text)):
            return False
        caught = _CAUGHT.search(observation.text)
        if caught is not None and found.start() > caught.start():
            return False
        behind = observation.data.get("next", "")
        if self.unless_followed and _compiled(self.unless_followed).search(behind):
            return False
        if self.followed and not _compiled(self.followed).search(behind):
            return False
        file = observation.data.get("frames", "").rpartition("\n")[2]
        if self.within and file and not _compiled(self.within).search(file):
            return False
        if self.calls and not _compiled(self.calls).search(observation.data.get("calls", "")):
            return False
        if self.code and not _compiled(self.code).search(observation.data.get("code", "")):
            return False
        return observation.kind == EVENT or not _is_quoted(observation.text, found.start())


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_quoted(text: str, start: int) -> bool:
    """Whether a place in a line is inside what somebody else wrote: a prompt, a document, a request."""
    if _OF_A_TOOL.match(text):
        return False
    before = text[:start]
    outside = before[: before.rfind('"')]
    of_an_error = _ERROR_QUOTED.search(outside) or (_MESSAGE.search(outside) and _CODE_OF_ERROR.search(outside))
    opened = before.count('"') % 2 == 1 and not of_an_error
    quoting = next((each for each in _QUOTING.finditer(before) if not _is_of_an_error(before, each)), None)
    return bool(_QUOTED_LINE.match(text) or opened or quoting)


def _is_of_an_error(text: str, quoting: re.Match[str]) -> bool:
    """Whether it is the message of an error in JSON, which has a code."""
    return quoting.group().startswith("message") and _CODE_OF_ERROR.search(text[: quoting.start()]) is not None


@dataclass(frozen=True, slots=True)
class Event:
    """An event of jaxobs: a regular expression that its name must match as a whole."""

    name: str
    weak: bool = False
    passes: bool = False
    about: str = ""
    """A regular expression that its text has to contain."""
    counted: bool = True
    """Whether the metric that counts findings shows it, too."""

    def shows(self, observation: Observation) -> bool:
        """Whether it is such an event."""
        name = _event(observation) if self.counted or observation.kind == EVENT else ""
        return _compiled(self.name).fullmatch(name) is not None and (
            not self.about or _compiled(self.about).search(observation.text) is not None
        )


FINDINGS = "jax_findings"
"""The metric that counts the findings that stand, by kind."""


def _event(observation: Observation) -> str:
    """The name of an event, also where only a metric tells of it."""
    if observation.kind == METRIC and observation.name == FINDINGS and observation.value:
        return f"finding:{observation.data.get('finding', '')}"
    return observation.name if observation.kind == EVENT else ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A sample beyond a bound. Of a counter: how much it grew where a history is known, else its value."""

    name: str
    over: float = 0.0
    labels: tuple[tuple[str, str], ...] = ()
    """Regular expressions that the labels' values have to match as a whole."""
    weak: bool = False
    passes: bool = False

    def shows(self, observation: Observation) -> bool:
        """Whether it is such a sample, and beyond the bound."""
        return (
            observation.kind == METRIC
            and observation.name == self.name
            and observation.value is not None
            and observation.value > self.over
            and all(_compiled(value).fullmatch(observation.data.get(name, "")) for name, value in self.labels)
        )


@dataclass(frozen=True, slots=True)
class Alert:
    """A firing alert. It is no weak sign if its expression measures the fault itself, and not what follows from it."""

    name: str
    weak: bool = True
    passes: bool = False

    def shows(self, observation: Observation) -> bool:
        """Whether it is that alert."""
        return observation.kind == ALERT and observation.name == self.name


@dataclass(frozen=True, slots=True)
class AnyAlert:
    """An alert of ours that fires and is more than information, whatever it is about."""

    weak: bool = False
    passes: bool = False

    def shows(self, observation: Observation) -> bool:
        """Whether it is one."""
        return (
            observation.kind == ALERT
            and observation.name.startswith("Jax")
            and observation.data.get("severity") in ("critical", "warning")
        )


@dataclass(frozen=True, slots=True)
class Raised:
    """The last line of a traceback in a log: an exception, whatever its type.

    Where its text is all that is asked for, also what jaxobs saw leave the program.
    """

    weak: bool = False
    passes: bool = True
    frames: str = ""
    """A regular expression that the files of the innermost calls must contain; any if empty."""
    about: str = ""
    """A regular expression of its whole message."""
    phase: str = ""
    """The phase of the program in which it was raised, as in `tracebacks`; any if empty."""

    def shows(self, observation: Observation) -> bool:
        """Whether it is such a line."""
        recorded = observation.data.get("uncaught") == "yes" and bool(self.about) and not self.frames
        return (
            (recorded if observation.kind == EVENT else observation.kind == LINE and observation.name == RAISED)
            and (not self.frames or _compiled(self.frames).search(observation.data.get("frames", "")) is not None)
            and (not self.about or _compiled(self.about).search(tracebacks.message(observation)) is not None)
            and (not self.phase or tracebacks.phase(observation) == self.phase)
        )


@dataclass(frozen=True, slots=True)
class Fatal:
    """The message with which a library in C++ ends the process, whatever it says."""

    weak: bool = False
    passes: bool = False

    def shows(self, observation: Observation) -> bool:
        """Whether it is such a line."""
        return observation.kind == LINE and observation.name == FATAL


@dataclass(frozen=True, slots=True)
class Silence:
    """The last that a source says of a process."""

    about: str = ""
    """A regular expression that its text must contain; any if empty."""
    unless_followed: str = ""
    """A regular expression: it means something else if an indented line behind it contains that."""
    weak: bool = False
    passes: bool = False

    def shows(self, observation: Observation) -> bool:
        """Whether it is that."""
        if observation.kind != LAST or (self.about and not _compiled(self.about).search(observation.text)):
            return False
        behind = observation.data.get("next", "")
        return not (self.unless_followed and _compiled(self.unless_followed).search(behind))


HOST_MEMORY = "job_instance:jax_host_memory_used:ratio"
"""The recorded share of the memory of a container, or of the machine, that is in use."""
UP = "up"
"""The metric with which Prometheus says whether a target answered."""


@dataclass(frozen=True, slots=True)
class Down:
    """A target that did not answer Prometheus when it was asked last."""

    weak: bool = False
    passes: bool = False

    def shows(self, observation: Observation) -> bool:
        """Whether it is one."""
        return observation.kind == METRIC and observation.name == UP and observation.value == 0


AnySign = Line | Event | Metric | Alert | AnyAlert | Raised | Fatal | Silence | Down


class Functions(TypedDict, total=False):
    """Functions of one fault, by the fields of `Knowledge` that they are for."""

    narrow: Callable[[Evidence, Sequence[Observation]], Sequence[Observation]]
    ordinary: Callable[[Evidence, Observation], bool]
    since: Callable[[Evidence, Observation], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """All about one fault."""

    title: str
    """One sentence without a full stop: what happened."""
    signs: tuple[AnySign, ...]
    impact: str
    """One of `IMPACTS`."""
    fix: str
    runbook: str = ""
    """The alert whose runbook fits; empty if none does."""
    role: str = CAUSE
    refuted_by: tuple[AnySign, ...] = ()
    """Signs that rule it out, if they come after the last sign of it or stand beside it."""
    follows: tuple[str, ...] = ()
    """Faults that bring this one about; `ANY_END` for whatever ends another process."""
    rivals: tuple[str, ...] = ()
    """Faults that look alike. This one is named only if it has more for it than they have."""
    general: int = 0
    """It gives way to faults of a smaller number that the same observation shows."""
    collect: str = ""
    """What to collect where it is suspected and cannot be named."""
    needs: tuple[str, ...] = ("log", "event-log")
    """Kinds of sources that can show it."""
    shown_by: tuple[str, ...] = ()
    """Kinds of sources in which it cannot fail to show: one that was read whole and does not, refutes it."""
    narrow: Callable[[Evidence, Sequence[Observation]], Sequence[Observation]] | None = field(default=None)
    """Which of the signs remain in view of all evidence, where a text alone does not decide."""
    located_by: tuple[str, ...] = ()
    """Faults that follow from it where it is: they say of which process it is, where its own signs do not."""
    beside: tuple[str, ...] = ()
    """Metrics that are no signs, and that `ordinary` looks at."""
    ordinary: Callable[[Evidence, Observation], bool] | None = field(default=None)
    """Whether a sign is what this process ordinarily shows, such as an overflow that loss scaling provokes."""
    since: Callable[[Evidence, Observation], float | None] | None = field(default=None)
    """When what a sign shows began, where that isn't the time of the sign."""
