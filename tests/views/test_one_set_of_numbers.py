"""Every figure of a run is the same wherever it is shown: in texts, in JSON, on the page and in the last report."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.page_fixtures import chrome, serving
from playwright.sync_api import Browser, Page

from benchmarks.incidents.scenarios import scenarios
from jaxobs import cli
from jaxobs.facts.events import plain
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.verdict import costs
from jaxobs.recorder import last_minutes
from jaxobs.recorder.last_minutes import Ending
from jaxobs.views import report

__all__ = ["chrome"]

Figures = dict[tuple[str, ...], float]

FEWEST = 24
"""Recorded runs."""
CLOSE = {"steps": (0.0, 0.0), "goodput": (0.0, 0.0051), "seconds": (0.051, 0.0501)}
"""Relative and absolute differences of two forms of a figure: a whole percent, a tenth of a second; else two digits."""
SHOWN = 80
"""Characters of a sentence that every view shows, however narrow."""
_UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_DURATION = r"[\d.,]+ ?(?:ns|µs|ms|s|min|m|h)\b(?: ?[\d.]+ ?(?:s|min|m)\b)?"


def recorded() -> Iterator[tuple[str, str]]:
    """Yields the name and the event log of each recorded run of one process whose time is known."""
    for scenario in scenarios():
        for kind, name, log in scenario.sections:
            if kind == "event-log" and len(set(re.findall(r'"pid": (\d+)', log))) == log.count('"standing": {') == 1:
                yield f"{scenario.name} {name}", log


def seconds(shown: str) -> float:
    """Returns the seconds of `2.73 s`, `1m20s` or `1 min 20 s`."""
    found = re.findall(r"([\d.,]+) ?([a-zµ]+)", shown)
    return sum(float(number.replace(",", "")) * _UNITS[unit] for number, unit in found)


def number(shown: str) -> float:
    return float(shown.replace(",", ""))


def squeezed(text: str) -> str:
    """Returns a text without white space, where lines break, and without what marks code in it."""
    return "".join(text.replace("`", "").split())


def short_names(figures: Figures) -> Figures:
    """Returns the figures of loops by the ends of their names, as a narrow view shows them."""
    return {tuple(each.rpartition(".")[2] for each in key): value for key, value in figures.items()}


# ----------------------------------------------------------------------------------------- the figures of each view


def of_snapshot(snapshot: Snapshot) -> Figures:
    """Returns the figures as the process counted them."""
    assert snapshot.wall is not None
    found: Figures = {("seconds", name): each for name, each in snapshot.wall.seconds.items() if each}
    if snapshot.wall.goodput is not None:
        found["goodput",] = snapshot.wall.goodput
    for loop in snapshot.loops:
        found["steps", loop.name] = loop.steps
        if loop.p50_seconds is not None and loop.steps_per_second is not None:
            found["median", loop.name], found["rate", loop.name] = loop.p50_seconds, loop.steps_per_second
    return found


def of_text(text: str) -> Figures:
    """Returns those of `jaxobs explain` and `jaxobs top`."""
    found: Figures = {
        ("seconds", name.replace(" ", "_")): seconds(shown)
        for name, shown in re.findall(rf"(?:^| ·) \S ([a-z ]+) ({_DURATION}) [\d.<]+%", text, re.MULTILINE)
    }
    found.update((("goodput",), number(share) / 100) for share in re.findall(r"─ goodput (\d+) %", text))
    for name, steps, rest in re.findall(r"^ (\S+)  +([\d,]+) steps? · (.*)", text, re.MULTILINE):
        found["steps", name] = number(steps)
        found.update((("rate", name), number(rate)) for rate in re.findall(r"([\d.,]+) per second", rest)[:1])
        found.update((("median", name), seconds(shown)) for shown in re.findall(rf"p50 ({_DURATION})", rest))
    return found


def of_object(shown: Mapping[str, Any]) -> Figures:
    """Returns those of `jaxobs explain --json`."""
    found: Figures = {}
    for loop in shown["loops"]:
        found["steps", loop["name"]] = loop["steps"]
        if loop["p50_seconds"] is not None:
            found["median", loop["name"]], found["rate", loop["name"]] = loop["p50_seconds"], loop["steps_per_second"]
    return found


def of_page(page: Page) -> Figures:
    """Returns those of the page and of the report."""
    found: Figures = {}
    for part in page.locator("#wall-legend > *").all():
        found["seconds", part.get_attribute("data-category") or ""] = seconds(part.locator("b").inner_text())
    found.update((("goodput",), number(each) / 100) for each in re.findall(r"\d+", page.inner_text("#wall-goodput")))
    for row in page.locator("#loops-rows tr").all():
        name, steps, rate, median = (row.locator("td, th").nth(at).inner_text() for at in range(4))
        name = re.sub(r"\s|found$", "", name)
        found["steps", name] = number(steps)
        if "s" in median:
            found["rate", name], found["median", name] = number(rate), seconds(median.split("p99")[0])
    return found


def of_last_minutes(text: str) -> Figures:
    """Returns those of the report that a process leaves when it dies."""
    of_time = " ".join(text.split())
    found: Figures = {
        ("seconds", name): seconds(shown) for name, shown in re.findall(rf"([a-z_]+) ({_DURATION}) \(\d+%\)", of_time)
    }
    found.update((("goodput",), number(share) / 100) for share in re.findall(r"goodput (\d+)%:", of_time))
    for name, steps, each in re.findall(r"^  (\S+): ([\d,]+) steps?(?:, ([\d.e-]+) s each)?", text, re.M):
        found["steps", name] = number(steps)
        found |= {("median", name): float(each)} if each else {}
    return found


# --------------------------------------------------------------------------------------------------------- the test


def views_of(path: Path, snapshot: Snapshot, page: Page, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Returns what each command prints about a run, and opens its report in the page."""
    shown = {"last minutes": last_minutes.text(Ending(time=snapshot.time, what="SIGTERM"), snapshot, ())}
    with serving(snapshot) as server:
        for command in (["explain", str(path)], ["explain", "--json", str(path)], ["top", "--once", server.url]):
            cli.main(command)
            shown[" ".join(command[:-1])] = capsys.readouterr().out
    cli.main(["report", str(path), "--out", str(path.with_suffix(".html"))])
    capsys.readouterr()
    page.goto(path.with_suffix(".html").as_uri())
    return shown


