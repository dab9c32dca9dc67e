"""Minutes that Prometheus does not see, cut out of what a process does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tools.alert_suites.scenes import Part

DAY = 1440
"""Minutes."""
WEEK = 7 * DAY


def cut(parts: Iterable[Part], minutes: int) -> list[Part]:
    """As much of the parts as fits."""
    found, left = [], minutes
    for part in parts:
        if left > 0:
            found.append(replace(part, minutes=min(part.minutes, left)))
            left -= part.minutes
    return found


def without(parts: Iterable[Part], at: int, minutes: int, *, failed: bool = False) -> list[Part]:
    """The parts, of which some minutes are not scraped; what happens in them happens all the same.

    Args:
      parts: what the process does
      at: the first of these minutes, counted from the start of the process; it may be before that
      minutes: how many
      failed: whether scrapes fail, so that `up` is 0, instead of Prometheus being away
    """
    found, passed = [], 0
    for part in parts:
        first, last = max(at - passed, 0), min(at + minutes - passed, part.minutes)
        if first >= part.minutes or last <= first:
            found.append(part)
        else:
            pieces = ((first, True), (last - first, False), (part.minutes - last, True))
            began = False
            for length, seen in pieces:
                if length:
                    once = {} if began else part.once
                    scraped = seen and part.scraped
                    found.append(replace(part, minutes=length, scraped=scraped, fails=failed and not seen, once=once))
                    began = True
        passed += part.minutes
    return found
