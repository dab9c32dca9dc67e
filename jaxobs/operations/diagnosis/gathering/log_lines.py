"""One line of a job's log: what launchers, loggers and collectors put before the message, taken off and understood."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass, replace
from typing import Any

from jaxobs.base import json_lines

MOST_LINE = 4096
"""Characters of a line that are looked at: what a failure says of itself comes first."""

_RANK = (
    re.compile(r"\s*\[(?:[\w.-]*?\b)?(?:rank|proc(?:ess)?|worker|host|task|node)[ _=-]?(\d{1,5})\]:? ?", re.IGNORECASE),
    re.compile(r"\s*\[\d+,(\d{1,5})\]<std(?:err|out)>: ?"),  # mpirun --tag-output
    re.compile(r"\s*(\d{1,5}): (?=\S)"),  # srun --label
    re.compile(r"(?:rank|process|worker|host|task|node)[ _-]?(\d{1,5})\s*[:|]\s", re.IGNORECASE),
    re.compile(r"[a-z][\w.-]*?-(\d{1,5})\s+\|\s"),  # docker compose
    re.compile(r"(\d{1,5}) - (?=[\w.]+ - )"),  # Levanter
    re.compile(r"\[pod/[\w.-]*?-(\d{1,5})(?:-\w{5})?/[\w.-]+\] ?"),  # kubectl logs --prefix
)
_NAMED = (
    re.compile(r"\[pod/([\w.-]+)/[\w.-]+\] ?"),
    re.compile(r"\([\w.-]+,? (?:\w+=[\w.-]+ )*pid=\d+, ip=([\d.]+)\) "),  # Ray
    re.compile(r"()\([\w.-]+,? (?:\w+=[\w.-]+ )*pid=\d+\) "),
)
_TIMES = (
    re.compile(
        r"\[?(?P<date>\d{4}[-/]\d\d[-/]\d\d)[T _](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
        r"(?P<zone>Z| ?[+-]\d\d:?\d\d| UTC)?\]?[:,]?\s*(?:- )?"
    ),
    re.compile(r"(?P<level>[IWEFD])0000 00:00:(?P<epoch>\d{9,10}(?:\.\d+)?)\s+"),
    re.compile(r"(?P<level>[IWEFD])(?P<mmdd>\d{4}) (?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<part>\d{1,9}))?\s+"),
    re.compile(r"(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?P<part>) [\w.-]+ (?=\S+:)"),
    re.compile(
        r"\[\w{3} (?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?P<part>) (?P<year>\d{4})\] "
    ),
    re.compile(r"\[(?P<epoch>\d{10}\.\d+)\] "),
    re.compile(r"(?P<mmdd>\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?P<part>)\s+"),  # vLLM
    re.compile(r"(?P<undated>\d\d:\d\d:\d\d[.,]\d{3}) (?=\[)"),  # Orbax' examples
)
_LEVELS = {
    "DEBUG": "D", "INFO": "I", "NOTICE": "I", "WARN": "W", "WARNING": "W", "ERROR": "E", "CRITICAL": "F", "FATAL": "F",
    "TRACE": "D", "D": "D", "I": "I", "W": "W", "E": "E", "F": "F",
}  # fmt: skip
_NAMES = "|".join(sorted((name for name in _LEVELS if len(name) > 1), key=len, reverse=True))
_LEVEL = (
    re.compile(rf"[\[<(]?(?P<level>{_NAMES})[\])>]?\s*(?::(?P<logger>[\w.]+):| - |: |\s+|\|)"),
    re.compile(rf"(?P<level>{_NAMES}):(?=\d{{4}}-\d\d-\d\d )"),  # JAX
    re.compile(rf"[\w.-]+ - (?:[\w.]+\.py:\d+ - )?(?P<level>{_NAMES}) (?:-|::) "),
    re.compile(rf"[\w.]+ +(?P<level>{_NAMES}):? +"),
    re.compile(r"(?P<level>[IWEF]) +(?=[\w./-]+\.(?:cc|cpp|h|py):\d+\])"),
    re.compile(r"(?P<level>[IWEFD]) (?=external/|xla/|tensorflow/|tsl/)"),
    re.compile(r"\[(?P<level>[IWEFD])\] "),
)
_LEVEL_OF_CPP = _LEVEL[4:6]
_PLACE = (
    re.compile(r"[A-Za-z_]\w*(?:\.\w+)+:\d{1,6}: "),
    re.compile(r"\d{1,20}\s+(?=[\w./-]+:\d+\])"),
    re.compile(r"[\w./-]+\.(?:cc|cpp|cu|h|hpp|py|rs|go):\d+\]\s?"),
    re.compile(r"\[[\w./-]+\.(?:cc|cpp|cu|h|py):\d+\]\s?"),
    re.compile(r"\[(?:[\w.]+(?::\d+)?|MainThread|\d+)\](?:\s+|(?=\[[A-Z]+\] - ))"),
    re.compile(r"\(?[\w./]+\.py:\d+\)?[: ]\s*"),
)
_NCCL = re.compile(r"[\w.-]+:\d+:\d+ \[\d+\] (?:\S+:\d+ )?NCCL (INFO|WARN|TRACE)\b")
"""Its level; the rest stays, for what it says is known with it."""
_MONTHS = {name: 1 + number for number, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
)}  # fmt: skip
_MOST_PREFIXES = 8
MOST_PIECES = 200
"""Lines of one message of a structured log."""
_MESSAGES = ("message", "msg", "textPayload", "log", "event")
_EXCEPTIONS = ("exception", "exc_info", "stack_trace", "stacktrace", "traceback")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line in its parts."""

    message: str
    time: float | None = None
    process: str = ""
    level: str = ""
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
    if not line.startswith("{") or "\\n" not in line:
        return [first]
    try:
        body = json_lines.loads(line)
    except (ValueError, json.JSONDecodeError):
        return [first]
    inner = body.get("jsonPayload") if isinstance(body, dict) else None
    fields = {**inner, **body} if isinstance(inner, dict) else body if isinstance(body, dict) else {}
    texts = [_one_of(fields, *_MESSAGES), _one_of(fields, *_EXCEPTIONS)]
    pieces = [piece for text in texts if text for piece in text[: 4 * MOST_LINE].split("\n") if piece.strip()]
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
    if text.startswith("{"):
        found = _of_json(text if len(line) <= MOST_LINE else line, year)
        if found is not None:
            return found
    return _of_text(text, year)


