"""The times at the beginning of lines, in the forms of loggers, launchers and collectors."""

from __future__ import annotations

import datetime
import re
from typing import Any

TIMES = (
    re.compile(
        r"\[?(?P<date>\d{4}[-/]\d\d[-/]\d\d)[T _](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
        r"(?P<zone>Z| ?[+-]\d\d:?\d\d| UTC)?\]?(?: std(?:out|err) [FP] |[:,]?\s*(?:- |\| *)?)"
    ),
    re.compile(r"(?P<level>[IWEFD])0000 00:00:(?P<epoch>\d{9,10}(?:\.\d+)?)\s+"),
    re.compile(r"(?P<level>[IWEFD])(?P<mmdd>\d{4}) (?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<part>\d{1,9}))?\s+"),
    re.compile(
        r"(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<part>\d{1,9}))?"
        r"(?P<zone>Z)? (?P<host>[\w.-]+) (?(zone)(?=\S)|(?=\S+:))"
    ),
    re.compile(
        r"<\d{1,3}>1 (?P<date>\d{4}-\d\d-\d\d)T(?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<part>\d{1,9}))?"
        r"(?P<zone>Z|[+-]\d\d:\d\d) (?P<host>\S+) \S+ \S+ \S+ (?:-|(?:\[[^\]]*\])+) "
    ),  # RFC 5424
    re.compile(
        r"\[\w{3} (?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?P<part>) (?P<year>\d{4})\] "
    ),
    re.compile(
        r"\w{3} (?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?P<part>) (?P<year>\d{4}): "
    ),  # Cray's PMI
    re.compile(
        r"\d{3} \(\d+\.\d+\.\d+\) (?P<date>\d{4}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<part>\d{1,9}))? "
    ),  # HTCondor's events
    re.compile(r"\[(?P<epoch>\d{10}\.\d+)\] "),
    re.compile(r"(?P<mmdd>\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?P<part>)\s+(?:\| *)?"),  # vLLM
    re.compile(
        r"(?P<level>[IWED]) (?P<mmdd>\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?P<part>) (?=[\w.]+\.py:\d+\] )"
    ),  # SkyPilot
    re.compile(
        r"\[(?P<level>[IWEF])(?P<mmdd>\d{3,4}) (?P<clock>\d\d:\d\d:\d\d)\.(?P<part>\d{1,9}) "
        r"(?=[\w.]+\.(?:cpp|cc|h):\d+\])"
    ),  # PyTorch
    re.compile(r"\[(?P<mmdd>\d\d/\d\d) (?P<clock>\d\d:\d\d:\d\d)(?P<part>) (?=[\w.]+\]: )"),  # fvcore
    re.compile(r"(?P<undated>\d\d:\d\d:\d\d[.,]\d{3}) (?=\[)"),  # Orbax' examples
)
_MONTHS = {name: 1 + number for number, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
)}  # fmt: skip


def moment(parts: dict[str, Any], year: int) -> tuple[float | None, bool]:
    """Seconds since the epoch, and whether the year was a guess. Without a zone it is UTC."""
    try:
        if parts.get("undated"):
            return None, False
        if parts.get("epoch"):
            return float(parts["epoch"]), False
        if parts.get("date"):
            years, month, day = map(int, re.split("[-/]", parts["date"]))
        elif parts.get("mmdd"):
            years, month, day = year, int(parts["mmdd"][:-2].rstrip("-/")), int(parts["mmdd"][-2:])
        else:
            years, month, day = int(parts.get("year") or year), _MONTHS[parts["month"]], int(parts["day"])
        hour, minute, second = map(int, parts["clock"].split(":"))
        day_time = datetime.datetime(years, month, day, hour, minute, min(second, 59), tzinfo=datetime.timezone.utc)
    except (ValueError, KeyError, OverflowError):
        return None, False
    seconds = day_time.timestamp() + float(f"0.{parts.get('part') or 0}")
    return seconds - _offset(parts.get("zone")), not (parts.get("date") or parts.get("year"))


def of_the_past(time: float, latest: float | None) -> float:
    """A time without a year, a year back if it would be later than the file was written."""
    return time if latest is None or time <= latest + _DAY else _moved(time, -1)


def nearest(time: float, reference: float) -> float:
    """A time without a year, in the year that brings it nearest to another one."""
    years = _year(reference) - _year(time)
    return min((_moved(time, years + more) for more in (0, -1, 1)), key=lambda each: abs(each - reference))


_DAY = 86_400.0


def _year(time: float) -> int:
    return datetime.datetime.fromtimestamp(time, datetime.timezone.utc).year


def _moved(time: float, years: int) -> float:
    moment = datetime.datetime.fromtimestamp(time, datetime.timezone.utc)
    try:
        return moment.replace(year=moment.year + years).timestamp()
    except ValueError:  # the 29th of February
        return time


def _offset(zone: str | None) -> float:
    """Seconds east of UTC."""
    found = re.fullmatch(r" ?([+-])(\d\d):?(\d\d)", zone or "")
    if found is None:
        return 0.0
    return (1 if found.group(1) == "+" else -1) * (3600.0 * int(found.group(2)) + 60.0 * int(found.group(3)))


def of_stamp(stamp: str | None, year: int) -> float | None:
    """A time as text, or as seconds since the epoch or thousandths of them."""
    if stamp is None:
        return None
    if found := TIMES[0].match(stamp):
        return moment(found.groupdict(), year)[0]
    if re.fullmatch(r"\d{10,19}(?:\.\d+)?", stamp):
        digits = len(stamp.partition(".")[0])
        return float(stamp) / 1000.0 ** max(0, (digits - 10 + 1) // 3)
    return None
