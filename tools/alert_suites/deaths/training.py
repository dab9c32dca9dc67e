"""How training jobs die or decay."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tools.alert_suites.kinds import Death
from tools.alert_suites.scenes import Part, Process, compiles, init, pushed, spends, trains, using

_BEGIN = [init(2), compiles(3), trains(95)]
"""A hundred minutes in which all is well."""


def _run(name: str, count: int, parts: list[Part], run: str = "r", **more: object) -> list[Process]:
    return [
        Process(job=name, instance=f"{run}{index}:9464", parts=parts, index=index, count=count, run=run, **more)  # type: ignore[arg-type]
        for index in range(count)
    ]


def _one(name: str, *parts: Part, **more: object) -> list[Process]:
    return [Process(job=name, instance="a:9464", parts=[*_BEGIN, *parts], **more)]  # type: ignore[arg-type]


def _loop(name: str, minutes: int) -> Iterable[Process]:
    """A process that ends after some minutes, and begins again in the next."""
    for number in range(20):
        parts = [init(1), compiles(1), trains(minutes - 3)]
        yield Process(job=name, instance="a:9464", parts=parts, start=number * minutes)


def _preempted() -> Iterable[Process]:
    """A run that loses its machine every 9 minutes, and begins again on another."""
    for number in range(12):
        yield Process(
            job="preempted-often", instance=f"{number}:9464", parts=[init(1), compiles(1), trains(5)],
            start=number * 9, run="r", last_exit="signal" if number else "",
        )  # fmt: skip


def _lost_of(name: str, run: str = "r") -> list[Process]:
    """A run of four of which one vanishes after 100 minutes."""
    whole = _run(name, 4, [*_BEGIN, trains(100)], run)
    return [*whole[:3], *_run(name, 4, _BEGIN, run)[3:]]


def _down() -> list[Process]:
    found = _run("one-down", 4, [*_BEGIN, trains(100)])
    last = found[3]
    return [*found[:3], Process(job=last.job, instance=last.instance, parts=_BEGIN, index=3, count=4, run="r",
                                up_after=60)]  # fmt: skip


def _killed() -> Iterable[Process]:
    yield from _one("killed-before-scrape")
    later = [init(2), compiles(3), trains(60)]
    yield Process(job="killed-before-scrape", instance="a:9464", parts=later, start=103, last_exit="out_of_memory")


def _at_risk() -> list[Process]:
    return [
        Process(
            job="at-risk-gone", instance="a:9464", run="r",
            parts=[Part(minutes=100, time={"step": 60}, counts={'jax_steps_total{loop="train"}': 60},
                        gauges={'jax_run_lost_seconds{cause="at_risk"}': 1800})],
        )
    ]  # fmt: skip


def _partitioned() -> list[Process]:
    """Half of eight processes do not answer; the others wait for them in a step."""
    whole = _run("partitioned", 8, [*_BEGIN, _HANGS])
    return [*whole[:4], *[replace(each, parts=_BEGIN, up_after=60) for each in whole[4:]]]


def _unsaved() -> list[Process]:
    """A checkpoint every half hour, until the disk is full."""

    def works(seconds: int) -> Part:
        return replace(trains(5), gauges={'jax_run_lost_seconds{cause="at_risk"}': seconds})

    saved, more = [works(300 * number) for number in range(6)], [works(300 * number) for number in range(40)]
    return [Process(job="unsaved", instance="a:9464", parts=[init(2), compiles(3), *saved * 6, *more])]


def _backs_off() -> Iterable[Process]:
    """A process ends in its first minute each time, and is started again after longer and longer."""
    yield from _one("backs-off")
    for start in (100, 102, 104, 107, 112, 118, 124, 130, 136, 142, 148):
        yield Process(job="backs-off", instance="a:9464", parts=[init(1)], start=start)


def _straggling() -> list[Process]:
    found = _run("straggler", 3, [*_BEGIN, trains(120)])
    slow = Part(
        minutes=120, time={"step": 60},
        counts={'jax_steps_total{loop="train"}': 40, 'jax_step_seconds_count{loop="train"}': 40,
                'jax_step_seconds_sum{loop="train"}': 60},
    )  # fmt: skip
    return [*found[:2], Process(job="straggler", instance="r2:9464", parts=[*_BEGIN, slow], index=2, count=3, run="r")]


_HANGS = Part(minutes=200, time={"step": 60})
_STUCK = Part(
    minutes=200, time={"compile": 60},
    gauges={"jax_compilations_in_progress": 1, "jax_compilation_oldest_start_timestamp_seconds": 6000},
)  # fmt: skip
_NAN = trains(200, more={'jax_nonfinite_total{name="loss"}': 6})
_FAILS = trains(200, 30, more={'jax_function_errors_total{function="step", error="ValueError"}': 30})
_RECOMPILES = trains(200, more={'jax_compilations_total{function="step", cause="shape", cache="miss"}': 1})
_DEVICE = 'accelerator_up{device="GPU-1"}'


def _finding(kind: str, minutes: int = 200) -> Part:
    return Part(minutes=minutes, time={"step": 60}, gauges={f'jax_findings{{finding="{kind}"}}': 1})


def silent(name: str, count: int, **more: object) -> list[Process]:
    """All processes are gone in the same minute; their targets stay for three hours unless `more` says otherwise."""
    return _run(name, count, [trains(20)], "r", **{"older": 160 if count == 1 else 0, "up_after": 180, **more})


_ALL, _ONE = "all 100 processes", "the only process"
_DIED, _GONE = ("JaxTrainingDied", "critical", 15), ("JaxTrainingGone", "warning", 18)
_SILENT: tuple[tuple[str, int, str, str, str, str, int, dict[str, Any]], ...] = (
    *(("static", count, who, "died, at targets that nothing removes", *_GONE, {})
      for count, who in ((1, _ONE), (100, _ALL))),
    *(("file", count, who, "died, and the launcher left its file behind", *_DIED, {"labels": 'jax_end="removed"'})
      for count, who in ((1, _ONE), (100, _ALL))),
    *(("kubernetes", count, who, "died, and Kubernetes says `Failed`", *_DIED, {"ended": 'pod_phase="Failed"'})
      for count, who in ((4, "all four processes"), (100, _ALL))),
    ("kubernetes", 1, _ONE, "died, and Kubernetes says `Failed`", "JaxTargetDown", "warning", 13,
     {"ended": 'pod_phase="Failed"'}),
    *(("http", count, who, "died, and `http_sd` no longer lists its targets", *_GONE, {"up_after": 0, "older": older})
      for count, who, older in ((1, _ONE, 400), (100, _ALL, 0))),
    *(("pushgateway", count, who, "died, and the Pushgateway got no end", *_DIED, {})
      for count, who in ((1, _ONE), (4, "all four processes"))),
)  # fmt: skip
"""How all processes of a training die, by what lists its targets: name, processes, sentence, alert, and labels."""

DEATHS = (
    *(
        Death(name=f"silent-{found}-{count}", what=f"{called} of a training {ends}", alert=alert, severity=severity,
              at=20, within=within, lasts=180 if found == "kubernetes" and count < 100 else 0,
              more=pushed(f"silent-{found}-{count}", "0x80") if found == "pushgateway" else {},
              processes=functools.partial(silent, f"silent-{found}-{count}", count, **more))
        for found, count, called, ends, alert, severity, within, more in _SILENT
    ),
    Death(name="stands-still", what="a job of two processes waits for something that is neither input nor a step",
          alert="JaxStepsStalled", severity="critical", at=100, within=70,
          processes=lambda: _run("stands-still", 2, [*_BEGIN, spends("idle", 200)])),
    *(
        Death(name=f"stands-still-{category}",
              what=f"the only process of a job makes no steps, and spends its time in `{category}`",
              alert="JaxStepsStalled", severity="critical", at=100, within=130,
              processes=functools.partial(_one, f"stands-still-{category}", spends(category, 200)))
        for category in ("idle", "unattributed", "init", "compile")
    ),
    Death(name="after-checkpoint", what="all four processes of a training died three minutes after a checkpoint",
          alert="JaxTrainingGone", severity="warning", at=20, within=18,
          processes=lambda: _run("after-checkpoint", 4, [trains(16), spends("checkpoint", 1), trains(3)], up_after=60)),
    Death(name="pods-gone", what="all pods of a training job are gone, without a `run_id`", alert="JaxTrainingGone",
          severity="warning", at=100, within=20, processes=lambda: _run("pods-gone", 4, _BEGIN, "c:1234")),
    Death(name="at-risk-gone", what="a run with half an hour of unsaved work is gone", alert="JaxJobAbsent",
          severity="critical", at=100, within=15, processes=_at_risk),
    Death(name="partitioned", what="half of eight processes are cut off, and the others wait for them",
          alert="JaxStepsStalled", severity="critical", at=100, within=30, processes=_partitioned,
          also=("JaxTargetDown",)),
    Death(name="save-fails", what="a save raises an exception, and the job continues", alert="JaxCheckpointFailed",
          severity="warning", at=100, within=5,
          processes=lambda: _one("save-fails", replace(
              trains(60), once={'jax_checkpoint_failures_total{operation="save_async"}': 1}))),
    Death(name="unsaved", what="a job saves no more checkpoints, and continues", alert="JaxCheckpointWorkAtRisk",
          severity="warning", at=185, within=150, processes=_unsaved),
    Death(name="host-fills", what="the memory of a container fills within four hours", alert="JaxHostMemoryLow",
          severity="warning", at=158, within=20,
          processes=lambda: _one("host-fills", *using(trains(110), *(0.5 + minute / 240 for minute in range(110))))),
    Death(name="log-disk", what="the disk of the event log fills", alert="JaxEventLogDiskFull", severity="warning",
          at=100, within=10,
          processes=lambda: _one("log-disk", replace(trains(90), gauges={"jaxobs_event_log_left_bytes": 1e6}))),
    Death(name="backs-off", what="a process ends in its first minute, again and again", alert="JaxCrashLoop",
          severity="critical", at=101, within=50, processes=_backs_off),
    Death(name="crash-loop", what="a process crashes every 9 minutes", alert="JaxCrashLoop", severity="critical",
          at=9, within=45, processes=lambda: _loop("crash-loop", 9), live="restarts"),
    Death(name="restarts", what="a process crashes every 17 minutes", alert="JaxFleetRestarts", severity="warning",
          at=17, within=45, processes=lambda: _loop("restarts", 17), live="restarts"),
    Death(name="preempted-often", what="a run is preempted every 9 minutes", alert="JaxPreemptedOften",
          severity="warning", at=9, within=50, processes=_preempted),
    Death(name="first-nan", what="the loss is NaN", alert="JaxNonFiniteValues", severity="warning", at=100, within=5,
          also=("JaxLossNonFinite",),
          processes=lambda: _one("first-nan", _NAN), live="nonfinite"),
    Death(name="stays-nan", what="the loss stays NaN", alert="JaxLossNonFinite", severity="critical", at=100,
          within=10, processes=lambda: _one("stays-nan", _NAN)),
    Death(name="one-down", what="one of four processes does not answer", alert="JaxTargetDown", severity="warning",
          at=100, within=13, processes=_down, live="killed"),
    Death(name="one-missing", what="one of four processes is gone with its target", alert="JaxProcessCountMismatch",
          severity="warning", at=100, within=13, processes=lambda: _lost_of("one-missing"), live="together"),
    Death(name="one-missing-of-two", what="the same while another run has the same name",
          alert="JaxProcessCountMismatch", severity="warning", at=100, within=13,
          processes=lambda: [*_lost_of("one-missing-of-two"),
                             *_run("one-missing-of-two", 4, [*_BEGIN, trains(100)], "s")]),
    Death(name="killed-before-scrape", what="the kernel kills a process for memory, between two scrapes",
          alert="JaxLastExitKilled", severity="warning", at=103, within=5, processes=_killed),
    Death(name="out-of-memory", what="a step runs out of memory, and the process hangs", alert="JaxOutOfMemory",
          severity="critical", at=100, within=20, live="memory",
          processes=lambda: _one(
              "out-of-memory",
              Part(minutes=200, time={"idle": 60}, once={'jax_out_of_memory_total{function="step", device="0"}': 1}))),
    Death(name="hangs", what="a job hangs in a step", alert="JaxStepsStalled", severity="critical", at=100, within=25,
          processes=lambda: _run("hangs", 4, [*_BEGIN, _HANGS]), live="stalled"),
    Death(name="stuck-finding", what="a process says that it is stuck", alert="JaxProcessStuck", severity="critical",
          at=100, within=20, processes=lambda: _one("stuck-finding", _finding("stuck"))),
    Death(name="compiles-for-ever", what="a compilation does not end", alert="JaxCompilationStuck",
          severity="critical", at=100, within=67, processes=lambda: _one("compiles-for-ever", _STUCK),
          live="compiling"),
    Death(name="diverges", what="processes compile different programs", alert="JaxProgramDivergence",
          severity="critical", at=100, within=4, processes=lambda: _one("diverges", _finding("diverging_programs")),
          live="together"),
    Death(name="starves", what="a third of each minute is spent waiting for input", alert="JaxInputBound",
          severity="warning", at=100, within=45, live="input",
          processes=lambda: _one("starves", trains(200, 40, lost={"input_wait": 20}))),
    Death(name="wastes", what="nine tenths of the time are lost while a job trains", alert="JaxSloGoodputBurn",
          severity="critical", at=100, within=290,
          processes=lambda: _one("wastes", trains(400, 6, lost={"idle": 56}))),
    Death(name="wastes-half", what="a job spends less than half of its time in steps", alert="JaxGoodputLow",
          severity="warning", at=5, within=160,
          processes=lambda: [Process(job="wastes-half", instance="a:9464",
                                     parts=[init(2), compiles(3), trains(400, 6, lost={"transfer": 36})])]),
    Death(name="saves-for-ever", what="two thirds of the time go into checkpoints", alert="JaxGoodputLow",
          severity="warning", at=5, within=160,
          processes=lambda: [Process(job="saves-for-ever", instance="a:9464",
                                     parts=[init(2), compiles(3), *[trains(1), spends("checkpoint", 2)] * 130])]),
    Death(name="steps-fail", what="half of the steps fail", alert="JaxSloStepSuccessBurn", severity="critical", at=100,
          within=8, processes=lambda: _one("steps-fail", _FAILS), live="errors"),
    Death(name="recompiles", what="a function recompiles every minute", alert="JaxRecompilationStorm",
          severity="warning", at=100, within=20, processes=lambda: _one("recompiles", _RECOMPILES), live="shapes"),
    Death(name="straggler", what="one of three processes takes half as long again", alert="JaxStraggler",
          severity="warning", at=100, within=35, processes=_straggling, live="together"),
    Death(name="device-lost", what="a device does not answer its driver", alert="JaxDeviceLost", severity="critical",
          at=100, within=4, processes=lambda: _one("device-lost", Part(minutes=60, gauges={_DEVICE: 0}))),
    Death(name="xid", what="a GPU has an Xid error", alert="JaxDeviceXidErrors", severity="warning", at=100, within=4,
          live="gpu", processes=lambda: _one(
              "xid", Part(minutes=60, once={'accelerator_xid_errors_total{device="GPU-1", xid="79"}': 1}))),
)  # fmt: skip