def _of_text(text: str, year: int) -> LogLine:
    moment: float | None = None
    process, level, yearless, place, is_fatal = "", "", False, 0, False
    for _ in range(_MOST_PREFIXES):
        before = place
        if not process and (rank := _match(_RANK, text, place)):
            process, place = f"process {int(rank.group(1))}", rank.end()
        elif not process and (named := _match(_NAMED, text, place)):
            process, place = named.group(1), named.end()
        if moment is None and (stamp := _match(_TIMES, text, place)):
            moment, yearless = _moment(stamp.groupdict(), year)
            level = level or stamp.groupdict().get("level") or ""
            is_fatal = level == "F"
            place = stamp.end()
        if not level and (said := _match(_LEVEL, text, place)):
            level, place = _LEVELS[said.group("level")], said.end()
            is_fatal = said.group("level") == "F"
        if (moment is not None or level) and (where := _match(_PLACE, text, place)):
            place = where.end()
        if place == before:
            break
    if level in ("I", "D"):
        place, level, is_fatal = _inner(text, place, level)
    if not level and (said := _NCCL.match(text, place)):
        level = _LEVELS[said.group(1)]
    return LogLine(text[place:].rstrip(), moment, process, level, yearless, is_fatal)


def _inner(text: str, start: int, level: str) -> tuple[int, str, bool]:
    """Where the message begins of a line that a launcher logs as information, with its own time, level and place."""
    stamp = _match(_TIMES, text, start)
    place, found = (stamp.end(), stamp.groupdict().get("level")) if stamp else (start, None)
    if found is None and (said := _match(_LEVEL if stamp else _LEVEL_OF_CPP, text, place)):
        found, place = _LEVELS[said.group("level")], said.end()
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


def _moment(parts: dict[str, Any], year: int) -> tuple[float | None, bool]:
    """Seconds since the epoch, and whether the year was a guess. Without a zone it is UTC."""
    try:
        if parts.get("undated"):
            return None, False
        if parts.get("epoch"):
            return float(parts["epoch"]), False
        if parts.get("date"):
            years, month, day = map(int, re.split("[-/]", parts["date"]))
        elif parts.get("mmdd"):
            years, month, day = year, int(parts["mmdd"][:2]), int(parts["mmdd"][-2:])
        else:
            years, month, day = int(parts.get("year") or year), _MONTHS[parts["month"]], int(parts["day"])
        hour, minute, second = map(int, parts["clock"].split(":"))
        moment = datetime.datetime(years, month, day, hour, minute, min(second, 59), tzinfo=datetime.timezone.utc)
    except (ValueError, KeyError, OverflowError):
        return None, False
    seconds = moment.timestamp() + float(f"0.{parts.get('part') or 0}")
    return seconds - _offset(parts.get("zone")), not (parts.get("date") or parts.get("year"))


def _offset(zone: str | None) -> float:
    """Seconds east of UTC."""
    found = re.fullmatch(r" ?([+-])(\d\d):?(\d\d)", zone or "")
    if found is None:
        return 0.0
    return (1 if found.group(1) == "+" else -1) * (3600.0 * int(found.group(2)) + 60.0 * int(found.group(3)))


# ------------------------------------------------------------------------------------------------- structured logs


def _of_json(text: str, year: int) -> LogLine | None:
    """A line of a structured log; None if it is none."""
    try:
        body = json_lines.loads(text)
    except (ValueError, json.JSONDecodeError):
        return None
    if not isinstance(body, dict):
        return None
    inner = body.get("jsonPayload")
    fields = {**inner, **body} if isinstance(inner, dict) else body
    message = _one_of(fields, *_MESSAGES)
    if message is None:
        return None
    line = _of_text(message[:MOST_LINE], year)
    stamp = _one_of(fields, "timestamp", "time", "ts", "asctime", "@timestamp")
    moment = line.time
    if stamp is not None and (found := _match(_TIMES[:1], stamp, 0)):
        moment = _moment(found.groupdict(), year)[0]
    level = _LEVELS.get((_one_of(fields, "severity", "level", "levelname") or "").upper(), line.level)
    rank = _one_of(fields, "process_index", "rank", "process")
    process = f"process {int(rank)}" if rank is not None and re.fullmatch(r"\d{1,5}", rank) else line.process
    return LogLine(line.message, moment, process, level, line.yearless and moment == line.time, line.is_fatal)


def _one_of(fields: dict[str, Any], *names: str) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
    return None
