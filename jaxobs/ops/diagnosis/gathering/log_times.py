"""The times at the beginning of lines, in the forms of loggers, launchers and collectors."""

import datetime
import re
import tomllib
from importlib import resources
from typing import Any


def patterns(name: str, **texts: str) -> tuple[re.Pattern[str], ...]:
    """Returns a list of `log_texts.toml`, with texts in place of each `${name}`."""
    lists = tomllib.loads((resources.files(__package__) / "log_texts.toml").read_text(encoding="utf-8"))
    found: list[str] = lists[name]
    for word, text in texts.items():
        found = [each.replace(f"${{{word}}}", text) for each in found]
    return tuple(map(re.compile, found))


def either(name: str) -> str:
    """Returns the expressions of a list as one, of which any may be in a text."""
    return "|".join(each.pattern for each in patterns(name))


TIMES = patterns("times")
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