@pytest.mark.slow
def test_a_figure_is_the_same_in_every_view(
    tmp_path: Path, chrome: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    page, path = chrome.new_page(), tmp_path / "events.jsonl"
    compared, runs = 0, list(recorded())
    for name, log in runs:
        path.write_text(log, encoding="utf-8")
        (recording,) = report.read(str(path)).recordings
        snapshot = recording.snapshot()
        shown, known = views_of(path, snapshot, page, capsys), short_names(of_snapshot(snapshot))
        as_object = json.loads(shown["explain --json"])
        for view, found in {
            "explain": of_text(shown["explain"]),
            "explain --json": of_object(as_object),
            "top": of_text(shown["top --once"]),
            "report": of_page(page),
            "last minutes": of_last_minutes(shown["last minutes"]),
        }.items():
            kinds = Counter(kind for kind, *_ in found)
            assert kinds["steps"] == len(snapshot.loops), (name, view)
            assert kinds["seconds"] or view == "explain --json", (name, view)
            for figure, value in short_names(found).items():
                rel, least = CLOSE.get(figure[0], (0.051, 0.0))
                assert value == pytest.approx(known[figure], rel=rel, abs=least), (name, view, figure)
                compared += 1
        verdict = snapshot.verdict
        assert verdict is not None
        texts = [shown["explain"], shown["top --once"], page.inner_text("#verdict")]
        headline = squeezed(verdict.headline.partition(" Cost so far")[0])[:SHOWN]
        assert all(headline in squeezed(text) for text in texts), name
        costs_shown = {each["id"]: each["cost"] for each in as_object["findings"] if not each["ended"]}
        assert costs_shown == {each.id: plain(each.cost) for each in verdict.findings}, name
        assert all(squeezed(costs(each.cost)) in squeezed(texts[0]) for each in verdict.findings), name
        for shown_cost in re.findall(rf"({_DURATION})(?: of it)? lost", page.inner_text("#main")):
            known_costs = [each.cost.seconds or 0.0 for each in verdict.findings]
            close = [each for each in known_costs if seconds(shown_cost) == pytest.approx(each, rel=0.051)]
            assert close, (name, shown_cost)
    assert len(runs) >= FEWEST and compared > 20 * len(runs)
