"""The result of played weeks as a table in a page, between two marks."""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from tools.weeks.gaps import DAY
from tools.weeks.playing import Played

BEGIN, END = "<!-- weeks: begin -->", "<!-- weeks: end -->"


def write(page: Path, played: Iterable[Played], arguments: Iterable[str]) -> None:
    """Replaces what is between the marks.

    Raises:
      ValueError: the page has no marks.
    """
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{page} has no `{BEGIN}` and `{END}`.")
    own = f"{BEGIN}\n{drawn(list(played), list(arguments))}{END}"
    page.write_text(pattern.sub(lambda _: own, text), encoding="utf-8")


def drawn(played: list[Played], arguments: list[str]) -> str:
    """A row for each fleet, over all weeks that were played of it."""
    command = shlex.join(["python", "-m", "tools.weeks", *arguments])
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        f"Written by `{command}` on {today}.", "",
        "| fleet | days | processes, at most at once | series | samples | pages | tickets |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for fleet in dict.fromkeys(each.fleet for each in played):
        own = [each for each in played if each.fleet == fleet]
        figures = (
            f"{sum(each.minutes for each in own) / DAY:g}",
            f"{sum(each.processes for each in own):,}, {max(each.at_once for each in own):,}",
            f"{sum(each.series for each in own):,}", f"{sum(each.samples for each in own):,}",
            f"{sum(each.pages for each in own)}", f"{sum(each.tickets for each in own)}",
        )  # fmt: skip
        lines.append(f"| {fleet} | {' | '.join(figures)} |")
    return "\n".join(["", *lines, "", ""])
