"""One line of a job's log: what launchers, loggers and collectors put before the message, taken off and understood."""

import re
from dataclasses import dataclass, replace

from jaxobs.ops.diagnosis.gathering.log_times import TIMES, moment, of_stamp, patterns
from jaxobs.ops.diagnosis.gathering.records import Record, record

MOST_LINE = 4096
"""Characters of a line that are looked at: what a failure says of itself comes first."""

_RANK = patterns("ranks")
_NAMED = patterns("names")
_LEVELS = {
    "DEBUG": "D", "INFO": "I", "NOTICE": "I", "WARN": "W", "WARNING": "W", "ERROR": "E", "CRITICAL": "F", "FATAL": "F",
    "TRACE": "D", "D": "D", "I": "I", "W": "W", "E": "E", "F": "F",
}  # fmt: skip
_NAMES = "|".join(sorted((name for name in _LEVELS if len(name) > 1), key=len, reverse=True))
_LEVEL = patterns("levels", levels=_NAMES, lower_levels=_NAMES.lower())
_LEVEL_OF_CPP = _LEVEL[4:6]
_PLACE = patterns("places")
_SHIPPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)(?: std(?:out|err) [FP])? ")
"""The time that a shipper puts before a line: kubectl, CRI, Docker."""
_NCCL = re.compile(r"[\w.-]+:\d+:\d+ \[\d+\] (?:\S+:\d+ )?NCCL (INFO|WARN|TRACE)\b")
"""Its level; the rest stays, for what it says is known with it."""
_TASK = re.compile(r"srun: error: \S+: task (\d{1,5}): ")
"""Slurm names the process that ended; the text stays whole, for what it says is known with it."""
_MOST_PREFIXES = 8
MOST_PIECES = 200
"""Lines of one message of a structured log."""
_TAG = re.compile(r"(?!kernel|systemd|slurm|dockerd|containerd|kubelet|sshd|oom)[\w./-]+\[\d+\]:(?: |$)")
"""What syslog calls the program that wrote the line."""
_UNIT = re.compile(rf"([\w.-]+) {_TAG.pattern}")
"""Host and program, as journalctl has them behind the time."""
_SEPARATOR = re.compile(r"(?:--|>>|::) +")
"""Between what a logger puts before the message and the message: Ray, Transformers."""
_COLOURS = re.compile(r"\[(?:[0-4]|22|39|49|[349][0-7])(?:;\d{1,3})*m")
"""What is left of a terminal's colours in a copy."""
_POD = re.compile(r"(?:Normal|Warning) +\w+ +[Pp]ods?/([\w.-]+)(?=\s|$)")
"""Whom an event of Kubernetes is about."""
_CANCELLED = re.compile(
    r"slurmstepd: error: \*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\b"
)
_BAR = re.compile(
    r".{0,300}\d%\|.{0,300}?"
    r"(?=\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,: ]|[IWEF]\d{4} \d\d:\d\d:\d\d|[IWEF]0000 00:00:\d{10})"
)
"""A bar of progress to which something is glued that was logged meanwhile."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line in its parts."""

    message: str
    time: float | None = None
    process: str = ""
    level: str = ""
    name: str = ""
    """What a collector calls the process, the pod or the host, where the number of the process is not given."""
    yearless: bool = False
    """Whether the year of `time` was given, not read."""
    is_fatal: bool = False
    """Whether it is a fatal message of a library in C++, with which the process ends."""


def parse_all(line: str, year: int) -> list[LogLine]:
    """A line in its parts; several, if a structured log has a message of several lines, or an exception beside it.

    Args:
      year: of times that have none.
    """
    first = parse(line, year)
    text = _ESCAPES.sub("", line) if "\x1b" in line else line
    begins = _shipped(text)
    found = record(text[begins:], year) if text.startswith("{", begins) and "\\n" in text else None
    while found is not None and found.message.startswith("{") and (inner := record(found.message, year)) is not None:
        found = inner  # a shipper's record may hold the program's own
    texts = (found.message, found.exception) if found is not None else ()
    pieces = [piece for text in texts for piece in text[: 4 * MOST_LINE].split("\n") if piece.strip()]
    if len(pieces) < 2:
        return [first]
    # The first piece may have a prefix of its own, which `parse` has taken off.
    rest = [replace(first, message=piece[:MOST_LINE].rstrip(), is_fatal=False) for piece in pieces[1:MOST_PIECES]]
    return [replace(first, message=first.message.split("\n")[0]), *rest]


def parse(line: str, year: int) -> LogLine:
    """A line in its parts; what is not understood stays in the message.

    Args:
      year: of times that have none.
    """
    text = _ESCAPES.sub("", line[:MOST_LINE]) if "\x1b" in line else line[:MOST_LINE]
    if _COLOURS.match(text):
        text = _COLOURS.sub("", text)
    begins = _shipped(text)
    if text.startswith("{", begins):
        found = record(text[begins:] if len(line) <= MOST_LINE else line[_shipped(line) :], year)
        if found is not None:
            return _of_record(found, _of_text(text[:begins], year), year)
    if "%|" in text and (bar := _BAR.match(text)):
        text = text[bar.end() :]
    return _of_text(text, year)


