"""Training jobs while all is well."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tools.alert_suites.kinds import Life
from tools.alert_suites.scenes import Part, Process, compiles, init, pushed, spends, trains, unseen, using


def _job(name: str, count: int, parts: list[Part], **more: object) -> list[Process]:
    """The processes of one run."""
    run = str(more.pop("run", f"{name}-coordinator:1234" if count > 1 else ""))
    return [
        Process(job=name, instance=f"{run}{index}:9464", parts=parts, index=index, count=count, run=run, **more)  # type: ignore[arg-type]
        for index in range(count)
    ]


def _preempted() -> Iterable[Process]:
    life = [init(2), compiles(2), trains(66), spends("checkpoint", 1)]
    for number in range(3):
        yield from _job("preempted", 4, life, start=number * 80, run="r", last_exit="signal" if number else "")


def _restarted() -> Iterable[Process]:
    yield from _job("restarted", 2, [init(2), compiles(3), trains(60)])
    yield from _job("restarted", 2, [init(2), compiles(3), trains(120)], start=66)


def _namespaces() -> Iterable[Process]:
    for name, version in (("vision", "0.10.2"), ("speech", "0.9.1")):
        yield from _job(
            "namespaces", 2, [init(2), compiles(2), trains(120)], run=name, version=version,
            labels=f'cluster="a", namespace="{name}"',
        )  # fmt: skip


def _two_runs() -> Iterable[Process]:
    yield from _job("two-runs", 4, [init(2), compiles(2), trains(120)], run="a:1234")
    yield from _job("two-runs", 4, [init(2), compiles(2), trains(100)], run="b:1234", start=20, version="0.9.1")


def _caught() -> Iterable[Process]:
    search = Part(
        minutes=4, time={"step": 60},
        once={'jax_out_of_memory_total{function="step", device="gpu:0"}': 3,
              'jax_function_errors_total{function="step", error="JaxRuntimeError"}': 2},
    )  # fmt: skip
    yield from _job("batch-size-search", 1, [init(2), compiles(2), trains(1), search, trains(110)])


def _loads() -> Iterable[Process]:
    """Weights are loaded for 20 minutes, and each checkpoint has a copy on the host for two."""
    begin = [*using(init(20), *(0.04 * minute for minute in range(20))), *using(compiles(3), 0.8)]
    saves = [*using(trains(30), 0.8), *using(spends("checkpoint", 2), 0.93)]
    yield from _job("loads-much", 2, [*begin, *saves, *saves, *saves, *saves, *saves])


def _elastic() -> Iterable[Process]:
    for number, (count, start) in enumerate(((8, 0), (4, 83), (8, 166))):
        parts = [init(2), compiles(2), trains(74)]
        last = "signal" if number else ""
        yield from _job("elastic", count, parts, start=start, run="r", last_exit=last)


def _overflows() -> Iterable[Process]:
    """20 steps a second, one in 36,000 of which overflows."""
    overflow = replace(trains(1, 1200), once={'jax_nonfinite_total{name="gradients"}': 1})
    yield from _job("loss-scaling", 1, [init(2), compiles(2), overflow, *[trains(29, 1200), overflow] * 9])


def _maintained() -> Iterable[Process]:
    yield from _job("maintenance", 4, [init(2), compiles(3), trains(95), spends("checkpoint", 3)], run="m")
    yield from _job("maintenance", 4, [init(2), compiles(2), trains(90)], run="m", start=330, last_exit="signal")


def _curriculum() -> Iterable[Process]:
    """Steps of 1 s, of 1.5 s, and of 3 s, with a compilation before each stage."""
    longer = [part for steps in (40, 20) for part in (compiles(2, cause="shape"), trains(118, steps))]
    yield from _job("curriculum", 2, [init(2), compiles(3), trains(150), *longer], run="c")


_ENDS: tuple[tuple[str, int, str, list[Part], dict[str, Any]], ...] = (
    *(("file", count, "and its launcher removes its targets", [trains(20)], {"labels": 'jax_end="removed"'})
      for count in (1, 100)),
    *(("kubernetes", count, "and its pods are `Completed`", [trains(20)],
       {"ended": 'pod_phase="Succeeded"', "up_after": 90}) for count in (1, 100)),
    *(("pushgateway", count, "and tells the Pushgateway", [trains(20)], {"up_after": 90}) for count in (1, 4)),
    *(("static", count, "after a last checkpoint, and its targets stay", [trains(20), spends("checkpoint", 1)],
       {"up_after": 90}) for count in (1, 4, 100)),
    *(("http", count, "after a last evaluation, and `http_sd` no longer lists its targets",
       [trains(19), spends("eval", 2)], {}) for count in (1, 100)),
)  # fmt: skip
"""How trainings end well, by what lists their targets."""

LIVES = (
    Life(name="curriculum", what="sequences grow from stage to stage: each recompiles the step, which takes longer",
         minutes=390, processes=_curriculum),
    Life(
        name="debugger", what="someone looks at a training job in a debugger for 25 minutes", minutes=240,
        processes=lambda: _job("debugger", 1, [init(2), compiles(3), trains(95), spends("unattributed", 25),
                                               trains(120)]),
    ),
    Life(
        name="epochs", what="five minutes of waiting for input between epochs", minutes=400,
        processes=lambda: _job("epochs", 2, [init(2), compiles(2), *[trains(55), spends("input_wait", 5)] * 7]),
    ),
    Life(name="loads-much", what="weights fill most of a container's memory, checkpoints and page cache the rest",
         minutes=180, processes=_loads),
    Life(name="elastic", what="a run continues with half of its processes, and later with all", minutes=230,
         processes=_elastic),
    Life(
        name="downloads", what="a job waits 25 minutes for its data set before the first step", minutes=180,
        processes=lambda: _job("downloads", 4, [init(2), spends("input_wait", 25), compiles(3), trains(160)]),
    ),
    Life(name="loss-scaling", what="gradients overflow now and then, as loss scaling in float16 expects", minutes=240,
         processes=_overflows),
    Life(name="maintenance", what="a run saves, ends, and resumes hours later", minutes=400, processes=_maintained),
    Life(
        name="one-process", what="one process trains", minutes=240,
        processes=lambda: _job("one-process", 1, [init(2), compiles(3), trains(235)]), live="healthy",
    ),
    Life(
        name="slow-start", what="8 processes need 12 minutes to start", minutes=120,
        processes=lambda: _job("slow-start", 8, [init(8), compiles(4), trains(108)]),
    ),
    Life(
        name="long-compile", what="16 processes compile for 40 minutes before their first step", minutes=120,
        processes=lambda: _job("long-compile", 16, [init(3), compiles(40), trains(77)]),
    ),
    Life(
        name="hundreds", what="a job of 120 processes, as many as promtool takes, starts and trains", minutes=40,
        processes=lambda: _job("hundreds", 120, [init(5), compiles(6), trains(29)]),
    ),
    Life(
        name="evaluations", what="an evaluation of 4 minutes after every 1,000 steps", minutes=400,
        processes=lambda: _job("evaluations", 2, [init(2), compiles(2), *[trains(16), spends("eval", 4)] * 24]),
    ),
    Life(
        name="long-checkpoints", what="a checkpoint of 20 minutes every two hours", minutes=400,
        processes=lambda: _job(
            "long-checkpoints", 2, [init(2), compiles(2), *[trains(100), spends("checkpoint", 20)] * 4]
        ),
    ),
    Life(
        name="short-checkpoints", what="a checkpoint of a minute every ten", minutes=400,
        processes=lambda: _job(
            "short-checkpoints", 1, [init(2), compiles(2), *[trains(9), spends("checkpoint", 1)] * 48]
        ),
    ),
    Life(
        name="preempted", what="three preemptions; the run resumes minutes later", minutes=240, processes=_preempted,
    ),
    Life(
        name="restarted", what="a restart at the same addresses: counters start from 0", minutes=180,
        processes=_restarted,
    ),
    Life(
        name="scrape-gaps", what="scrapes fail for 4 minutes, again and again", minutes=240,
        processes=lambda: _job("scrape-gaps", 2, [init(2), compiles(2), *[trains(30), unseen(4)] * 7]),
    ),
    Life(
        name="prometheus-restart", what="Prometheus is away for 12 minutes", minutes=240,
        processes=lambda: _job("prometheus-restart", 4, [init(2), compiles(2), trains(90), unseen(12), trains(120)]),
    ),
    Life(
        name="namespaces", what="two namespaces with a job of one name, and other versions", minutes=120,
        processes=_namespaces,
    ),
    Life(name="two-runs", what="two runs of 4 processes under one name, and other versions", minutes=120,
         processes=_two_runs),
    Life(
        name="batch-size-search", what="out of memory is caught while a batch size is looked for", minutes=120,
        processes=_caught, live="caught",
    ),
    Life(
        name="some-waiting", what="4 seconds of each minute are spent waiting for input", minutes=400,
        processes=lambda: _job("some-waiting", 2, [init(2), compiles(2), trains(476, lost={"input_wait": 4})]),
    ),
    Life(
        name="finished", what="a job of four processes ends; its pods are `Completed` for hours", minutes=400,
        processes=lambda: _job("finished", 4, [init(2), compiles(2), trains(100)], up_after=300,
                               ended='pod_phase="Succeeded"'),
    ),
    *(
        Life(
            name=f"ends-{found}-{count}", minutes=120,
            what=f"a training of {f'{count:,} processes' if count > 1 else 'one process'} ends, {what}",
            processes=functools.partial(_job, f"ends-{found}-{count}", count, parts, older=160, **more),
            more=pushed(f"ends-{found}-{count}", "0x20 1210x100") if found == "pushgateway" else {},
        )
        for found, count, what, parts, more in _ENDS
    ),
    Life(
        name="saved-and-gone", what="a job saves for two minutes, ends, and its targets vanish", minutes=240,
        processes=lambda: _job("saved-and-gone", 2, [init(2), compiles(2), trains(100), spends("checkpoint", 3)]),
    ),
)  # fmt: skip
