"""The log of a job: the lines that show something, and the steps between them."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from jaxobs.ops.diagnosis.evidence import (
    AGAIN,
    BEFORE,
    END,
    FATAL,
    LAST,
    LINE,
    ONE_WRITE,
    PROGRESS,
    RAISED,
    SAID,
    START,
    Observation,
    Source,
)  # fmt: skip
from jaxobs.ops.diagnosis.gathering.bounded import Lines, UnreadableError
from jaxobs.ops.diagnosis.gathering.collected import entries
from jaxobs.ops.diagnosis.gathering.instances import Column, column
from jaxobs.ops.diagnosis.gathering.literals import gate
from jaxobs.ops.diagnosis.gathering.log_lines import LogLine, parse_all
from jaxobs.ops.diagnosis.gathering.log_times import either, of_the_past
from jaxobs.ops.diagnosis.gathering.paces import Memory, Pace
from jaxobs.ops.diagnosis.gathering.pytest_output import as_python
from jaxobs.ops.diagnosis.gathering.traced import (
    MOST_CODE,
    Tracebacks,
    ends_a_message,
    is_bare,
    is_of_a_call,
    told_last,
)
from jaxobs.ops.diagnosis.gathering.whose import cancelled_job, host_of, process_of, settled

MOST_OF_ONE = 20
"""Lines that are kept of one sign and process: the first ones, for these tell when it began.

