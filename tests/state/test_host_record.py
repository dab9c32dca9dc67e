"""Work of the host during a trace, as the account of its time knows it."""

import functools
import gc
import json
import threading
import time
from pathlib import Path

from jaxobs.profiles import host_record
from jaxobs.state.host_record import HostRecord
from jaxobs.state.host_work import HostMeter
from jaxobs.state.wall import Wall


def test_what_ends_is_recorded_with_its_category() -> None:
    """Scopes within each other, what follows another, and what turned out to be something else."""
    wall = Wall()
    before = wall.enter("input_wait")
    wall.leave(before)
    began = time.time_ns()
    record = HostRecord(wall)
    step = wall.enter("step")
    wait = wall.follow(step, "input_wait")
    wall.leave(wait)
    compiling = wall.enter("compile")
    wall.leave(compiling, "cache_load")
    record.stop()
    wall.leave(wall.enter("eval"))
    spans = record.as_json()["spans"]
    assert {category: len(each) for category, each in spans.items()} == {"step": 1, "input_wait": 1, "cache_load": 1}
    [[start, end]] = spans["input_wait"]
    assert spans["step"][0][1] == start <= end
    assert began - 10**7 <= spans["step"][0][0] <= end <= time.time_ns() + 10**7


def test_the_end_disturbs_nobody() -> None:
    wall = Wall()
    record, step, kept = HostRecord(wall), wall.enter("step"), [*gc.callbacks]
    try:
        gc.callbacks.clear()
        record.stop()
        record.stop()
    finally:
        gc.callbacks[:] = [each for each in kept if getattr(each, "__self__", None) is not record]
    wall._note("step", 0.0, 1.0)  # the check before it was made while there was a record
    wall.leave(wall.follow(step, "input_wait"))
    assert record.as_json() == {"spans": {}}


def test_what_goes_on_at_the_end_counts_until_then() -> None:
    wall = Wall()
    record = HostRecord(wall)
    wall.enter("step")
    wall.enter("checkpoint")
    record.stop()
    assert list(record.as_json()["spans"]) == ["checkpoint"]


def test_collections_of_the_thread_that_is_charged_are_recorded() -> None:
    wall = Wall()
    record = HostRecord(wall)
    try:
        gc.collect()
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
    finally:
        record.stop()
    gc.collect()
    assert len(record.as_json()["spans"]["garbage_collection"]) == 1
    assert not [each for each in gc.callbacks if getattr(each, "__self__", None) is record]


def test_the_file_is_read_beside_the_trace(tmp_path: Path) -> None:
    """By reason for idle time, and as steps, on the trace's clock."""
    wall = Wall()
    record = HostRecord(wall)
    wall.leave(wall.enter("input_wait"))
    wall.leave(wall.enter("step"))
    record.stop()
    record.write(str(tmp_path))
    spans = host_record.find(tmp_path / "plugins" / "profile" / "now" / "here.xplane.pb")
    assert list(spans) == ["input_wait", "step"]
    [(start, end)] = spans["input_wait"]
    assert host_record.reasons(spans, start) == ({"input": [(0.0, end - start)]} if end > start else {"input": []})
    assert len(host_record.steps(spans, start, (0.0, 1e9))) == 1
    assert host_record.steps(spans, start, (1e9, 2e9)) == []


def test_a_damaged_file_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / host_record.FILE
    for body in (b"", b"[]", b'{"spans": 3}', b'{"spans": {"step": [[1], ["a", 2], 3, [1, 2]]}}', b"\xff\xfe"):
        path.write_bytes(body)
        found = host_record.find(tmp_path / "here.xplane.pb")
        assert found == ({"step": [(1.0, 2.0)]} if b"step" in body else {})
    path.write_text(json.dumps({"spans": {"unheard_of": [[1, 2]]}}))
    assert host_record.reasons(host_record.find(tmp_path / "here.xplane.pb"), 0.0) == {}


def test_pauses_while_a_program_is_compiled_belong_to_no_step() -> None:
    meter = HostMeter()
    for compiles in (False, True, True):
        meter.compiles = functools.partial(bool, compiles)
        meter.collected("start", {})
        meter.collected("stop", {"generation": 2})
    host = meter.frozen(0.0)
    assert (host.pauses["2"], host.step_pauses) == (3, 1)
    assert 0.0 < host.step_pause_seconds < host.pause_seconds["2"]