def _shipped(text: str) -> int:
    """Returns where a line goes on behind what a shipper put before it: names and a time, in whatever order."""
    place = 0
    for _ in range(_MOST_PREFIXES):
        found = _match(_NAMED, text, place) or _SHIPPED.match(text, place) or _TAG.match(text, place)
        if found is None:
            stamp = _match(TIMES, text, place)
            found = stamp if stamp and stamp.groupdict().get("host") else _UNIT.match(text, place) if place else None
        if found is None:
            break
        place = found.end()
    return place


def _of_record(found: Record, outer: LogLine, year: int) -> LogLine:
    line = parse(found.message, year)  # a shipper's record may hold the program's own
    said = _LEVELS.get(found.level, "")
    by_stream = found.by_collector and said in ("I", "D", "E")
    times = [(each.time, each.yearless) for each in (line, outer) if each.time is not None]
    time, yearless = (found.time, False) if found.time is not None else (*times, (None, False))[0]
    return replace(
        line, level=line.level or ("" if by_stream else said), time=time, yearless=yearless,
        process=line.process if found.rank is None else f"process {found.rank}",
        name=found.instance or line.name or outer.name,
    )  # fmt: skip


def _of_text(text: str, year: int) -> LogLine:
    time: float | None = None
    process, name, level, yearless, place, is_fatal, shipped = "", "", "", False, 0, False, False
    for _ in range(_MOST_PREFIXES):
        before = place
        if not process and (rank := _match(_RANK, text, place)):
            process, place = f"process {int(rank.group(1))}", rank.end()
        elif not process and (named := _match(_NAMED, text, place)):
            name, place = named.group(1) or name, named.end()
        if (time is None or shipped) and (stamp := _match(TIMES, text, place)):
            # A shipper knows when it got a line, and its program when the line was written, perhaps without a year.
            own, guessed = moment(stamp.groupdict(), year)
            if time is None or (own is not None and not guessed):
                time, yearless = own, guessed
            by_shipper = _SHIPPED.match(text, place)
            shipped = by_shipper is not None or bool(stamp.groupdict().get("host"))
            is_fatal = is_fatal or (not level and stamp.groupdict().get("level") == "F")
            level = level or stamp.groupdict().get("level") or ""
            # Behind a shipper's time one space is the shipper's, and more are the indentation of a traceback.
            logs = by_shipper is None or level or _match(_LEVEL, text, stamp.end())
            place = stamp.end() if logs or by_shipper is None else by_shipper.end()
            if host := stamp.groupdict().get("host"):
                name = name or host
                place = tag.end() if (tag := _TAG.match(text, place)) else place
            elif shipped and (unit := _UNIT.match(text, place)):
                name, place = name or unit.group(1), unit.end()
        if not level and (said := _match(_LEVEL, text, place)):
            level, place = _LEVELS[said.group("level").upper()], said.end()
            is_fatal = said.group("level") == "F"
        if (time is not None or level) and (where := _match(_PLACE, text, place)):
            place = where.end()
        if (time is not None or level) and (end := _SEPARATOR.match(text, place)):
            place = end.end()
        if place == before:
            break
    if level in ("I", "D"):
        place, level, is_fatal = _inner(text, place, level)
    if not level and (said := _NCCL.match(text, place)):
        level = _LEVELS[said.group(1)]
    if not process and (task := _TASK.match(text, place)):
        process = f"process {int(task.group(1))}"
    if not process and not name and (about := _POD.match(text, place)):
        name = about.group(1)
    if time is None and (cancelled := _CANCELLED.match(text, place)):
        time = of_stamp(cancelled.group(1), year)
    return LogLine(text[place:].rstrip(), time, process, level, name, yearless, is_fatal)


def without_time(text: str) -> int:
    """Where a line goes on behind the time with which it begins; 0 if it begins with none, or with that of syslog."""
    stamp = _SHIPPED.match(text) or _match(TIMES, text, 0)
    return 0 if stamp is None or stamp.groupdict().get("host") else stamp.end()


def _inner(text: str, start: int, level: str) -> tuple[int, str, bool]:
    """Where the message begins of a line that a launcher logs as information, with its own time, level and place."""
    stamp = _match(TIMES, text, start)
    place, found = (stamp.end(), stamp.groupdict().get("level")) if stamp else (start, None)
    if found is None and (said := _match(_LEVEL if stamp else _LEVEL_OF_CPP, text, place)):
        found, place = _LEVELS[said.group("level").upper()], said.end()
    if place == start:
        return start, level, False
    if where := _match(_PLACE, text, place):
        place = where.end()
    return place, found or level, found == "F"


def _match(patterns: tuple[re.Pattern[str], ...], text: str, place: int) -> re.Match[str] | None:
    for each in patterns:
        if (found := each.match(text, place)) is not None:
            return found
    return None