If the sign has a group, so many for each text in it.
"""
FOLLOWING = 5
"""Lines behind one that shows something that are kept with it."""

MOST_OF_A_MESSAGE = 30
"""Lines of the message of an exception that are kept with its first one."""
MOST_OF_ITS_TEXT = 3000
"""Characters of these lines."""

MOST_KNOWN = 1000
MOST_PROCESSES = 1000
"""Processes that are distinguished in one file. Lines of others count as those of the file."""
LAST_WORDS = 4
"""Lines before the last one that are kept with it, each behind its number."""
MOST_FENCED = 60
"""Lines between two fences. So many are read ahead; an open fence hides nothing."""

_STEP = re.compile(either("steps"))
_BAR = re.compile(r"\d%\|.{0,200}\d/\d+ \[\d+:\d\d")
"""A bar of tqdm. It goes to the standard error, which collectors call an error."""
_SERVED = re.compile(r"(?:generation throughput: |gen throughput \(token/s\): )(?=\d*[1-9])")
"""A server that generates. It has no number."""
_WAITING = re.compile(r"\W{0,4}(?:still )?[Ww]aiting (?:for|on)\b")
"""Behind the number of a step, which is not made yet."""
_START = re.compile(either("starts"))
_END = re.compile(either("ends"))
_EDGES = gate((_START.pattern, _END.pattern))
_TROUBLE = (
    "rror", "ail", "xception", "FATAL", "arn", "bort", "kill", "Kill", "OOM", "RESOURCE", "INTERNAL", "INVALID",
    "UNAVAILABLE", "DEADLINE", "not ", "Unable", "unable", "nan", "NaN", "n't ", "annot", "imed out", "efused",
)  # fmt: skip
"""Texts of which a line that speaks of trouble contains one."""
MOST_SAID = 40
"""Lines of one log that speak of trouble, in different words."""
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class _Reading:
    """The state between two lines of one file."""

    source: str
    process: str
    year: int
    patterns: Sequence[re.Pattern[str]]
    times: dict[str, tuple[float | None, bool]] = field(default_factory=dict)
    """The latest time of each process: for lines that have none."""
    firsts: dict[str, float] = field(default_factory=dict)
    """The first time of each process."""
    modified: float | None = None
    """When the file was written last."""
    dated: float | None = None
    """The first time that has a year."""
    cancelled: dict[str, float] = field(default_factory=dict)
    """By job of Slurm: when the first of its steps was cancelled, or itself."""
    steps: dict[str, Observation] = field(default_factory=dict)
    """The latest step of each process that is not yet told."""
    lasts: dict[str, Observation] = field(default_factory=dict)
    """The latest line of each process."""
    paces: dict[str, Pace] = field(default_factory=dict)
    memory: dict[str, tuple[Memory, Observation]] = field(default_factory=dict)
    """The memory that each process logs, and the line of its latest reading."""
    wanted: Counter[str] = field(default_factory=Counter)
    """Steps that are still told as they come, by process."""
    known: dict[str, list[int]] = field(default_factory=dict)
    """Messages, and which patterns they show."""
    kept: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    tracebacks: Tracebacks = field(default_factory=Tracebacks)
    trouble: set[str] = field(default_factory=set)
    """Kinds of lines that speak of trouble."""


def read(
    path: str, name: str, signs: Sequence[str], year: int, *,
    modified: float | None = None, now: float | None = None, most: int | None = None,
) -> tuple[list[Observation], Source]:  # fmt: skip
    """What a log shows.

    Args:
      signs: regular expressions of lines that show something.
      year: of times that have none.
      modified: when the file was written last, in seconds since the epoch; None if that is not known.
      now: when it is read.
      most: lines that are read at both ends of the file together; the most of a file if None.
    """
    lines = Lines(path, most)
    # A file in a bundle whose time says nothing was written shortly before.
    latest = now if modified is None else modified
    reading = _Reading(name, process_of(name), year, [re.compile(each) for each in signs], modified=latest)
    found: list[Observation] = []
    may_show = gate(tuple(signs))
    open_lines: list[tuple[int, int]] = []
    messages: list[tuple[int, int]] = []
    bare: dict[str, list[Observation]] = {}  # By process: an exception without its traceback, if nothing follows.
    processes: set[str] = set()
    count = 0
    try:
        numbered = as_python(entries(list(lines), year))
        names, gaps = column([text for _, text in numbered], year), deque(lines.gaps)
        for number, text, is_quoted in _with_fences(numbered, lambda text: _parsed(text, names, year)[0].message):
            count += bool(text.strip())
            while gaps and number >= gaps[0]:
                gaps.popleft()
                for pace in reading.paces.values():
                    pace.skipped = True
            if not text.strip() or is_quoted:
                continue
            for line in _parsed(text, names, year):
                for place, index in open_lines:
                    if number - place <= FOLLOWING:
                        found[index] = _with_next(found[index], line.message)
                open_lines = [each for each in open_lines if number - each[0] < FOLLOWING]
                messages = [each for each in messages if _goes_on(found, *each, number, line)]
                if len(processes) < MOST_PROCESSES:
                    processes.add(line.process or line.name)
                elif (line.process or line.name) not in processes:
                    line = replace(line, process="", name="")
                process = line.process or line.name or reading.process
                if (message := reading.tracebacks.without_bars(process, line.message)) != line.message:
                    if not message:
                        continue
                    line = replace(line, message=message)
                if process in bare and _LAUNCHER_SAYS.search(line.message):
                    bare[process] = [replace(bare[process][0], data={**bare[process][0].data, "ended": "yes"})]
                elif process in bare and (
                    _progress(line) or not _goes_on(bare[process], bare[process][0].place, 0, number, line)
                ):
                    del bare[process]
                shown = list(_observed(reading, number, _dated(reading, line), may_show))
                if is_bare(line) and not any(each.name == RAISED for each in shown):
                    last = reading.lasts[process]
                    bare[process] = [replace(last, kind=LINE, name=RAISED, data={**last.data, "bare": "yes"})]
                for each in shown:
                    if each.kind == LINE:
                        open_lines.append((number, len(found)))
                        messages += [(number, len(found))] if each.name == RAISED else []
                    found.append(each)
    except UnreadableError as error:
        return [], Source(kind="log", name=name, problem=str(error))
    shown = [each for each in found if each.kind == LINE]  # What a flood repeats is shown once.
    ends = [one for (one,) in bare.values() if all(each.place == one.place for each in shown if each.text == one.text)]
    found = [each for each in found if each.kind != LINE or all(each.place != one.place for one in ends)] + ends
    found += reading.steps.values()
    found += [
        replace(line, text=f"{line.text} {rose}") for read, line in reading.memory.values() if (rose := read.rose())
    ]
    found += [
        replace(
            last,
            data={
                **last.data,
                **reading.paces[process].told(last.time, modified, now, yearless="yearless" in last.data),
            },
        )
        if process in reading.paces
        else last
        for process, last in reading.lasts.items()
    ]
    if not count:
        return [], Source(kind="log", name=name, problem="it is empty")
    if len(processes) >= MOST_PROCESSES:
        lines.notes.append(f"only its first {MOST_PROCESSES:,} processes are distinguished")
    found = settled(found, reading.process, reading.firsts, reading.dated)
    return found, Source(kind="log", name=name, notes=tuple(lines.notes))


def _parsed(text: str, names: Column | None, year: int) -> list[LogLine]:
    split = None if names is None else names.split(text)
    if split is None:
        return parse_all(text, year)
    name, rest = split
    return [replace(each, name=name) for each in parse_all(rest, year)]


def _with_fences(lines: Iterable[tuple[int, str]], message: Callable[[str], str]) -> Iterator[tuple[int, str, bool]]:
    """Each line, and whether it is between two fences of Markdown that are near each other: somebody's text."""
    held: list[tuple[int, str]] = []
    for number, text in lines:
        fence = "```" in text and message(text).startswith("```")
        if not held and not fence:
            yield number, text, False
            continue
        held.append((number, text))
        closed = fence and len(held) > 1
        if closed or len(held) > MOST_FENCED:
            yield from ((*each, closed) for each in held)
            held = []
    yield from ((*each, False) for each in held)


