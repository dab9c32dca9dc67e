"""`jaxobs report`: figures in the file as in the log, whatever the log holds; alone, safe and bounded; in Chromium."""

import functools
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import textwrap
import webbrowser
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from helpers.made_by_hand import compilation
from helpers.page_facts import events as page_events
from helpers.page_facts import lookups, rich
from helpers.page_fixtures import chrome, in_seconds, serving, text
from helpers.page_input_facts import AHEAD, LINES, SLOW, TRAIN, WALL, WATCHED
from helpers.page_request_facts import UNSEEN
from helpers.run_programs import environment, events
from playwright.sync_api import Browser, Page, expect

from jaxobs import cli
from jaxobs.base.symptoms import SECTIONS, symptom_url
from jaxobs.cli.report import Progress
from jaxobs.facts.actions import Action
from jaxobs.facts.compilations import CacheLookup, Change
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.events import Event, as_event
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import ArrayGroup, DeviceMemory
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.standing import Standing
from jaxobs.facts.steps import Step
from jaxobs.state.store import Store
from jaxobs.views import report
from jaxobs.views.report import reading
from jaxobs.views.report import recording as bounds
from jaxobs.views.report.kept import Newest, Thinned

__all__ = ["chrome"]  # a fixture that the tests take by name

START = 1_770_000_000.0
GIB = 2**30
Looker = Callable[..., Page]

PROGRAM = """
    import time
    import jax, jax.numpy as jnp, jaxobs, numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P

    @jax.jit
    def ragged(batch): return batch["image"].sum()
    mesh = jax.make_mesh((4,), ("data",))
    kept = []
    for size in jaxobs.steps(jaxobs.data([32, 17, 29, 11, 23, 30, 26], "sizes"), "train"):
        jaxobs.watch(rows=float("nan") if size == 23 else float(size))
        ragged({"image": np.ones((size, 4), np.float32)})
        kept.append(jax.device_put(np.ones((1024, 64), np.float32), NamedSharding(mesh, P("data"))))
        time.sleep(0.15)
    for _ in range(4):
        jax.jit(lambda scores: scores * 2)(np.ones(3))
    time.sleep(0.3)
    raise SystemExit(3)
"""


def write(path: pathlib.Path, *lines: Event | str) -> pathlib.Path:
    """A log of these events, and of texts as they are."""
    path.write_text(
        "".join(each if isinstance(each, str) else json.dumps(as_event(each)) + "\n" for each in lines),
        encoding="utf-8",
    )
    return path


