"""Training runs that save, evaluate, grow their sequences, are preempted and resume."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tools.alert_suites.scenes import Part, Process, compiles, init, spends, trains
from tools.weeks.gaps import DAY, cut, without

SIZES: dict[str, list[float]] = {"pretrain": [0.6], "finetune": [0.24], "ablation": [0.04] * 4}
"""Runs by job, and the share of the fleet's processes that each has."""
FAILING = 0.02
"""The share of processes whose own network fails for some minutes in each attempt."""


def training(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
    """A large run, one of medium size, and four under one name; Prometheus is away for eight minutes once."""
    outage = chance.randrange(minutes // 3, minutes)
    for job, shares in SIZES.items():
        for number, share in enumerate(shares):
            count = max(1, round(processes * share))
            yield from _run(chance, f"{job}-{number}", job, count, minutes, outage)


def _run(
    chance: random.Random, run: str, job: str, count: int, minutes: int, outage: int
) -> Iterator[Process]:  # fmt: skip
    """Yields the attempts of one run: each ends by a preemption, and the next begins minutes later."""
    at, attempt = chance.randrange(1, 30), 0
    pace, compiling = chance.randrange(45, 120), chance.randrange(4, 40)
    while at < minutes:
        length = min(chance.randrange(DAY // 3, 2 * DAY), minutes - at)
        stages = job == "finetune" and attempt > 0
        parts = cut(_attempt(chance, length, pace, compiling, stages=stages), length)
        same = Process(
            job=job, instance=f"{run}-{attempt}-PLACE:9464", parts=without(parts, outage - at, 8), start=at,
            count=count, run=run, last_exit="signal" if attempt else "", up_after=chance.choice((0, 2)),
        )  # fmt: skip
        for index in range(count):
            own = replace(same, instance=same.instance.replace("PLACE", f"{index}"), index=index)
            if chance.random() < FAILING:
                hidden = without(own.parts, chance.randrange(length), chance.randrange(1, 5), failed=True)
                own = replace(own, parts=hidden)
            yield own
        at, attempt = at + length + chance.randrange(3, 9), attempt + 1


def _attempt(chance: random.Random, length: int, pace: int, compiling: int, *, stages: bool) -> Iterator[Part]:
    """From the start of the processes on: steps, checkpoints, evaluations, and longer sequences every eight hours."""
    yield from (init(chance.randrange(2, 12)), compiles(round(compiling * chance.uniform(0.9, 1.1))))
    for cycle in range(length // 40 + 1):
        if stages and cycle % 10 == 9:
            pace = max(10, round(pace * chance.uniform(0.5, 0.8)))
            yield compiles(compiling, cause="shape")
        own, worked = round(pace * chance.uniform(0.97, 1.03)), chance.randrange(30, 50)
        for done in range(0, worked, 5):
            yield replace(trains(5, own), gauges={'jax_run_lost_seconds{cause="at_risk"}': done * 60})
        yield replace(spends("checkpoint", chance.randrange(1, 12)),
                      gauges={'jax_run_lost_seconds{cause="at_risk"}': worked * 60})  # fmt: skip
        if cycle % 5 == 4:
            yield replace(spends("eval", chance.randrange(2, 8)),
                          gauges={'jax_run_lost_seconds{cause="at_risk"}': 0})  # fmt: skip