def _with_next(one: Observation, following: str, name: str = "next") -> Observation:
    text = f"{one.data.get(name, '')}\n{following[:500]}".strip("\n")
    return replace(one, data={**one.data, name: text})


_LAUNCHER_SAYS = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: status| code)? ?[:=]? ?[1-9]|non-zero exit status|`conda run .{1,300}failed|"
    r"^make(?:\[\d+\])?: \*\*\* .{1,200} Error \d"
)
"""What started the program says that it ended by a fault."""


def _goes_on(found: list[Observation], place: int, index: int, number: int, line: LogLine) -> bool:
    """Returns whether the message of an exception goes on with a line, which is kept with its first one then."""
    first = found[index]
    told = line.time is not None and first.time is not None and abs(line.time - first.time) > ONE_WRITE
    if told or ends_a_message(line.message) or line.level or number - place > MOST_OF_A_MESSAGE:
        return False
    if (line.process or line.name) not in ("", first.process):
        return True  # A line of another process comes between.
    if len(first.data.get("message", "")) < MOST_OF_ITS_TEXT:
        found[index] = _with_next(first, line.message, "message")
    return True


def _dated(reading: _Reading, line: LogLine) -> LogLine:
    """The line with its time in the past, and noted for those that have none."""
    if line.time is None:
        return line
    if line.yearless:
        line = replace(line, time=of_the_past(line.time, reading.modified))
    elif reading.dated is None:
        reading.dated = line.time
    if line.time is not None and (job := cancelled_job(line.message)):
        line = replace(line, time=reading.cancelled.setdefault(job, line.time))
    process = line.process or line.name or reading.process
    if line.time is not None:
        reading.times[process] = line.time, line.yearless
        reading.firsts.setdefault(process, line.time)
    return line


def _observed(
    reading: _Reading, number: int, line: LogLine, may_show: Callable[[str], Sequence[int]]
) -> Iterator[Observation]:
    process = line.process or line.name or reading.process
    moment, yearless = reading.times.get(process, (None, False))
    data = ({"yearless": "yes"} if yearless else {}) | ({"at_least": "yes"} if line.time is None else {})

    def observe(kind: str, name: str = "", value: float | None = None) -> Observation:
        return Observation(
            kind=kind, source=reading.source, place=number, name=name, time=moment, process=process,
            text=line.message, level=line.level, value=value, data=data,
        )  # fmt: skip

    progress = _progress(line)
    read, _ = reading.memory.get(process, (Memory(), None))
    if read.read(line.message):
        reading.memory[process] = read, observe(LINE)
    if process not in reading.lasts or not line.message.startswith((" ", "\t")):
        before = None if progress else reading.lasts.get(process)
        reading.lasts[process] = _last(before, observe(LAST))
    elif len(reading.lasts[process].data.get("next", "")) < MOST_CODE:
        reading.lasts[process] = _with_next(reading.lasts[process], line.message)
    told = told_last(line)
    raised = reading.tracebacks.raised(process, line) or bool(told)
    # The code in a traceback may name any error; what was raised says which one it was.
    is_code = reading.tracebacks.is_open(process) and is_of_a_call(line.message)
    shown = [] if is_code else _shown(reading, line.message, may_show)
    name = RAISED if raised else FATAL if line.is_fatal else ""
    left = (MOST_KNOWN if name else MOST_SAID) - len(reading.trouble)
    if left > 0 and not is_code and (name or any(text in line.message for text in _TROUBLE)):
        if (kind := _DIGITS.sub("0", line.message)) not in reading.trouble:
            yield observe(SAID, name)
        reading.trouble.add(kind)
    if raised or shown or line.is_fatal:
        keys = [(process, index, _group(reading.patterns[index], line.message)) for index in shown]
        keys = keys or [(process, -1, "")]
        if any(reading.kept[key] < MOST_OF_ONE for key in keys) and len(reading.kept) < MOST_KNOWN:
            reading.kept.update(keys)
            yield from _flushed(reading, process)
            reading.wanted[process] = 2
            shown_line = observe(LINE, name)
            if told:
                shown_line = replace(shown_line, text=told, data={**data, "lasts": "yes"})
            elif raised:  # A launcher may log what its program says as information.
                level = "" if line.level in ("I", "D") else line.level
                shown_line = replace(shown_line, level=level, data={**data, **reading.tracebacks.called(process)})
            if host := host_of(line.message) or (reading.tracebacks.host(process) if raised else ""):
                shown_line = replace(shown_line, data={**shown_line.data, "host": host})
            yield shown_line
            return
    if process in reading.paces and not progress:
        reading.paces[process].line(line.message)
    edge = _EDGES(line.message)
    if 0 in edge and _START.search(line.message):
        yield from _flushed(reading, process)
        yield observe(START)
    elif 1 in edge and _END.search(line.message):
        yield from _flushed(reading, process)
        yield observe(END)
        reading.paces.pop(process, None)
    elif progress:
        if progress[0] is not None:
            reading.paces.setdefault(process, Pace()).step(line.message, line.time)
        reached = observe(PROGRESS, value=progress[0])
        if reading.wanted[process] > 0:
            reading.wanted[process] -= 1
            yield reached
        else:
            if process not in reading.steps:
                yield reached
            reading.steps[process] = reached


def _last(before: Observation | None, last: Observation) -> Observation:
    """The last line, with those before it that no step parts from it.

    A line that differs from the one before only in its digits takes the place of that, and is counted.
    """
    if before is None:
        return last
    if _DIGITS.sub("0", before.text) == _DIGITS.sub("0", last.text):
        again = str(int(before.data.get(AGAIN, "0")) + 1)
        return replace(last, data={**last.data, BEFORE: before.data.get(BEFORE, ""), AGAIN: again})
    text = " ".join(before.text[:MOST_CODE].split())
    said = [*before.data.get(BEFORE, "").split("\n"), f"{before.place} {text}"][-LAST_WORDS:]
    return replace(last, data={**last.data, BEFORE: "\n".join(said)})


def _shown(reading: _Reading, message: str, may_show: Callable[[str], Sequence[int]]) -> list[int]:
    """Which patterns find something in a message; a flood of equal messages is searched once."""
    candidates = may_show(message)
    if not candidates:
        return []
    if message not in reading.known:
        if len(reading.known) >= MOST_KNOWN:
            reading.known.clear()
        reading.known[message] = [each for each in candidates if reading.patterns[each].search(message)]
    return reading.known[message]


def _group(pattern: re.Pattern[str], message: str) -> str:
    found = pattern.search(message) if pattern.groups else None
    return (found.group(1) or "")[:MOST_CODE] if found is not None else ""


def _progress(line: LogLine) -> tuple[float | None] | None:
    """The number of the step that a line is about, None for progress without one; nothing if it is about none."""
    if line.level in ("E", "F") and not _BAR.search(line.message):
        return None
    if (step := _STEP.search(line.message)) and not _WAITING.match(line.message, step.end()):
        return (float(next(each for each in step.groups() if each is not None)),)
    return (None,) if _SERVED.search(line.message) else None


def _flushed(reading: _Reading, process: str) -> Iterator[Observation]:
    """The last step before something is shown."""
    step = reading.steps.pop(process, None)
    if step is not None:
        yield step