def made(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Returns what `jaxobs report` prints when all is well."""
    assert cli.main(["report", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Returns what `jaxobs report` says when it cannot."""
    assert cli.main(["report", *map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.fixture
def look(chrome: Browser) -> Iterator[Looker]:
    """Opens a report from its file; afterwards nothing may have gone wrong in it, or been asked of anybody."""
    contexts, complaints, asked = [], [], []

    def open_file(path: pathlib.Path, **options: Any) -> Page:
        context = chrome.new_context(**({"viewport": {"width": 1440, "height": 1000}} | options))
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        expect(page.locator("#live")).to_have_attribute("data-state", "recorded")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(each.startswith(("file:", "data:")) for each in asked), asked
    assert sum(each.startswith("file:") for each in asked) == len(contexts), asked


def causes(page: Page) -> dict[str, int]:
    """How often each cause is told, by the buttons over the timeline."""
    told = page.locator("#timeline-causes .chip").evaluate_all(
        "all => all.map(each => [each.dataset.cause, each.querySelector('b').textContent])"
    )
    return {cause: int(number.replace(",", "")) for cause, number in told}


# ----------------------------------------------------------------------------------------------- a real program


def test_a_report_of_a_real_run_tells_what_its_log_tells(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker
) -> None:
    """Two runs in one log: compilations by cause, seconds, memory of four devices, findings, how it ended."""
    script, log = tmp_path / "train.py", tmp_path / "events.jsonl"
    script.write_text(textwrap.dedent(PROGRAM))
    options = ["--port", "0", "--sample-interval", "0.1", "--event-log", str(log)]
    command = [sys.executable, "-m", "jaxobs", "run", *options]
    variables = environment(XLA_FLAGS="--xla_force_host_platform_device_count=4")
    for _ in range(2):
        done = subprocess.run([*command, str(script)], env=variables, capture_output=True, timeout=120, check=False)
        assert done.returncode == 3, done.stderr
    lines = events(log)
    pids = list(dict.fromkeys(line["pid"] for line in lines))
    printed = made(capsys, log).splitlines()
    assert printed[0] == str(tmp_path / "events.html")
    compiled = [line for line in lines if line["event"] == "compilation"]
    assert printed[1].startswith(f"2 processes, {len(compiled)} compilations in ")
    assert len(printed) == 2

    page = look(tmp_path / "events.html")
    for pid in pids:
        number = pids.index(pid)
        assert f"pid {pid}" in page.locator("#process option").nth(number).inner_text()
        page.locator("#process").select_option(str(number))
        own = [line for line in lines if line["pid"] == pid]
        mine = [line for line in own if line["event"] == "compilation"]
        assert causes(page) == Counter(line["cause"] for line in mine)
        assert text(page, "#compilations") == str(len(mine))
        seconds = sum(sum(line["phases"].values()) for line in mine)
        assert in_seconds(text(page, "#time")) == pytest.approx(seconds, rel=0.06)
        assert page.locator("#recent > li").count() == sum(not line["eager"] for line in mine)
        page.locator("#eager").check()
        assert page.locator("#recent > li").count() == len(mine)
        page.locator("#eager").uncheck()
        latest = {line["device"]: line for line in own if line["event"] == "memory"}
        assert len(latest) == 4
        for device, line in latest.items():
            shown = re.search(r"([\d.]+) KiB in (\d+) live arrays", text(page, f'[data-device="{device}"] figcaption'))
            assert shown is not None
            assert float(shown[1]) * 1024 == pytest.approx(line["live_array_bytes"], rel=0.01)
            assert int(shown[2]) == line["live_arrays"]
        assert "exit code 3" in text(page, "#record")
        stood = own[-1]["standing"]
        assert text(page, "#wall-goodput") == f"goodput {stood['wall']['goodput']:.0%}".replace("%", " %")
        assert in_seconds(text(page, '#wall-legend [data-category="step"] b')) == pytest.approx(
            stood["wall"]["seconds"]["step"], rel=0.06
        )
        assert text(page, '[data-loop="train"] [data-label="steps"]') == "7"
        assert "7 batches" in text(page, '[data-input="sizes"]')
        assert text(page, '[data-watched="rows"]') == "rows finite 7 1 — —"
        assert text(page, "#program") == "train.py"
        assert page.locator("#versions").inner_text().count("jax") >= 2
    kinds = page.locator("#findings-list > li").evaluate_all("all => all.map(each => each.dataset.kind)")
    assert kinds == ["nonfinite_values", "recreated_functions"]
    assert page.locator("#verdict").get_attribute("data-verdict") == "fix"


def test_how_a_killed_process_stood_is_what_it_told_last_and_the_steps_since(tmp_path: pathlib.Path) -> None:
    """Time, inputs and watched values as last told; steps go on, also of new loops."""
    standing = Standing(
        wall=WALL, loops=(replace(TRAIN, recent=(0.3,)),), inputs=(SLOW, AHEAD), watched=WATCHED, routes=(UNSEEN,)
    )
    told: dict[str, Any] = {"pid": 7, "least_seconds": 0.2, "most_seconds": 0.4, "median_seconds": 0.25}
    log = write(
        tmp_path / "log",
        Manifest(time=START, pid=7, sequence=1, versions={}),
        Step(time=START + 9, loop="train", count=1, last=41_233, seconds=0.3, standing=standing, sequence=2, **told),
        Step(time=START + 70, loop="train", count=10, last=41_243, seconds=2.5, items=640, sequence=3, **told),
        Step(time=START + 71, loop="train", count=1, last=41_244, seconds=9.0, slow=True, sequence=4, **told),
        Step(time=START + 72, loop="eval", count=4, last=4, seconds=2.0, sequence=5, **told),
    )
    snapshot = report.read(str(log)).recordings[0].snapshot()
    assert (snapshot.wall, snapshot.watched, snapshot.routes) == (WALL, WATCHED, (UNSEEN,))
    assert snapshot.inputs == (SLOW, AHEAD)
    train, new = snapshot.loops
    assert (train.steps, train.items, train.slow, train.ended) == (41_243, 2_639_552, 4, START + 70)
    assert (train.mean_seconds, train.steps_per_second, train.items_per_second) == (0.25, 4.0, 256.0)
    assert (train.recent, train.p50_seconds, train.mfu) == ((0.3, 0.25), 0.31, 0.486)
    assert train.history == (*TRAIN.history, (START + 70, 0.25, 0.4)) and new.history == ((START + 72, 0.5, 0.4),)
    assert (new.name, new.steps, new.mean_seconds, new.recent, new.p50_seconds) == ("eval", 4, 0.5, (0.5,), None)


def test_a_manifest_begins_a_process_only_where_its_numbers_begin_again(tmp_path: pathlib.Path) -> None:
    """Threads write at the same time in any order: a second manifest may follow an event with a larger number."""
    first = Manifest(time=START, pid=7, sequence=1, versions={})
    lines: list[Event] = [first, compilation("f", pid=7, sequence=3), replace(first, sequence=2)]
    log = write(tmp_path / "log", *lines, compilation("f", pid=7, sequence=4))
    assert [len(each.compilations) for each in report.read(str(log)).recordings] == [2]
    log = write(tmp_path / "log", *lines, first, compilation("f", pid=7, sequence=4))
    assert [len(each.compilations) for each in report.read(str(log)).recordings] == [1, 1]


def test_a_process_that_joined_its_job_is_one_process_with_its_account(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Number 0 until then: what it tells at its end belongs to it, whichever of its numbers is asked for."""
    log = write(
        tmp_path / "log",
        Manifest(time=START, pid=7, sequence=1, versions={}),
        compilation("f", process_index=1, pid=7, sequence=2),
        Manifest(time=START + 1, process_index=1, pid=7, sequence=3, versions={}, process_count=2),
        Exit(time=START + 100, process_index=1, pid=7, sequence=4, reason="normal", standing=Standing(wall=WALL)),
    )
    for wanted in (None, 1, 7):
        (recording,) = report.read(str(log), wanted).recordings
        assert (recording.process_index, recording.pid) == (1, 7)
    with pytest.raises(reading.UnknownProcessError, match=r"It has: 1 \(pid 7\)"):
        report.read(str(log), 0)
    cli.main(["explain", str(log)])
    assert "Where the time went" in capsys.readouterr().out


def test_a_log_of_a_version_that_told_less_has_its_steps_and_no_account(tmp_path: pathlib.Path) -> None:
    """Figures that a log does not have are absent, and not zero."""
    step = Step(
        time=START, loop="train", count=4, last=4, seconds=2.0, least_seconds=0.2, most_seconds=0.9, median_seconds=0.5,
    )  # fmt: skip
    body = {name: value for name, value in as_event(step).items() if name != "standing"}
    log = write(tmp_path / "log", json.dumps(body) + "\n")
    snapshot = report.read(str(log)).recordings[0].snapshot()
    assert (snapshot.wall, snapshot.inputs, snapshot.watched) == (None, (), ())
    assert [(each.name, each.steps, each.mean_seconds) for each in snapshot.loops] == [("train", 4, 0.5)]


def test_lines_are_read_back_and_absent_from_a_log_without_them(tmp_path: pathlib.Path) -> None:
    body = as_event(
        Exit(time=START, reason="normal", standing=Standing(wall=WALL, loops=(replace(TRAIN, lines=LINES),)))
    )
    (loop,) = report.read(str(write(tmp_path / "log", json.dumps(body) + "\n"))).recordings[0].snapshot().loops
    assert loop.lines == LINES
    (told,) = body["standing"]["loops"]
    del told["lines"]
    told["places"] = {"step": "train.py:31"}
    (older,) = report.read(str(write(tmp_path / "older", json.dumps(body) + "\n"))).recordings[0].snapshot().loops
    assert older == replace(loop, lines=())


def test_a_report_counts_as_the_process_itself_did(tmp_path: pathlib.Path) -> None:
    """Events give the same functions, phases, cache figures and findings, live and from the log."""
    store, lines = Store(), list[Event]()
    store.subscribe(lines.append)
    store.record(compilation("f", cache="miss", uncached_because="too_fast"))
    store.record(CacheLookup(time=START, function="g", result="hit", saved_seconds=12.0))
    store.record(compilation("g", cache="hit", phases={"trace": 0.1, "cache_load": 0.2}))
    store.record(compilation("f", cause="shape", changes=(Change("x", "shape", "f32[1]", "f32[2]"),), flops=5.0))
    store.record(compilation("add", eager=True, cause="dtype"))
    store.record(
        Finding(time=START, id="x-1", finding="static_values", function="f", summary="It was.", advice="Do.", count=9)
    )
    store.record(OutOfMemory(time=START, function="f", stage="run", error="E", message="m", device="gpu:0"))
    log = write(tmp_path / "log", *lines)
    known, told = store.snapshot(), report.read(str(log)).recordings[0].snapshot()
    assert told.functions == known.functions
    assert told.phases == known.phases
    own = [each for each in told.findings if each.finding != "memory_ran_out"]  # the store's source finds it live
    assert tuple(own) == known.findings and len(own) + 1 == len(told.findings)
    assert (told.cache.unsaved, told.cache.saved_seconds) == ({"too_fast": 1}, 12.0)
    assert (told.process.pid, told.last_sequence) == (os.getpid(), 7)


# ------------------------------------------------------------------------------------------- logs made by hand


def memory(time: float, device: str, used: int, **fields: Any) -> DeviceMemory:
    """A sample of a device of 80 GiB."""
    return DeviceMemory(
        time=time, pid=7, device=device, in_use_bytes=used, live_array_bytes=used // 2, live_arrays=3,
        limit_bytes=80 * GIB, peak_bytes=used, **fields,
    )  # fmt: skip


def a_run() -> list[Event]:
    """A process that compiles, finds something, captures, dies of memory."""
    group = ArrayGroup(
        shape=(1024, 1024), dtype="float32", sharding="gpu:0", memory_kind="device", count=12,
        bytes_per_device={"gpu:0": 3 * GIB},
    )  # fmt: skip
    return [
        Manifest(time=START, pid=7, sequence=1, versions={"jax": "0.10.2"}, program="train.py", hostname="node-7"),
        compilation("train.step", time=START + 5, pid=7, sequence=2, phases={"compile": 4.0}),
        memory(START + 6, "gpu:0", 10 * GIB, sequence=3, groups=(group,)),
        compilation("train.step", time=START + 20, pid=7, sequence=4, cause="shape", phases={"compile": 6.0}),
        Finding(
            time=START + 21, pid=7, sequence=5, id="u-1", finding="unbounded_shapes", function="train.step",
            summary="Dimension 0 grows.", advice="Pad it.", count=2, seconds=10.0, sequences=(4,),
        ),
        memory(START + 30, "gpu:0", 60 * GIB, sequence=6),
        Action(time=START + 31, pid=7, sequence=7, name="memory", origin="signal", result="done", path="m.prof"),
        OutOfMemory(
            time=START + 40, pid=7, sequence=8, function="train.step", stage="run", error="XlaRuntimeError",
            message="RESOURCE_EXHAUSTED", wanted_bytes=32 * GIB,
        ),
        Error(time=START + 40, pid=7, sequence=9, error="XlaRuntimeError", message="RESOURCE_EXHAUSTED"),
        Exit(time=START + 41, pid=7, sequence=10, reason="exception", detail="XlaRuntimeError", code=1),
    ]  # fmt: skip


def test_the_timeline_has_all_that_happened_and_is_read_with_keys(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker
) -> None:
    """A mark for each compilation and for start, finding, capture, out of memory, error, end; arrows, Enter, Escape."""
    made(capsys, write(tmp_path / "events.jsonl", *a_run()))
    page = look(tmp_path / "events.html", color_scheme="dark")
    stems = page.locator("#timeline .stem")
    assert stems.evaluate_all("all => all.map(each => each.dataset.cause)") == ["shape", "first_call"]
    heights = stems.evaluate_all("all => all.map(each => Number(each.getAttribute('height')))")
    assert heights[0] > heights[1] > 0
    marks = page.locator("#timeline .flag-mark").evaluate_all("all => all.map(each => each.dataset.mark)")
    assert marks == ["start", "finding", "action", "oom", "error", "exit"]
    assert page.locator("#timeline .total-text").text_content() == "10.0 s"
    page.locator("#timeline").focus()
    seen = []
    page.keyboard.press("Home")
    for _ in range(8):
        seen.append(text(page, "#tip"))
        page.keyboard.press("ArrowRight")
    for shown, part in zip(
        seen,
        ("jaxobs starts", "4.0 s", "6.0 s", "unbounded shapes", "memory capture done", "32.0 GiB wanted",
         "XlaRuntimeError", "ended by an exception: XlaRuntimeError, exit code 1"),
        strict=True,
    ):  # fmt: skip
        assert part in shown
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()
    for key in ("Home", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.sequence") == "4"
    assert "ended by an exception: XlaRuntimeError, exit code 1" in text(page, "#record")
    assert "node-7" in text(page, "#where")
    page.locator("#timeline-causes button", has_text="shape").click()
    assert page.locator("#recent > li").count() == stems.count() == 1


def test_the_samples_of_memory_are_those_of_the_log(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker
) -> None:
    """The chart reads each sample; the account and the groups stand as they were last told."""
    made(capsys, write(tmp_path / "events.jsonl", *a_run()))
    page = look(tmp_path / "events.html")
    chart = page.locator('[data-device="gpu:0"] .chart')
    chart.focus()
    page.keyboard.press("ArrowRight")
    assert "60.0 GiB" in text(page, "#tip")
    page.keyboard.press("ArrowLeft")
    assert "10.0 GiB" in text(page, "#tip") and "5.0 GiB" in text(page, "#tip")
    assert "75 % of 80.0 GiB" in text(page, '[data-device="gpu:0"] figcaption')
    assert "float32[1024,1024]" in text(page, "#groups")
    told_at = page.evaluate(f"new Date({(START + 6) * 1000}).toTimeString().slice(0, 8)")
    assert f"as at {told_at}" in text(page, "#groups")


def test_processes_are_told_apart_and_one_can_be_asked_for(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By index or by pid; the dearest is shown first, and its neighbours by the chooser; `--open` opens the file."""
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    lines: list[Event] = []
    for index in range(3):
        lines += [
            Manifest(time=START, process_index=index, pid=40 + index, sequence=1, versions={}, process_count=3),
            compilation(f"f{index}", time=START + 1, process_index=index, pid=40 + index, sequence=2,
                        phases={"compile": (3.0, 9.0, 6.0)[index]}),
        ]  # fmt: skip
    log = write(tmp_path / "events.jsonl", *lines)
    made(capsys, log)
    page = look(tmp_path / "events.html")
    assert (text(page, "#time"), page.locator("#process").input_value()) == ("9.0 s", "1")
    page.locator("#process").select_option("2")
    assert (text(page, "#time"), page.locator("#recent .fn").get_attribute("title")) == ("6.0 s", "f2")
    assert "process 2/3" in text(page, "#where").replace(" ·", "")
    assert "no exit was recorded" in text(page, "#record")
    for wanted in ("2", "42"):
        printed = made(capsys, log, "--process", wanted, "--out", tmp_path / "one.html", "--open").splitlines()
        assert printed[1].startswith("1 process, 1 compilation in 6.0 s")
    assert shown == [(tmp_path / "one.html").as_uri()] * 2
    assert "It has: 0 (pid 40), 1 (pid 41), 2 (pid 42)." in refused(capsys, log, "--process", "9")


HOSTILE = (
    "</script><script>window.hit = 1</script>",
    "<!--<script>",
    "<img src=x onerror='window.hit = 2'>",
    "\u2028\u2029 `a` & \"b\" 'c' \\u003c \ud800",
)


def test_names_and_texts_of_the_program_stay_texts(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker
) -> None:
    """Text that would end the data's element or be markup is shown as it is written, and nothing of it runs."""
    lines: list[Event] = [
        Manifest(time=START, pid=7, sequence=1, versions={"jax": HOSTILE[0]}, program=HOSTILE[2], hostname=HOSTILE[0])
    ]
    for number, bad in enumerate(HOSTILE):
        lines.append(
            compilation(
                bad, time=START + number, pid=7, sequence=2 + number, cause="shape", reason=bad, call_site=bad,
                changes=(Change(bad, bad, bad, bad),), phases={"compile": float("nan"), "trace": 1.0},
            )
        )  # fmt: skip
        lines.append(memory(START, bad, 5))
        lines.append(Error(time=START, pid=7, sequence=20 + number, error=bad, message=bad))
    log = write(tmp_path / "<b>events.jsonl", *lines)
    made(capsys, log)
    document = (tmp_path / "<b>events.html").read_text(encoding="utf-8")
    assert "window.hit" in document and "<script>window.hit" not in document
    page = look(tmp_path / "<b>events.html")
    page.locator("#timeline").focus()
    page.keyboard.press("Home")
    assert page.evaluate("window.hit") is None
    shown = page.locator("#recent .fn").evaluate_all("all => all.map(each => each.title)")
    assert shown[::-1][:3] == list(HOSTILE[:3])
    assert text(page, "#time") == "4.0 s"


def test_the_file_lets_no_other_script_run_and_nothing_be_fetched(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's policy names the hashes of its own scripts; there is no reference to any other host."""
    log = write(tmp_path / "events.jsonl", *a_run())
    assert cli.main(["report", str(log), "--out", "-"]) == 0
    document = capsys.readouterr().out
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', document)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    scripts = re.search(r"script-src ([^;]+);", policy[1])
    assert scripts is not None and len(scripts[1].split()) == document.count("<script>") == 2
    assert all(each.startswith("'sha256-") for each in scripts[1].split())
    addresses = set(re.findall(r"https?://[^\s\"'`<)]+", document))
    assert addresses <= {"http://www.w3.org/2000/svg", *map(symptom_url, ["", *SECTIONS])}  # a name, links to the docs
    assert not (tmp_path / "events.html").exists()


def test_the_live_page_draws_the_same_picture(chrome: Browser) -> None:
    """From the events that it asks for: stems, flags of findings; a button of a cause filters picture and list."""
    with serving(rich(), [*lookups(), *page_events()]) as server:
        page = chrome.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(server.url)
        own = [each for each in page_events() if not each.eager]
        expect(page.locator("#recent > li")).to_have_count(len(own))
        expect(page.locator("#timeline .stem").first).to_be_visible()
        assert page.locator("#timeline .finding").count() == len(rich().findings)
        page.locator("#timeline-causes button", has_text="weak type").click()
        expect(page.locator("#recent > li")).to_have_count(sum(each.cause == "weak_type" for each in own))
        expect(page.locator("#timeline .stem")).to_have_count(1)
        assert wrong == []
        server.over = True
        page.close()


# ------------------------------------------------------------------------------------------------------ bounds


def large(compilations: int) -> Iterator[Event]:
    """Four hours with very many compilations, of which some belong to a finding, and eight devices."""
    dice = random.Random(1)
    yield Manifest(time=START, pid=7, sequence=1, versions={"jax": "0.10.2"}, program="train.py")
    for number in range(compilations):
        moment = START + number * 4 * 3600 / compilations
        yield compilation(
            f"train.part_{number % 60}", time=moment, pid=7, sequence=2 + number, eager=number % 9 == 0,
            cause=dice.choice(("shape", "first_call", "dtype", "new_function")), cache="miss",
            uncached_because="too_fast", call_site="train.py:120",
            reason=f"`batch['image']` float32[{number},128] -> float32[{number + 1},128]. Pad it to one size.",
            changes=(Change("batch['image']", "shape", f"float32[{number},128]", f"float32[{number + 1},128]"),),
            phases={"trace": dice.expovariate(20), "compile": dice.lognormvariate(-1, 1.5)},
        )  # fmt: skip
        if number % 5 == 0:
            for device in range(8):
                yield memory(moment, f"gpu:{device}", int(40 * GIB + 20 * GIB * dice.random()))


def test_ten_thousand_compilations_open_and_are_all_within_reach(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker
) -> None:
    """Below 12 MB and 17,000 nodes, page by page to the very first; the filter finds one of them."""
    log = write(tmp_path / "events.jsonl", *large(10_000))
    printed = made(capsys, log)
    assert "10,000 compilations" in printed and "leave out" not in printed
    out = tmp_path / "events.html"
    assert out.stat().st_size < 12e6
    page = look(out)
    expect(page.locator("#recent > li")).to_have_count(200, timeout=120_000)
    assert page.locator("*").count() < 17_000
    own = 10_000 - len(range(0, 10_000, 9))
    assert text(page, "#compilations") == "10,000"
    assert sum(causes(page).values()) == 10_000
    assert text(page, "#recent-part") == f"1 to 200 of {own:,}"
    assert page.locator("#timeline *").count() < 8_000
    page.locator("#eager").check()
    page.locator("#recent-older").click()
    expect(page.locator("#recent-part")).to_have_text("201 to 400 of 10,000")
    page.locator("#recent-oldest").click()
    expect(page.locator("#recent-older")).to_be_disabled()
    assert page.locator("#recent > li").last.get_attribute("data-sequence") == "2"
    page.locator("#recent-filter").fill("PART_7 float32[4207,128]")
    expect(page.locator("#recent > li")).to_have_count(1)
    assert page.locator("#recent > li").get_attribute("data-sequence") == "4209"


def test_a_log_beyond_the_bounds_keeps_its_figures_and_says_what_is_left_out(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earliest compilations leave the list, the eager ones first among themselves; all are counted."""
    monkeypatch.setattr(bounds, "MOST_COMPILATIONS", 50)
    monkeypatch.setattr(bounds, "MOST_EAGER", 5)
    log = write(tmp_path / "events.jsonl", *large(200))
    printed = made(capsys, log)
    eager = len(range(0, 200, 9))
    assert "200 compilations in " in printed
    assert f"leave out the earliest {200 - eager - 50 + eager - 5} compilations" in printed
    kept = report.read(str(log)).recordings[0]
    assert [len(kept.compilations), len(kept.eager)] == [50, 5]
    assert sum(each.compiled for each in kept.snapshot().functions) == 200
    monkeypatch.setattr(reading, "MOST_PROCESSES", 2)
    several = [compilation(pid=pid, sequence=1) for pid in range(5)]
    assert "3 more processes than the 2" in made(capsys, write(tmp_path / "several.jsonl", *several))


def test_thinned_samples_keep_the_ends_and_the_peaks() -> None:
    """Some hundred of 100,000 samples stay, with two short peaks and a short dip among them."""
    thinned: Thinned[tuple[int, float]] = Thinned(200, lambda sample: sample[1])
    heights = {31_337: 99.0, 77_777: 50.0, 50_001: -5.0}
    for moment in range(100_000):
        thinned.add((moment, heights.get(moment, moment % 7)))
    kept = thinned.samples()
    assert 50 < len(kept) <= 200
    assert max(b - a for (a, _), (b, _) in itertools.pairwise(kept)) < 6_000, "as dense everywhere"
    assert kept == sorted(kept)
    assert (kept[0][0], kept[-1][0]) == (0, 99_999)
    assert set(heights.items()) <= set(kept)
    assert len(thinned.samples(60)) <= 60
    assert thinned.samples(1) == [(99_999, 99_999 % 7)]
    for number in range(1, 40):
        some: Thinned[int] = Thinned(8, float)
        for moment in range(number):
            some.add(moment)
        shown = some.samples()
        assert (shown[0], shown[-1]) == (0, number - 1)
        assert shown == sorted(set(shown)) and len(shown) <= 8


def test_the_newest_are_kept() -> None:
    """Texts are made of those only."""
    few, made = Newest(3), list[int]()

    def make(number: int) -> int:
        made.append(number)
        return number

    for number in range(10):
        few.add(functools.partial(make, number))
    assert (list(few.texts), few.left_out, made) == (["7", "8", "9"], 7, [7, 8, 9])


def test_a_long_reading_tells_how_far_it_is(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the standard error, after a second, and not on each line."""
    log = tmp_path / "log"
    log.write_bytes(b" " * 4 * 2**20)
    progress = Progress(str(log))
    progress(2**20)
    assert capsys.readouterr().err == ""
    progress._begun -= 2
    progress(2**20)
    progress(2 * 2**20)
    progress.end()
    assert capsys.readouterr().err == f"jaxobs: reading {log}: 25% of 4 MiB\n"


# ------------------------------------------------------------------------------------------------------ errors


def test_what_cannot_be_read_or_written_is_named_with_the_next_step(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is missing, empty, something else, or of a newer version; a place that cannot be written."""
    missing = refused(capsys, tmp_path / "none.jsonl")
    assert "none.jsonl` cannot be read: No such file" in missing and "jaxobs run --event-log FILE" in missing
    assert "is a directory" in refused(capsys, tmp_path)
    assert "contains no events" in refused(capsys, write(tmp_path / "empty"))
    other = write(tmp_path / "other", "not JSON\n")
    assert f"{other}:1: the line is not valid JSON" in refused(capsys, other)
    newer = write(tmp_path / "newer", '{"time": "2026-01-01T00:00:00Z", "event": "invented", "pid": 3}\n')
    assert "only events that this version of jaxobs does not know" in refused(capsys, newer)
    log = write(tmp_path / "events.jsonl", *a_run())
    assert "cannot be written to" in refused(capsys, log, "--out", tmp_path / "no" / "where.html")
    assert "is a directory" in refused(capsys, log, "--out", tmp_path)
    assert "is the event log itself" in refused(capsys, log, "--out", log)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "events.jsonl", "newer", "other"]


def test_torn_lines_and_older_and_newer_logs_make_a_report(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker
) -> None:
    """Half a line, fields that an old log lacks, and kinds of event that a newer one has: passed over, and told."""
    lines = [json.dumps(as_event(each)) + "\n" for each in a_run()]
    old = [
        json.dumps(
            {name: value for name, value in json.loads(line).items() if name not in ("hostname", "flops", "memory")}
        )
        + "\n"
        for line in lines
    ]
    newer = '{"time": "2026-01-01T00:00:00Z", "event": "invented", "pid": 7, "colour": "blue"}\n'
    log = write(tmp_path / "events.jsonl", *old[:6], old[6][:70] + "\n", newer, old[1][:90])
    printed = made(capsys, log).splitlines()
    assert printed[2:] == [
        "Skipped 2 damaged lines (lines 7, 9): the first is not valid JSON.",
        "Skipped 1 event of a kind that this version of jaxobs does not know.",
    ]
    page = look(tmp_path / "events.html")
    assert "Skipped 2 damaged lines" in text(page, "#record")
    assert text(page, "#compilations") == "2"


def test_a_report_prints_and_fits_a_telephone(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], look: Looker
) -> None:
    """Nothing is wider than a narrow screen, and on paper the controls are gone and all of it is there."""
    made(capsys, write(tmp_path / "events.jsonl", *a_run()))
    page = look(tmp_path / "events.html", viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.emulate_media(media="print")
    expect(page.locator("#theme")).to_be_hidden()
    expect(page.locator("#timeline")).to_be_visible()
