"""Plays ordinary weeks to the rules as they are generated, and counts the pages and tickets: there should be none.

python -m tools.weeks                                       # a week of each fleet; hours
python -m tools.weeks --days 1 --processes 30               # less of it
python -m tools.weeks --fleet serving --seed 7

promtool evaluates every rule every minute; Alertmanager's inhibition is written as PromQL (`jaxobs.monitoring.suites`).
What happens and when is drawn by chance from the seed. promtool holds 10,000 samples in a query: about 120 processes.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxobs.monitoring import alerting, burn_rates, suites
from jaxobs.monitoring.lives.support import scenes
from jaxobs.monitoring.lives.support.scenes import Part, Process, compiles, init, serves, spends, trains
from jaxobs.monitoring.site import Site

DAY = 1440
"""Minutes."""
REPLICAS, JOBS_A_DAY = 40, 200
SITE = Site()


@dataclass(frozen=True)
class Played:
    """What became of one fleet's weeks."""

    fleet: str
    processes: int
    series: int
    minutes: int
    told: list[str]
    """Each page and ticket, with its labels and the day."""
    seconds: float


# ------------------------------------------------------------------------------------------------------ training


def training(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
    """Runs that save, evaluate, are preempted and resume: one large, one of medium size, four under one name."""
    outage = chance.randrange(minutes // 3, minutes)
    sizes: dict[str, list[float]] = {"pretrain": [6.0], "finetune": [2.4], "ablation": [0.4] * 4}
    for job, shares in sizes.items():
        for number, share in enumerate(shares):
            yield from _run(chance, f"{job}-{number}", job, max(1, round(processes * share / 10)), minutes, outage)


def _run(
    chance: random.Random, run: str, job: str, count: int, minutes: int, outage: int
) -> Iterator[Process]:  # fmt: skip
    """One run from attempt to attempt: each ends by a preemption, and the next begins minutes later."""
    at, attempt = chance.randrange(1, 30), 0
    while at < minutes:
        length = min(chance.randrange(DAY // 3, 2 * DAY), minutes - at)
        start_up = [init(chance.randrange(2, 12)), compiles(chance.randrange(3, 40))]
        parts, left = list(start_up), length - sum(part.minutes for part in start_up)
        for cycle in range(length // 60):
            rest = [spends("eval", chance.randrange(2, 8))] if cycle % 5 == 4 else []
            parts += [trains(chance.randrange(45, 120), 40), spends("checkpoint", chance.randrange(1, 12)), *rest]
        parts = _cut(parts, max(left, 1) + sum(part.minutes for part in start_up))
        same = Process(
            job=job, instance=f"{run}-{attempt}-PLACE:9464", parts=_without(parts, outage - at, 8), start=at,
            count=count, run=run, last_exit="signal" if attempt else "", up_after=chance.choice((0, 2)),
        )  # fmt: skip
        for index in range(count):
            own = replace(same, instance=same.instance.replace("PLACE", f"{index}"), index=index)
            if chance.random() < 0.02:  # its own network has a bad minute
                own = replace(own, parts=_without(own.parts, chance.randrange(length), chance.randrange(1, 5)))
            yield own
        at, attempt = at + length + chance.randrange(3, 9), attempt + 1


# ------------------------------------------------------------------------------------------------------- serving


def serving(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
    """Replicas that come and go with the traffic of a day; deployments twice a week; an error now and then."""
    replicas = min(processes, REPLICAS)
    least = max(1, replicas // 4)
    deployments = [day * DAY + 600 for day in range(minutes // DAY + 1) if day % 7 in (1, 3)]

    def wanted(minute: int) -> int:
        return max(least, math.ceil(replicas * _traffic(minute)))

    outage = chance.randrange(minutes // 3, minutes)
    for number in range(replicas):
        at, generation = 0, 0
        while at < minutes:
            if number >= wanted(at):
                at += 5
                continue
            end, deployed = at, False
            while end < minutes and number < wanted(end) and not deployed:
                end += 5
                deployed = any(end - 5 < moment + number * 3 <= end for moment in deployments)
            yield _replica(chance, number, generation, at, min(end, minutes), wanted, outage)
            # The new one of a deployment answers before the old one goes; one that was not needed comes back later.
            at, generation = (end - 2 if deployed else end), generation + 1


def _traffic(minute: int) -> float:
    """The share of the most that a week has: little at night and at the weekend."""
    day, hour = minute // DAY % 7, minute % DAY / 60
    return (0.08 + 0.92 * max(0.0, math.sin(math.pi * (hour - 6) / 16)) ** 2) * (0.6 if day >= 5 else 1.0)


def _replica(
    chance: random.Random, number: int, generation: int, start: int, end: int, wanted: Callable[[int], int], outage: int
) -> Process:  # fmt: skip
    parts: list[Part] = [init(2), serves(2, 12, cold=4, seconds=1.5, route="/v1/chat/completions")]
    at = start + 4
    while at < end:
        length = min(30, end - at)
        requests = round(REPLICAS * 45 * _traffic(at) / wanted(at) * chance.uniform(0.9, 1.1), 1)
        errors = 0.5 if chance.random() < 0.03 else 0.0  # one in two minutes, for half an hour
        mistakes = round(requests * 0.02, 2)
        parts.append(
            serves(
                length, requests, errors=min(errors, requests / 100), client_errors=mistakes, seconds=1.5,
                route="/v1/chat/completions", in_flight=round(requests * 1.5 / 60, 2),
            )
        )  # fmt: skip
        at += length
    return Process(
        job="chat", instance=f"{number}-{generation}:9464", parts=_without(parts, outage - start, 8), start=start,
        version=f"0.10.{2 + (start // DAY % 7 in (1, 2))}", up_after=chance.choice((0, 1)),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ research


def research(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
    """Short jobs of a dozen people, under a few names each; some fail at once, most save and end."""
    jobs = round(JOBS_A_DAY * min(1.0, processes / JOBS_A_DAY) * minutes / DAY)
    for number in range(jobs):
        day = chance.randrange(max(1, minutes // DAY)) * DAY
        start = min(day + int(chance.triangular(0, DAY - 1, 14 * 60)), minutes - 2)
        length = int(min(360, max(1, chance.lognormvariate(3.0, 1.2))))
        who, what = chance.randrange(12), chance.choice(("sweep", "eval", "debug"))
        labels = f'namespace="team-{who % 4}"'
        parts = [init(1), compiles(chance.randrange(1, 4))]
        if what == "eval":
            parts += [Part(minutes=length, time={"eval": 50, "idle": 10})]
        elif chance.random() < 0.15:  # a mistake in the script, which ends it soon
            parts += [trains(chance.randrange(1, 6))]
        else:
            parts += [trains(length, chance.randrange(5, 600)), spends("checkpoint", chance.randrange(2, 4))]
        count = chance.choice((1, 1, 1, 1, 1, 1, 1, 2, 4))
        last, version = chance.choice(("", "", "normal", "error", "signal")), chance.choice(("0.10.2", "0.9.1"))
        for index in range(count):
            yield Process(
                job=f"{what}-{who}", instance=f"{number}-{index}:9464", parts=parts, start=start, labels=labels,
                index=index, count=count, run=f"run-{number}", last_exit=last, up_after=chance.choice((0, 0, 5, 60)),
                version=version,
            )  # fmt: skip


FLEETS: dict[str, Callable[[random.Random, int, int], Iterator[Process]]] = {
    "training": training, "serving": serving, "research": research,
}  # fmt: skip


def _cut(parts: list[Part], minutes: int) -> list[Part]:
    """As much of the parts as fits."""
    found, left = [], minutes
    for part in parts:
        if left > 0:
            found.append(replace(part, minutes=min(part.minutes, left)))
            left -= part.minutes
    return found


def _without(parts: list[Part] | Any, at: int, minutes: int) -> list[Part]:
    """The parts, of which some minutes are not scraped; what happens in them happens all the same."""
    found, passed = [], 0
    for part in parts:
        first, last = max(at - passed, 0), min(at + minutes - passed, part.minutes)
        if at <= 0 or first >= part.minutes or last <= first:
            found.append(part)
        else:
            pieces = ((first, True), (last - first, False), (part.minutes - last, True))
            for place, (length, scraped) in enumerate(pieces):
                once = part.once if place == 0 or not first else {}
                if length:
                    found.append(replace(part, minutes=length, scraped=scraped and part.scraped, once=once))
        passed += part.minutes
    return found


# ------------------------------------------------------------------------------------------------------- playing


def play(fleet: str, minutes: int, processes: int, seed: int) -> Played:
    """What Alertmanager would have sent in these minutes.

    Raises:
      RuntimeError: promtool takes the scene for no test; with its words.
    """
    began = time.monotonic()
    found = [each for each in FLEETS[fleet](random.Random(seed), minutes, processes) if each.start < minutes]
    series = dict(_series(found, minutes))
    told = _told(series, minutes)
    return Played(fleet, len(found), len(series), minutes, told, time.monotonic() - began)


def _series(processes: list[Process], minutes: int) -> Iterator[tuple[str, str]]:
    """Series in promtool's notation; those of processes with one and the same life are written once."""
    same: dict[str, tuple[Process, dict[str, str]]] = {}
    for each in processes:
        life = repr(replace(each, instance="", index=0))
        if life not in same:
            same[life] = (each, scenes.series([each], minutes))
        first, series = same[life]
        for name, values in series.items():
            own = name.replace(f'instance="{first.instance}"', f'instance="{each.instance}"')
            yield own.replace(f'process_index="{first.index}"', f'process_index="{each.index}"'), values


def _told(series: dict[str, str], minutes: int) -> list[str]:
    sent = suites.sent(SITE, ".+")
    asked = [
        {
            "expr": f"group by (alertname, severity, namespace, job) (last_over_time(({sent})[{last - first}m:1m]))",
            "eval_time": f"{last}m", "exp_samples": [],
        }
        for first, last in ((at, min(at + DAY, minutes)) for at in range(0, minutes, DAY))
    ]  # fmt: skip
    given = [{"series": name, "values": values} for name, values in series.items()]
    test = {"name": "weeks", "interval": "1m", "input_series": given, "promql_expr_test": asked}
    # Read by dashboards alone, and after a week more than promtool holds in a query.
    groups = [
        {**group, "rules": [rule for rule in group["rules"] if rule.get("record") != burn_rates.REMAINING]}
        for group in (*alerting.recording_groups(SITE), *alerting.alert_groups(SITE))
    ]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "jaxobs.rules.yaml").write_text(json.dumps({"groups": groups}))
        (Path(folder) / "tests.yaml").write_text(json.dumps(suites.document([test], SITE)))
        promtool = shutil.which("promtool")
        if promtool is None:
            raise SystemExit("`promtool` is not installed. On Debian: apt-get install prometheus")
        done = subprocess.run(
            [promtool, "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, check=False
        )
    output = done.stdout + done.stderr
    if "SUCCESS" in output:
        return []
    found = re.findall(r"time: (\S+),\s*\n\s*exp:.*\n\s*got:(.*)", output)
    if not found:
        raise RuntimeError(output[-2000:])
    return [f"until {at}: {each}" for at, got in found for each in re.findall(r"\{[^}]*\}", got)]


def main() -> int:
    """Prints a line for each fleet; 1 if anybody was paged or a ticket was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleet", choices=FLEETS, help="by default all of them")
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--processes", type=int, default=120, help="of the training fleet; others have no more either")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wrong = 0
    for fleet in [args.fleet] if args.fleet else FLEETS:
        found = play(fleet, round(args.days * DAY), args.processes, args.seed)
        wrong += len(found.told)
        print(
            f"{fleet}: {len(found.told)} pages and tickets in {args.days:g} days of {found.processes:,} processes "
            f"with {found.series:,} series ({found.seconds:.0f} s)"
        )
        for each in found.told:
            print(f"    {each}")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
