"""An LLM service whose replicas come and go with the traffic of a day."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from tools.alert_suites.scenes import Part, Process, init, serves
from tools.weeks.gaps import DAY, without

REPLICAS = 40
ROUTE = "/v1/chat/completions"


def serving(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
    """Deployments twice a week, an autoscaler, an error now and then, and Prometheus away for eight minutes once."""
    replicas = min(processes, REPLICAS)
    least = max(1, replicas // 4)
    deployments = [day * DAY + 600 for day in range(minutes // DAY + 1) if day % 7 in (1, 3)]

    def wanted(minute: int) -> int:
        # An autoscaler removes replicas only after ten minutes in which it wanted fewer.
        return max(least, *(math.ceil(replicas * traffic(minute - back)) for back in (0, 5, 10)))

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


def traffic(minute: int) -> float:
    """The share of the most that a week has: little at night and at the weekend."""
    day, hour = minute // DAY % 7, minute % DAY / 60
    return (0.08 + 0.92 * max(0.0, math.sin(math.pi * (hour - 6) / 16)) ** 2) * (0.6 if day >= 5 else 1.0)


def _replica(
    chance: random.Random, number: int, generation: int, start: int, end: int, wanted: Callable[[int], int], outage: int
) -> Process:  # fmt: skip
    parts: list[Part] = [init(2), *(serves(1, 10, cold=3, seconds=1.5, route=ROUTE) for _ in range(2))]
    troubled = False
    for at in range(start + 4, end):
        if at % 30 == 0:
            troubled = chance.random() < 0.03  # one request in a hundred fails, for half an hour
        requests = _poisson(chance, REPLICAS * 45 * traffic(at) / wanted(at))
        errors = min(_poisson(chance, requests * 0.01), requests) if troubled else 0
        mistakes = min(_poisson(chance, requests * 0.02), requests - errors)
        parts.append(
            serves(
                1, requests, errors=errors, client_errors=mistakes, seconds=1.5, route=ROUTE,
                in_flight=_poisson(chance, requests * 1.5 / 60),
            )
        )  # fmt: skip
    if chance.random() < 0.1 and end - start > 60:
        parts = without(parts, chance.randrange(10, end - start), chance.randrange(1, 5), failed=True)
    return Process(
        job="chat", instance=f"{number}-{generation}:9464", parts=without(parts, outage - start, 8), start=start,
        version=f"0.10.{2 + (start // DAY % 7 in (1, 2))}", up_after=chance.choice((0, 1)),
    )  # fmt: skip


def _poisson(chance: random.Random, mean: float) -> int:
    """How many arrive in a minute."""
    if mean > 30:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    count, left = 0, chance.random()
    share = chosen = math.exp(-mean)
    while left > chosen and count < 200:
        count += 1
        share *= mean / count
        chosen += share
    return count
