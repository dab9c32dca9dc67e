"""Short jobs of a dozen people, under a few names each; some fail at once, some are cancelled, most save and end."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tools.alert_suites.scenes import Part, Process, compiles, init, spends, trains
from tools.weeks.gaps import DAY, without

JOBS_A_DAY = 200


def research(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
    """200 jobs a day of a minute to six hours, most of one process; Prometheus is away for eight minutes once."""
    jobs = round(JOBS_A_DAY * min(1.0, processes / JOBS_A_DAY) * minutes / DAY)
    outage = chance.randrange(minutes // 3, minutes)
    for number in range(jobs):
        day = chance.randrange(max(1, minutes // DAY)) * DAY
        start = min(day + int(chance.triangular(0, DAY - 1, 14 * 60)), minutes - 2)
        length = int(min(360, max(1, chance.lognormvariate(3.0, 1.2))))
        who, what = chance.randrange(12), chance.choice(("sweep", "eval", "debug"))
        labels = f'namespace="team-{who % 4}"'
        count = chance.choice((1, 1, 1, 1, 1, 1, 1, 2, 4))
        parts = [init(1), compiles(chance.randrange(1, 4)), *_work(chance, what, length, alone=count == 1)]
        last, version = chance.choice(("", "", "normal", "error", "signal")), chance.choice(("0.10.2", "0.9.1"))
        kept = chance.choice((0, 0, 5, 60))
        for index in range(count):
            own = parts
            if chance.random() < 0.02:
                own = without(own, chance.randrange(length + 1), chance.randrange(1, 5), failed=True)
            yield Process(
                job=f"{what}-{who}", instance=f"{number}-{index}:9464", parts=without(own, outage - start, 8),
                start=start, labels=labels, index=index, count=count, run=f"run-{number}", last_exit=last,
                up_after=kept, version=version,
            )  # fmt: skip


def _work(chance: random.Random, what: str, length: int, *, alone: bool) -> list[Part]:
    if what == "eval":
        return [Part(minutes=length, time={"eval": 50, "idle": 10})]
    fate = chance.random()
    if fate < 0.15:  # a mistake in the script, which ends it soon
        return [trains(chance.randrange(1, 6))]
    if fate < 0.25 and alone:  # someone has seen enough, and cancels it in the middle of a step
        return [trains(length, chance.randrange(5, 600))]
    return [trains(length, chance.randrange(5, 600)), spends("checkpoint", chance.randrange(2, 4))]
