"""The result of played weeks as a table in a page, between two marks: a row for each fleet."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from pathlib import Path

from tools.weeks.gaps import DAY
from tools.weeks.playing import Played

BEGIN, END = "<!-- weeks: begin -->", "<!-- weeks: end -->"
_HEAD = """
Written by `python -m tools.weeks --markdown docs/alerts.md`.

| fleet | played on | seeds | days | processes | most at once | series | samples | pages | tickets |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


def write(page: Path, played: Iterable[Played]) -> None:
    """Replaces the rows of the fleets that were played; those of others stay.

    Raises:
      ValueError: the page has no marks.
    """
    text = page.read_text(encoding="utf-8")
    found = re.search(f"{re.escape(BEGIN)}(.*?){re.escape(END)}", text, re.DOTALL)
    if found is None:
        raise ValueError(f"{page} has no `{BEGIN}` and `{END}`.")
    rows = dict(re.findall(r"^\| ([a-z]+) (\| \d.*)$", found[1], re.MULTILINE)) | drawn(list(played))
    table = "".join(f"| {fleet} {row}\n" for fleet, row in rows.items())
    whole = f"{text[: found.start()]}{BEGIN}\n{_HEAD}{table}\n{END}{text[found.end() :]}"
    page.write_text(whole, encoding="utf-8")


def drawn(played: list[Played]) -> dict[str, str]:
    """A row for each fleet, over all weeks that were played of it."""
    today = datetime.datetime.now(datetime.UTC).date()
    found = {}
    for fleet in dict.fromkeys(each.fleet for each in played):
        own = [each for each in played if each.fleet == fleet]
        figures = (
            f"{today}", ", ".join(f"{each.seed}" for each in own), f"{sum(each.minutes for each in own) / DAY:g}",
            f"{sum(each.processes for each in own):,}", f"{max(each.at_once for each in own):,}",
            f"{sum(each.series for each in own):,}", f"{sum(each.samples for each in own):,}",
            f"{sum(each.pages for each in own)}", f"{sum(each.tickets for each in own)}",
        )  # fmt: skip
        found[fleet] = f"| {' | '.join(figures)} |"
    return found
