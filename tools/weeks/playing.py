"""Plays the samples of a fleet's weeks to the rules, and says what Alertmanager would have sent.

The program in `tools/go/weeks` evaluates the rules with Prometheus' own PromQL engine and alerting rules.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.site import Site
from tools.alert_suites import scenes, suites
from tools.alert_suites.scenes import Process
from tools.weeks.gaps import DAY
from tools.weeks.research import research
from tools.weeks.serving import serving
from tools.weeks.training import training

Fleet = Callable[[random.Random, int, int], Iterator[Process]]
"""The processes of some minutes, by chance: how many at most at a time."""

FLEETS: dict[str, Fleet] = {"training": training, "serving": serving, "research": research}
PLAYER = Path(__file__).parent.parent / "go" / "weeks"
CHUNK = 360
"""Minutes that are evaluated at once; more of them take more memory."""
SITE = Site(extended=True)


@dataclass(frozen=True)
class Sent:
    """A page or a ticket, for as long as it lasted."""

    alert: str
    severity: str
    labels: dict[str, str]
    first: int
    """Minute."""
    last: int

    def __str__(self) -> str:
        whose = ", ".join(f'{name}="{value}"' for name, value in sorted(self.labels.items()))
        day, minute = divmod(self.first, DAY)
        lasted = self.last - self.first + 1
        return (
            f"{self.severity} {self.alert}{{{whose}}}: day {day + 1}, {minute // 60:02}:{minute % 60:02}, {lasted} min"
        )


@dataclass(frozen=True)
class Played:
    """Result of one fleet's weeks."""

    fleet: str
    seed: int
    minutes: int
    processes: int
    at_once: int
    """The most processes that lived in one minute."""
    series: int
    samples: int
    sent: list[Sent]
    seconds: float

    @property
    def pages(self) -> int:
        return sum(each.severity == "critical" for each in self.sent)

    @property
    def tickets(self) -> int:
        return len(self.sent) - self.pages


def play(fleet: str, minutes: int, processes: int, seed: int) -> Played:
    """Plays a fleet's minutes, and returns what Alertmanager would have sent.

    Raises:
      SystemExit: there is no Go.
      RuntimeError: the rules can't be evaluated; with the reason.
    """
    began = time.monotonic()
    found = [each for each in FLEETS[fleet](random.Random(seed), minutes, processes) if each.start < minutes]
    answer = answered(series(found, minutes), minutes)
    return Played(
        fleet, seed, minutes, len(found), at_once(found, minutes), answer["series"], answer["samples"],
        sorted((_sent(each) for each in answer["sent"]), key=lambda each: each.first), time.monotonic() - began,
    )  # fmt: skip


def answered(samples: Iterable[tuple[str, str]], minutes: int) -> dict[str, Any]:
    """The player's answer: what was sent, how much it read, and the seconds of each rule."""
    go = shutil.which("go")
    if go is None:
        raise SystemExit("`go` is not installed: see https://go.dev/doc/install")
    document = {
        "minutes": minutes, "chunk": CHUNK, "series": list(samples), "ask": suites.sent(SITE, ".+"),
        "groups": alerting.groups(SITE),
    }  # fmt: skip
    done = subprocess.run(
        [go, "-C", str(PLAYER), "run", "."], input=json.dumps(document), capture_output=True, text=True, check=False,
        env={**os.environ, "GOGC": "400"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def series(processes: Iterable[Process], minutes: int) -> Iterator[tuple[str, str]]:
    """Series in promtool's notation; those of processes with one and the same life are written once."""
    same: dict[str, tuple[Process, dict[str, str]]] = {}
    for process in processes:
        life = repr(replace(process, instance="", index=0))
        if life not in same:
            same[life] = (process, scenes.series([process], minutes))
        first, known = same[life]
        for name, values in known.items():
            own = name.replace(f'instance="{first.instance}"', f'instance="{process.instance}"')
            yield own.replace(f'process_index="{first.index}"', f'process_index="{process.index}"'), values


def at_once(processes: Iterable[Process], minutes: int) -> int:
    """The most processes that live in one minute."""
    change = [0] * (minutes + 1)
    for process in processes:
        change[process.start] += 1
        change[min(minutes, process.start + sum(part.minutes for part in process.parts))] -= 1
    most = living = 0
    for by in change:
        living += by
        most = max(most, living)
    return most


def _sent(told: dict[str, Any]) -> Sent:
    labels = {
        name: value
        for name, value in told["labels"].items()
        if name not in ("__name__", "alertname", "severity", "alertstate")
    }
    given = told["labels"]
    return Sent(given["alertname"], given["severity"], labels, told["first"], told["last"])
