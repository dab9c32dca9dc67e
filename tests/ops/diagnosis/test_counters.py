"""Metrics and event logs by another hand, with no more than the contract: no alert, no finding, no field beyond it."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from helpers.stub_prometheus import serving

from jaxobs import cli
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import as_event
from jaxobs.findings.patterns import Patterns
from jaxobs.ops.diagnosis import Diagnosis, Inputs, diagnose, gather
from jaxobs.ops.diagnosis.evidence import Evidence, Source
from jaxobs.ops.diagnosis.gathering import metrics
from jaxobs.views import client

END = 1_769_850_000.0
"""Time at which the histories end."""
MINUTES = 60
_PLACES = itertools.count()


def told(found: Diagnosis) -> tuple[str, list[str]]:
    return found.verdict, [each.id for each in found.causes]


# ------------------------------------------------------------------------------------------------------- metrics files


def times(**seconds: float) -> str:
    return "".join(f'jax_time_seconds_total{{category="{name}"}} {value}\n' for name, value in seconds.items())


def recompiled(count: int) -> str:
    """How often a function compiled for another shape."""
    return f'jax_compilations_total{{function="train.step",cause="shape",cache="disabled"}} {count}\n'


def requests(warm: int, cold: int) -> str:
    return "".join(
        f'jax_requests_total{{route="/predict",cold="{name}",outcome="ok"}} {count}\n'
        for name, count in (("false", warm), ("true", cold))
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (times(step=800, input_wait=3000, init=20), ("cause", ["input_bound"])),
        (times(step=3000, input_wait=800), ("no_fault", [])),
        (times(step=8, input_wait=30), ("no_fault", [])),
        (times(input_wait=3000, init=20), ("no_fault", [])),
        (recompiled(300) + times(step=800, compile=3000), ("cause", ["recompilation"])),
        (recompiled(300) + times(step=80_000, compile=3000), ("inconclusive", [])),
        (recompiled(8) + times(step=800, compile=3000), ("no_fault", [])),
        (recompiled(300) + times(step=800, compile=3000) + 'jaxobs_capability{name="x"} 1\n', ("no_fault", [])),
        (requests(600, 400), ("cause", ["cold_requests"])),
        (requests(9000, 30), ("no_fault", [])),
        (requests(20, 30), ("no_fault", [])),
    ],
)
def test_the_figures_of_a_process(text: str, expected: tuple[str, list[str]], tmp_path: Path) -> None:
    """Shares count, not the figures by themselves; a process that judges itself is believed."""
    path = tmp_path / "metrics.prom"
    path.write_text(f'jax_steps_total{{loop="train"}} 1000\n{text}')
    assert told(diagnose(gather(Inputs(metrics_files=(str(path),))))) == expected


# ----------------------------------------------------------------------------------------------------------- histories


def series(name: str, at: Callable[[int], float], **labels: str) -> Any:
    """A series of an hour, a sample a minute, as a Prometheus has it: of a counter its growth."""
    points = [(END - 60 * (MINUTES - minute), at(minute)) for minute in range(MINUTES + 1)]
    value = points[-1][1] - (points[0][1] if name.endswith("_total") else 0.0)
    known = {"job": "train", "instance": "a:9464", **labels}
    sample = metrics.of_sample(name, known, value, "http://p", next(_PLACES), END)
    return dataclasses.replace(sample, history=tuple(points))


def judged(*found: Any) -> tuple[str, list[str]]:
    return told(diagnose(Evidence.of(found, [Source(kind="prometheus", name="http://p")])))


def until(last: int) -> Callable[[int], float]:
    """A counter that grows by 60 a minute and then stands still."""
    return lambda minute: 60.0 * min(minute, last)


def always(minute: int) -> float:
    return 60.0 * minute


def test_steps_that_stand_still() -> None:
    """While the process is in a step or waits for input, and nothing else goes on; why, a counter does not say."""
    steps = series("jax_steps_total", until(30), loop="train")
    working = series("jax_time_seconds_total", always, category="step")
    assert judged(steps, working) == ("inconclusive", [])
    assert judged(steps, series("jax_time_seconds_total", until(30), category="step")) == ("no_fault", [])
    assert judged(steps, working, series("jax_steps_total", always, loop="finetune")) == ("no_fault", [])
    assert judged(series("jax_steps_total", until(55), loop="train"), working) == ("no_fault", [])
    slow = series("jax_steps_total", lambda minute: float(min(minute // 12, 3)), loop="train")
    assert judged(slow, working) == ("no_fault", [])


def test_memory_that_only_grows() -> None:
    """At one pace, for the whole time; what fills up, rests or comes and goes is ordinary."""

    def verdict(at: Callable[[int], float]) -> str:
        return judged(series("jax_live_array_bytes", at, device="cuda:0"))[0]

    assert verdict(lambda minute: 1e9 + 2e7 * minute) == "inconclusive"
    assert verdict(lambda minute: 1e9 + 2e7 * min(minute, 30)) == "no_fault"
    assert verdict(lambda minute: 1e9 + 2e7 * (minute % 20)) == "no_fault"
    assert verdict(lambda minute: 1e9 + 1e5 * minute) == "no_fault"
    assert verdict(lambda minute: 1e9 + 1e9 * (1 - 0.9**minute)) == "no_fault"


def test_a_compilation_that_goes_on() -> None:
    """By the moment it began, against that of the sample."""
    name = "jax_compilation_oldest_start_timestamp_seconds"
    assert judged(series(name, lambda _: END - 7200)) == ("cause", ["compile_stuck"])
    assert judged(series(name, lambda _: END - 600)) == ("no_fault", [])


def test_a_young_process_warms_up() -> None:
    requests = [
        series("jax_requests_total", lambda minute: 1.0 * minute, route="/", cold="true", outcome="ok"),
        series("jax_requests_total", lambda minute: 20.0 * minute, route="/", cold="false", outcome="ok"),
    ]
    young = series("jax_process_start_timestamp_seconds", lambda _: END - 1200)
    assert judged(*requests, young) == ("no_fault", [])
    old = series("jax_process_start_timestamp_seconds", lambda _: END - 90_000)
    assert judged(*requests, old) == ("cause", ["cold_requests"])


def test_a_process_that_no_longer_answers() -> None:
    """While the others of its job do; replicas of a service, and a job that is gone as a whole, may have ended."""

    def verdict(first: float, second: float, count: str) -> str:
        return judged(
            series("up", lambda minute: 1.0 if minute < 40 else first, instance="a:9464"),
            series("up", lambda minute: 1.0 if minute < 40 else second, instance="b:9464"),
            series(metrics.PROCESS, lambda _: 1.0, instance="a:9464", process_index="0", process_count=count),
            series(metrics.PROCESS, lambda _: 1.0, instance="b:9464", process_index="1", process_count=count),
        )[0]

    assert verdict(0.0, 1.0, "2") == "inconclusive"
    assert verdict(1.0, 1.0, "2") == "no_fault"
    assert verdict(0.0, 0.0, "2") == "no_fault"
    assert verdict(0.0, 1.0, "1") == "no_fault"


@pytest.mark.parametrize(
    ("name", "labels", "cause"),
    [("kube_pod_container_status_last_terminated_reason", {"namespace": "ml", "reason": "OOMKilled"},
      "host_out_of_memory"),
     ("kube_node_spec_taint", {"key": "cloud.google.com/impending-node-termination"}, "preemption"),
     ("kube_node_status_condition", {"condition": "Ready", "status": "unknown"}, "host_failed")],
)  # fmt: skip
def test_what_kubernetes_says_of_a_place(name: str, labels: dict[str, str], cause: str) -> None:
    """In this hour, and of the pod or the node of a process that has metrics of JAX."""

    def told_of(place: str, minute: int) -> tuple[str, list[str]]:
        where = {"pod": "train-0", "namespace": "ml", "node": "node-0"}
        steps = series("jax_steps_total", always, loop="train", **where)
        state = series(name, lambda _: 1.0, pod=f"train-{place}", node=f"node-{place}", **labels)
        return judged(steps, dataclasses.replace(state, history=state.history[minute:]))

    assert told_of("0", 40) == ("cause", [cause])
    assert told_of("0", 0) == ("no_fault", [])
    assert told_of("1", 40) == ("no_fault", [])


def test_a_process_has_one_name_in_all_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for index in (0, 1):
        (tmp_path / f"worker-{index}.log").write_text("step 1\nstep 2\n")
    (tmp_path / "worker-1.log").write_text("step 1\njax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory.\n")
    logs = tuple(str(tmp_path / f"worker-{index}.log") for index in (0, 1))
    with serving() as stub:
        where = {"job": "train", "instance": "10.0.0.2:9464"}
        stub.series = {
            "jax_out_of_memory_total": [({**where, "function": "f", "device": "cuda:0"}, 1.0)],
            metrics.PROCESS: [
                ({**where, "process_index": "1"}, 1.0),
                ({"job": "train", "instance": "10.0.0.1:9464", "process_index": "0"}, 1.0),
            ],
        }
        inputs = Inputs(logs=logs, prometheus=(stub.url,))
        [cause] = diagnose(gather(inputs)).causes
        assert (cause.id, cause.component, cause.victims) == ("device_out_of_memory", "process 1", ())
        stub.series[metrics.PROCESS].append(({"job": "other", "instance": "10.0.9.9:9464", "process_index": "1"}, 1.0))
        [cause] = diagnose(gather(inputs)).causes
        assert {cause.component, *cause.victims} == {"process 1", "10.0.0.2:9464"}
        cli.main(["diagnose", "--json", "--job=train", f"--prometheus={stub.url}", *(f"--log={log}" for log in logs)])
        assert [each["victims"] for each in json.loads(capsys.readouterr().out)["causes"]] == [[]]


# ---------------------------------------------------------------------------------------------------------- event logs


def compiled(number: int, cause: str = "shape") -> dict[str, Any]:
    """A compilation, with the fields of the contract."""
    change = {"path": "batch['x']", "what": "shape", "before": f"f32[{7 + number},9]", "after": f"f32[{8 + number},9]"}
    return {
        "event": "compilation", "function": "train.step", "cause": cause, "reason": "batch['x'] has another shape",
        "changes": [change] if cause == "shape" else [], "phases": {"trace": 0.1, "lower": 0.1, "compile": 1.2},
        "cache": "disabled", "uncached_because": None, "call_site": "train.py:10", "fingerprint": f"{number:04x}",
        "eager": False, "sequence": number + 1,
    }  # fmt: skip


def logged(folder: Path, events: Iterable[dict[str, Any]], index: int = 0, every: float = 1.0) -> str:
    """An event log, an event after each pause."""
    path = folder / f"events-{index}.jsonl"
    lines = []
    for number, each in enumerate(events):
        minutes, seconds = divmod(number * every, 60)
        when = f"2026-01-31T09:{int(minutes):02}:{seconds:09.6f}Z"
        lines.append(json.dumps({"time": when, "process_index": index, "pid": 7 + index, **each}))
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([{"event": "out_of_memory", "function": "f", "device": "cuda:0"}], ("cause", ["device_out_of_memory"])),
        ([{"event": "nonfinite", "name": "loss"}], ("cause", ["nonfinite_values"])),
        ([{"event": "error", "error": "Error", "message": "CUDA_ERROR_ILLEGAL_ADDRESS"}], ("cause", ["kernel_fault"])),
        ([{"event": "error", "error": "OddError", "report": "r"}], ("likely", ["program_error"])),
        ([{"event": "manifest"}, *([{"event": "step"}] * 20), {"event": "exit", "reason": "normal"}], ("no_fault", [])),
        ([compiled(0, "first_call"), *map(compiled, range(1, 30))], ("cause", ["recompilation"])),
        ([compiled(0, "first_call"), compiled(1), compiled(2)], ("no_fault", [])),
    ],
)
def test_events_without_fields_that_are_nobodys_contract(
    events: list[dict[str, Any]], expected: tuple[str, list[str]], tmp_path: Path
) -> None:
    found = diagnose(gather(Inputs(event_logs=(logged(tmp_path, events),))))
    assert told(found) == expected
    has_end = events[-1]["event"] == "exit" or expected[0] != "no_fault"
    assert found.missing == () if has_end else "ends without an exit" in found.missing[0]


def test_a_finding_that_is_over_stays_over(tmp_path: Path) -> None:
    events = [compiled(0, "first_call"), *map(compiled, range(1, 30))]
    patterns = Patterns()
    for number, each in enumerate(events):
        event = client.decode_event({"time": f"2026-01-31T09:00:{number:02}Z", "process_index": 0, "pid": 7, **each})
        assert isinstance(event, Compilation)
        patterns.see(event)
    standing = [dataclasses.replace(each, count=each.count - 1, ended=each.time) for each in patterns.standing()]
    over = [{**as_event(each), "pid": 7, "time": "2026-01-31T09:00:40Z"} for each in standing]
    assert told(diagnose(gather(Inputs(event_logs=(logged(tmp_path, events),))))) == ("cause", ["recompilation"])
    path = logged(tmp_path, events)
    with open(path, "a", encoding="utf-8") as file:
        file.write("".join(f"\n{json.dumps(each)}" for each in over))
    assert told(diagnose(gather(Inputs(event_logs=(path,))))) == ("no_fault", [])


def test_a_log_without_an_exit(tmp_path: Path) -> None:
    steps = [{"event": "step", "loop": "train", "last": number} for number in range(20)]
    found = diagnose(gather(Inputs(event_logs=(logged(tmp_path, steps),))))
    assert told(found) == ("no_fault", [])
    [missing] = found.missing
    assert missing.startswith("event-log events-0.jsonl: it ends without an exit")
    ended = logged(tmp_path, [*steps, {"event": "exit", "reason": "normal"}])
    assert diagnose(gather(Inputs(event_logs=(ended,)))).missing == ()


def test_a_log_that_stops_while_another_goes_on(tmp_path: Path) -> None:
    """Without an exit: what became of the process is not known. With one, it is."""
    steps = [{"event": "step", "loop": "train", "last": number} for number in range(400)]
    goes_on = logged(tmp_path, steps, 1)
    stops = logged(tmp_path, steps[:20])
    found = diagnose(gather(Inputs(event_logs=(stops, goes_on))))
    assert told(found) == ("inconclusive", [])
    assert [each.id for each in found.hypotheses if each.status == "supported"] == ["process_silent"]
    ends = logged(tmp_path, [*steps[:20], {"event": "exit", "reason": "normal"}])
    assert told(diagnose(gather(Inputs(event_logs=(ends, goes_on))))) == ("no_fault", [])


def test_a_file_that_is_mostly_damaged_is_no_sign_of_health(tmp_path: Path) -> None:
    """Lines that killed processes left unfinished are few."""
    text = 'jax_steps_total{loop="train"} 1000\n' * 20
    path = tmp_path / "metrics.prom"
    path.write_text(text + "jax_st{{{\n" * 2)
    assert told(diagnose(gather(Inputs(metrics_files=(str(path),))))) == ("no_fault", [])
    path.write_text(text + "jax_st{{{\n" * 20)
    found = diagnose(gather(Inputs(metrics_files=(str(path),))))
    assert told(found) == ("inconclusive", [])
    assert found.missing == ("metrics-file metrics.prom: 20 of 40 lines could not be read",)
