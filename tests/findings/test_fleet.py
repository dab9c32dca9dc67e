"""Several processes: findings across them, by hand-made views and in real jobs on this machine."""

import dataclasses
import json
import pathlib
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers.jobs import Job
from helpers.paths import PROGRAMS

from jaxobs.facts.compilations import Compilation
from jaxobs.facts.findings import Finding
from jaxobs.findings.fleet.support.digest import MOST_LISTED, Digest, Listed, Programs, decode, decode_listed
from jaxobs.findings.fleet.support.looks import Looks
from jaxobs.findings.fleet.support.progress import Excess, Pace
from jaxobs.findings.fleet.support.view import View, named
from jaxobs.findings.standing import Standing
from jaxobs.sources.fleet import FleetSource
from jaxobs.state.store import Store
from jaxobs.views import report


def digest(process: int, **given: Any) -> Digest:
    """A process that makes a step in 0.1 s."""
    known = {"tick": 1, "host": f"host{process}", "loop": "train.step", "steps": 100, "usual": 0.1, "looks": 20}
    return Digest(process=process, **(known | given))


def view(own: Digest, *others: Digest, **given: Any) -> View:
    """The view of the process `own`."""
    count = 1 + len(others)
    return View(time=1000.0, own=own, count=count, others={each.process: each for each in others}, **given)


def found(*views: View) -> list[tuple[Finding, bool]]:
    """Findings that stand after these views."""
    watched, told = Standing(View), []
    for each in views:
        told = list(watched.see(each))
    return told


def programs(*names: str) -> Programs:
    """Programs in this order; a name is its own fingerprint."""
    made = Programs()
    for name in names:
        made.add(f"train.{name.rstrip('2')}", name)
    return made


# ----------------------------------------------------------------------------------------------- what is told


def test_a_digest_survives_its_way() -> None:
    """A digest of another version, with fields of its own or nonsense, is passed over or cut to what is known."""
    sent = digest(3, programs=2, chain="ab", waiting=0.5, line="train.py:7")
    assert decode(sent.encode()) == sent
    assert decode(json.dumps({**json.loads(sent.encode()), "new": 1})) == sent
    wrong = ("", "[]", "{}", '{"process": "x", "tick": 1}', '{"process": 1, "tick": 1, "address": 2}')
    assert [decode(text) for text in wrong] == [None] * 5
    assert decode_listed(Listed(2, (("f", "a"),)).encode()) == Listed(2, (("f", "a"),))
    assert decode_listed("{}") is None


def test_a_digest_is_small() -> None:
    """A thousand of them are read every few seconds."""
    full = digest(1023, programs=20000, chain="f" * 16, line="/home/somebody/project/train.py:1234", at="x" * 60)
    full = dataclasses.replace(full, address="[2001:db8:85a3:8d3:1319:8a2e:370:7348]:9464")
    assert len(full.encode()) < 600


# ---------------------------------------------------------------------------------------- diverging programs


def test_programs_differ_by_function_fingerprint_or_order() -> None:
    """A process that is only ahead does not differ, nor does a program that comes a second time."""
    here = programs("a", "b", "c")

    def other(*names: str) -> Digest:
        made = programs(*names)
        return digest(1, programs=made.count, chain=made.chain(made.count))

    assert not here.differ(other("a", "b", "c"))
    assert not here.differ(other("a"))
    assert not here.differ(other("a", "b", "c", "d"))
    assert not here.differ(other("a", "b", "a", "c"))
    assert here.differ(other("a", "c"))
    assert here.differ(other("a", "b2"))


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (("a", "b2"), "the 2nd program that spans processes is `train.b` in both, but lowered differently (b2 there"),
        (("b", "a"), "the 1st program that spans processes is `train.b` there and `train.a` here. The same programs"),
        (("a", "x"), "the 2nd program that spans processes is `train.x` there and `train.b` here."),
        (("a",), "it has not compiled the 2nd program that spans processes, `train.b` (b), although it has made"),
        (
            ("a", "b", "c"),
            ("this process has not compiled the 3rd program that spans processes there, `train.c` (c), although"),
        ),
    ],
)
def test_the_first_difference_is_told(theirs: tuple[str, ...], said: str) -> None:
    here, there = programs("a", "b"), programs(*theirs)
    [(finding, news)] = found(view(digest(0), digest(1), programs=here.all(), differing={1: there.listed()}))
    assert news
    assert said in finding.summary
    assert finding.summary.startswith("Process 1 and process 0 run different programs")
    assert [each[:10] for each in finding.evidence] == ["Process 0:", "Process 1:"]


def test_processes_that_went_the_same_way_are_one_finding() -> None:
    there = programs("b").listed()
    differing = dict.fromkeys(range(1, 41), there)
    [(finding, _)] = found(view(digest(0), programs=programs("a").all(), differing=differing))
    assert finding.count == 40
    assert named(list(range(1, 41))) == "Processes 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, ... (40)"
    assert finding.summary.startswith("Processes 1, 2, 3")


def test_what_lies_too_far_back_is_told_without_names() -> None:
    """Only the latest programs are sent by name."""
    here, there = programs(*(f"p{n}" for n in range(100))), programs("x", *(f"p{n}" for n in range(99)))
    assert len(there.listed().programs) == MOST_LISTED
    [(finding, _)] = found(view(digest(0), programs=here.all(), differing={1: there.listed()}))
    assert "too long ago" in finding.summary


def test_one_program_more_is_told_when_the_other_has_gone_on_without_it() -> None:
    """A process that compiled it first is only ahead until the other makes as many steps."""
    excess = Excess()
    ahead, behind = digest(1, programs=3, steps=50), digest(0, programs=2, steps=40)
    assert not excess.see(behind, ahead)
    assert not excess.see(dataclasses.replace(behind, steps=51), dataclasses.replace(ahead, steps=60))
    assert excess.see(dataclasses.replace(behind, steps=52), dataclasses.replace(ahead, steps=61))
    assert not excess.see(dataclasses.replace(behind, steps=52, programs=3), ahead)


# ---------------------------------------------------------------------------------------------- straggler


def test_a_slower_process_is_a_straggler_after_three_views() -> None:
    """Not at once: a pause happens. It is over when it is as fast as the others again."""
    slow = view(digest(0), digest(1), digest(2, usual=0.2, line="load.py:7"))
    assert [found(*[slow] * count) for count in (1, 2)] == [[], []]
    [(finding, news)] = found(slow, slow, slow)
    assert news
    assert (
        "Process 2 on host2 takes 200 ms per step, 100% more than the median of 3 processes (100 ms)."
    ) in finding.summary
    assert "load.py:7" in finding.summary
    assert finding.data["process"] == 2
    assert [news for _, news in found(*[slow] * 4)] == [False]
    fine = view(digest(0), digest(1), digest(2))
    [(over, news)] = found(slow, slow, slow, fine, fine, fine)
    assert news
    assert over.ended == 1000.0


def test_a_straggler_of_a_job_that_ends_early_is_likely() -> None:
    """Only while it is one, and not after so many views that three in a row would have shown it."""
    slow, fine = view(digest(0), digest(1), digest(2, usual=0.2)), view(digest(0), digest(1), digest(2))

    def at_end(*views: View) -> list[tuple[str, str, object]]:
        watched = Standing(View)
        for each in views:
            list(watched.see(each))
        return [(each.subject, each.severity, each.data.get("likely")) for each, news in watched.at_end() if news]

    assert at_end(fine, fine, slow) == at_end(*[fine] * 6, slow, slow) == [("process 2", "info", True)]
    assert at_end(fine) == at_end(fine, slow, fine) == at_end(*[fine] * 4, slow) == at_end(slow, slow, slow) == []


def test_a_tenth_is_no_straggler() -> None:
    """Nor are 5 ms of steps of 1 ms, a process that stands still, or what another than process 0 believes."""
    for own, other in (
        (digest(0), digest(1, usual=0.11)),
        (digest(0, usual=0.001), digest(1, usual=0.006)),
        (digest(0), digest(1, usual=0.2, idle=60.0)),
        (digest(1), digest(0, usual=0.3)),
        (digest(0), digest(1, usual=0.3, looks=5)),
    ):
        assert found(*[view(own, other)] * 4) == []


def test_the_one_that_does_not_wait_is_the_straggler_where_all_keep_step() -> None:
    """Collectives make all step times alike; the others are found inside JAX."""
    seen = view(digest(0, waiting=0.95), digest(1, waiting=0.9), digest(2, waiting=0.1, line="load.py:7"))
    [(finding, _)] = found(seen, seen, seen)
    assert finding.data["process"] == 2
    assert finding.summary.startswith("The others wait for process 2 on host2")
    busy = view(digest(0, waiting=0.5), digest(1, waiting=0.4), digest(2, waiting=0.1))
    assert found(busy, busy, busy) == []
    rather = view(digest(0, waiting=0.65), digest(1, waiting=0.6), digest(2, waiting=0.1))
    assert found(rather, rather, rather)[0][0].data["process"] == 2


# -------------------------------------------------------------------------------------------------- stuck


def test_a_process_without_steps_is_stuck() -> None:
    """Named with the process that is not in JAX while it waits there; over once it goes on."""
    stuck = digest(0, idle=61.0, inside=True, at="train.py:9")
    other = digest(1, at="load.py:3")
    assert found(view(stuck, other)) == []
    assert found(view(dataclasses.replace(stuck, idle=59.0), other, stuck_after=60.0)) == []
    [(finding, _)] = found(view(stuck, other, stuck_after=60.0, threads={"MainThread": ("train.py:9 in <module>",)}))
    assert "has not made a step after step 100 for 61 s, where a step typically takes 100 ms" in finding.summary
    assert "at train.py:9, inside JAX. Process 1 on host1 is elsewhere, at load.py:3: check" in finding.summary
    assert finding.evidence == ("MainThread: train.py:9 in <module>",)
    behind = view(stuck, dataclasses.replace(other, steps=99), stuck_after=60.0)
    assert "Process 1 made fewer steps" in found(behind)[0][0].summary


def test_a_process_that_says_nothing_is_told() -> None:
    """A process whose interpreter is held cannot tell itself."""
    [(finding, _)] = found(view(digest(0), digest(1), silent={1: 130.0}))
    assert finding.summary.startswith("Process 1 on host1, pid 0, has not reported for 130 s.")


def test_views_between_two_ticks_hurry_and_end_nothing() -> None:
    """Programs are compared at once; a straggler has to last for ticks, however much is compiled meanwhile."""
    watched, slow = Standing(View), view(digest(0), digest(1, usual=0.3))
    differing = dataclasses.replace(slow, programs=programs("a").all(), differing={1: programs("b").listed()})
    for _ in range(5):
        assert {each.finding for each, _ in watched.see(differing, between=True)} == {"diverging_programs"}
    told = [{each.finding for each, _ in watched.see(differing)} for _ in range(3)]
    assert told == [{"diverging_programs"}] * 2 + [{"diverging_programs", "straggler"}]
    for _ in range(5):
        assert [each for each, news in watched.see(view(digest(0), digest(1)), between=True) if news] == []


def test_the_usual_step_time_withstands_a_pause_and_rare_looks() -> None:
    """Looks every 0.2 s at steps of 0.15 s, one of them 30 s late."""
    pace = Pace()
    now = 0.0
    for look in range(24):
        now += 30.0 if look == 12 else 0.2
        pace.see(
            now, {"step": 100 + int(min(look, 11) * 0.2 / 0.15) + max(0, int((look - 11) * 0.2 / 0.15)), "other": 1}
        )
    assert pace.loop == "step"
    assert pace.usual == pytest.approx(0.15, rel=0.1)
    assert pace.idle(now + 7.0) == pytest.approx(7.0, abs=0.21)


def test_alone_and_without_a_declared_step_nobody_is_stuck() -> None:
    """A notebook may rest for hours, and a server at night."""
    store = Store()
    source = FleetSource(store)
    source._pace.see(0.0, {"f": 100})
    assert source._stuck_after(1000.0, together=False) is None
    assert source._stuck_after(1.0, together=True) == 10 * store.settings.stuck_seconds


def test_where_calls_stand_for_steps_more_of_them_settle_who_is_ahead() -> None:
    """Some may not be seen: it takes twenty, from the time at which all calls before the program are counted."""
    excess = Excess()
    ahead = digest(1, programs=3, steps=50, found=True, exact=False)
    behind = digest(0, programs=2, steps=40, found=True)
    assert not excess.see(behind, ahead)
    assert not excess.see(dataclasses.replace(behind, steps=90), ahead)
    counted = dataclasses.replace(ahead, exact=True, steps=60)
    assert not excess.see(dataclasses.replace(behind, steps=90), counted)  # from here on
    assert not excess.see(dataclasses.replace(behind, steps=79), counted)
    assert excess.see(dataclasses.replace(behind, steps=80), counted)


def test_pauses_of_process_0_make_it_no_straggler() -> None:
    """Process 0 evaluates and saves for all. Another process's pauses count, and so does a slower step of process 0."""
    pausing = {"usual": 0.2, "typical": 0.1}
    for who, typical, told in ((0, 0.1, False), (1, 0.1, True), (0, 0.19, True)):
        ones = [digest(process, typical=0.1) for process in (0, 1, 2)]
        ones[who] = digest(who, **(pausing | {"typical": typical}))
        assert bool(found(*[view(*ones)] * 3)) == told
    # In step with process 0, which pauses outside of JAX, the others wait for it.
    first = digest(0, typical=0.1, waiting=0.0, waiting_in_steps=0.0)
    waits = {"typical": 0.1, "waiting": 0.5, "waiting_in_steps": 0.0}
    assert not found(*[view(first, digest(1, **(pausing | waits)), digest(2, **waits))] * 3)
    ahead = [digest(process, typical=0.001) for process in (1, 2)]  # their median is what a dispatch takes
    assert found(*[view(digest(0, usual=0.2, typical=0.001), *ahead)] * 3)


@pytest.mark.parametrize(("process", "told"), [(0, False), (1, True)])
def test_waiting_during_the_pauses_of_process_0_counts_for_no_other(process: int, told: bool) -> None:
    """Process 0 evaluates and saves for all. If the others wait for it in ordinary steps, too, it holds them up."""
    held = {"waiting": 0.6, "waiting_in_steps": 0.1}
    ones = [
        digest(each, **({"waiting": 0.0, "waiting_in_steps": 0.0} if each == process else held)) for each in range(3)
    ]
    assert bool(found(*[view(*ones)] * 3)) == told
    always = [dataclasses.replace(each, waiting_in_steps=each.waiting) for each in ones]
    assert found(*[view(*always)] * 3)


def test_looks_during_a_pause_are_apart() -> None:
    """A thread inside JAX while no step is made waits for something else than the steps do."""
    looks = Looks()
    for _ in range(20):
        looks.look(pauses=True)
    assert (looks.waiting, looks.waiting_in_steps) == (1.0, None)
    for _ in range(10):
        looks.look()
    assert (looks.waiting, looks.waiting_in_steps) == (1.0, 1.0)


def test_step_times_of_two_loops_are_not_compared() -> None:
    for loop, told in (("evaluate", False), ("train.step", True)):
        seen = view(digest(0), digest(1), digest(2, usual=0.3, loop=loop))
        assert bool(found(seen, seen, seen)) == told


def test_the_main_loop_is_the_one_that_takes_most_time() -> None:
    """An evaluation of more steps, on one process only, does not take its place."""
    pace = Pace()
    for look in range(1, 9):
        pace.see(
            float(look), {"train": 10 * look, "evaluate": 40 * look}, {"train": 1.0 * look, "evaluate": 0.2 * look}
        )
        assert pace.loop == "train"
    pace.see(9.0, {"train": 90, "evaluate": 400}, {"train": 9.0, "evaluate": 10.0})
    assert pace.loop == "train"
    pace.see(10.0, {"train": 90, "evaluate": 900}, {"train": 9.0, "evaluate": 20.0})
    assert pace.loop == "evaluate"
    counted = Pace()
    counted.see(1.0, {"f": 3, "g": 2})
    assert counted.loop == "f"
    counted.see(2.0, {"f": 3, "g": 4})
    assert counted.loop == "g"


def test_a_found_loop_that_may_have_ended_is_not_stuck() -> None:
    """Nobody said that these calls are steps: another process has to go on, or to wait for this one."""
    own, going = digest(0, found=True, idle=61.0, at="train.py:9"), digest(1, found=True)
    resting, waiting = (digest(1, found=True, idle=61.0, inside=inside) for inside in (False, True))
    inside = dataclasses.replace(own, inside=True)
    for process, others, told in (
        (own, [going], True), (own, [waiting], True), (own, [resting], False), (own, [], False),
        (inside, [resting], True), (inside, [waiting], True), (inside, [going], False), (inside, [], False),
        (own, [dataclasses.replace(waiting, loop="evaluate")], False),
        (dataclasses.replace(own, found=False), [resting], True),
    ):  # fmt: skip
        assert bool(found(view(process, *others, stuck_after=60.0))) == told, (process, others)


def test_a_wait_in_the_call_of_a_compiled_function_is_inside_jax() -> None:
    """Neither the fast path nor the array's own wait has a frame of Python; the line between them is the program's."""
    lock = threading.Lock()
    waits = types.SimpleNamespace(block_until_ready=lock.acquire, step=lock.acquire)

    def seen(wait: Callable[[], object], *sites: str) -> bool:
        looks = Looks()

        def look() -> None:
            while sys._current_frames()[threading.main_thread().ident or 0].f_code is seen.__code__:
                time.sleep(0.01)
            time.sleep(0.1)
            looks.look(sites)
            lock.release()

        with lock:
            looker = threading.Thread(target=look)
            looker.start()
            wait()
            looker.join()
        return looks.inside

    def step() -> None:
        waits.step()

    def ready() -> None:
        waits.block_until_ready()

    line = f"{__file__}:{step.__code__.co_firstlineno + 1}"
    assert seen(step, line)
    assert not seen(step)
    assert not seen(step, f"{__file__}:1")
    assert not seen(lambda: (time.sleep(0.3), lock.acquire())[1], line)
    assert seen(ready)


# ------------------------------------------------------------------------------------------ real processes


@pytest.fixture
def job(tmp_path: pathlib.Path) -> Iterator[Callable[..., Job]]:
    """Starts a job in a mode, with so many processes."""
    begun: list[Job] = []

    def begin(mode: str, count: int, **given: Any) -> Job:
        begun.append(Job(tmp_path, mode, count, **given))
        return begun[-1]

    yield begin
    for each in begun:
        each.kill()


def about(told: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The findings of a kind."""
    return [each for each in told if each["finding"] == kind]


@pytest.mark.slow
def test_a_healthy_job_has_no_findings_and_everything_has_its_index(job: Callable[..., Job]) -> None:
    """Four processes; what was recorded before `jax.distributed.initialize` is labelled too."""
    running = job("healthy", 4)
    said = [running.folder / f"{index}.out" for index in range(4)]
    running.until(lambda _: all("INDEXES" in path.read_text() for path in said))
    time.sleep(3.0)
    assert running.findings() == []
    running.kill()
    for index, path in enumerate(said):
        assert f"INDEXES [{index}]" in path.read_text()
        [process] = report.read(str(running.folder / f"{index}.jsonl")).processes
        assert process.process_index == index
        assert process.manifest is not None
        assert process.manifest.process_count == 4
        assert process.manifest.devices_by_process == {"0": 1, "1": 1, "2": 1, "3": 1}
        spanning = [each.function for each in process.compilations if each.spans_processes]
        assert spanning == ["__main__.prepare", "__main__.step"]
    assert len({_fingerprint(running.folder / f"{index}.jsonl") for index in range(4)}) == 1


def _fingerprint(path: pathlib.Path) -> str | None:
    [process] = report.read(str(path)).processes
    [step] = [each for each in process.compilations if each.function == "__main__.step"]
    assert isinstance(step, Compilation)
    return step.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "count", "said"),
    [
        ("other_order", 2, "the 1st program that spans processes is `__main__."),
        ("other_shape", 4, "has not compiled"),
        ("dies", 2, "the 1st program that spans processes is `__main__."),
    ],
)
def test_a_diverging_program_is_named(job: Callable[..., Job], mode: str, count: int, said: str) -> None:
    """By both processes, while JAX itself says nothing; by one at least where the job ends at once, before a tick."""
    last = count - 1
    least = 1 if mode == "dies" else 2

    def tellers(told: list[dict[str, Any]]) -> set[int]:
        return {each["process_index"] for each in about(told, "diverging_programs")}

    told = job(mode, count).until(lambda told: len(tellers(told)) >= least)
    assert tellers(told) <= {0, last}
    for finding in about(told, "diverging_programs"):
        assert said in finding["summary"]
        assert {f"Process {n}" for n in (0, last)} == set(re.findall(r"Process \d", " ".join(finding["evidence"])))
    assert about(told, "stuck") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "count", "said"),
    [
        ("straggler", 2, "The others wait for process 1"),
        ("straggler", 4, "The others wait for process 3"),
        ("slow", 2, "Process 1"),
    ],
)
def test_a_straggler_is_named(job: Callable[..., Job], mode: str, count: int, said: str) -> None:
    """With the line where it spends its time, whether collectives hold the others back or not."""
    told = job(mode, count).until(lambda told: bool(about(told, "straggler")))
    [finding] = about(told, "straggler")
    assert finding["summary"].startswith(said)
    assert finding["data"]["process"] == count - 1
    assert re.search(r"mostly at .*fleet_program\.py:\d+", finding["summary"])
    assert {each["finding"] for each in told} == {"straggler"}


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_a_stuck_process_is_named_with_its_stacks(job: Callable[..., Job], count: int) -> None:
    """All of them are stuck; process 0, which waits in the collective, names the one that is not there."""
    running = job("stuck", count)
    last = count - 1
    told = running.until(lambda told: {each["process_index"] for each in about(told, "stuck")} == set(range(count)))
    by_process = {each["process_index"]: each for each in about(told, "stuck")}
    waiting, culprit = by_process[0], by_process[last]
    assert re.search(rf"inside JAX\. Process {last} (on|made fewer)", waiting["summary"])
    assert waiting["data"]["waits_for"] == [last]
    assert "inside JAX" not in culprit["summary"]
    text = pathlib.Path(culprit["data"]["report"]).read_text()
    assert re.search(r"WHERE IT WAS: MainThread\n  .*fleet_program\.py:\d+ in <module>\n(.*\n)*?.* in wait", text)
    assert {each["finding"] for each in told} == {"stuck"}


# ------------------------------------------------------- real processes that know nothing of jaxobs, or mark steps

HEALTHY = (
    "healthy", "noise", "late", "eval-save", "alone", "alone-noise", "alone-late", "alone-eval-save",
    "marked-eval-save", "marked-alone-eval-save",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", HEALTHY)
def test_a_healthy_plain_job_has_no_findings(job: Callable[..., Job], mode: str) -> None:
    """Healthy jobs: of equal pace, with noise, begun at different times, with evaluations and checkpoints on process
    0 only."""
    running = job(mode, 2, plain=True)
    said = [running.folder / f"{index}.out" for index in range(2)]
    running.until(lambda _: all("GOES" in path.read_text() for path in said))
    time.sleep(8.0)
    assert [each["summary"] for each in running.findings()] == []
    assert all(each.poll() is None for each in running.processes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("alone-slow", "Process 1 on "),
        ("slow", "The others wait for process 1"),
        ("marked-alone-slow", "Process 1 on "),
        ("marked-slow", "The others wait for process 1"),
    ],
)
def test_a_straggler_is_named_in_a_plain_job(job: Callable[..., Job], mode: str, said: str) -> None:
    """50 ms a step, in functions under `jax.jit` that nobody instruments."""
    told = job(mode, 2, plain=True).until(lambda told: bool(about(told, "straggler")))
    [finding] = about(told, "straggler")
    assert finding["summary"].startswith(said)
    assert finding["function"] == ("train" if mode.startswith("marked") else "__main__.train_step")
    assert finding["data"]["process"] == 1
    assert _line(finding, "time.sleep(pause)")
    assert finding["data"]["step_seconds"] > 0.09
    assert {each["finding"] for each in told} == {"straggler"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["stops", "alone-stops", "marked-stops"])
def test_a_stuck_process_is_named_in_a_plain_job(job: Callable[..., Job], mode: str) -> None:
    """With collectives both are stuck, and process 0 names the other; alone only the one that stopped is."""
    stuck = {1} if "alone" in mode else {0, 1}
    told = job(mode, 2, plain=True).until(
        lambda told: {each["process_index"] for each in about(told, "stuck")} >= stuck
    )
    by_process = {each["process_index"]: each for each in about(told, "stuck")}
    assert set(by_process) == stuck and {each["finding"] for each in told} == {"stuck"}
    assert _line(by_process[1], "threading.Event().wait()")
    if 0 in stuck:
        assert by_process[0]["data"]["waits_for"] == [1] and "inside JAX" in by_process[0]["summary"]


@pytest.mark.slow
def test_a_diverging_program_is_named_in_a_plain_job(job: Callable[..., Job]) -> None:
    """A program counts that only one process has compiled, although the other went on."""

    def tellers(told: list[dict[str, Any]]) -> set[int]:
        return {each["process_index"] for each in about(told, "diverging_programs")}

    told = job("diverges", 2, plain=True).until(lambda told: tellers(told) == {0, 1})
    assert all("`__main__.extra`" in each["summary"] for each in about(told, "diverging_programs"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["alone-ends-slow", "marked-alone-ends-slow"])
def test_each_process_of_a_plain_job_has_its_goodput(job: Callable[..., Job], mode: str) -> None:
    """Goodput counts the process's own loop, in which `train_step` compiles, and the time before that apart."""
    running = job(mode, 2, plain=True)
    for each in running.processes:
        assert each.wait(120) == 0
    shares = []
    for index in range(2):
        [(seconds, _)] = re.findall(r"STEPS (\S+) (\S+)", (running.folder / f"{index}.out").read_text())
        lines = (running.folder / f"{index}.jsonl").read_text().splitlines()
        standing = json.loads(lines[-1])["standing"]
        [loop] = standing["loops"]
        wall = standing["wall"]
        assert loop["found"] == (not mode.startswith("marked")) and 148 <= loop["steps"] <= 150
        spent = wall["seconds"]
        # The steps sleep, which is a step where the program says so, and else a wait.
        own = sum(spent[name] for name in ("step", "input_wait", "trace", "compile"))
        assert own == pytest.approx(float(seconds), rel=0.1)
        goodput = wall["goodput"] or 0.0  # None where the steps are too short to be seen
        assert goodput == pytest.approx(wall["seconds"]["step"] / wall["wall_seconds"])
        shares.append(goodput)
    assert shares[1] > shares[0] > 0.1 or (loop["found"] and max(shares) < 0.1)


def _line(finding: dict[str, Any], text: str) -> bool:
    """Whether the summary names a line of `plain_fleet.py` with this text."""
    lines = (PROGRAMS / "plain_fleet.py").read_text().splitlines()
    return any(text in lines[int(number) - 1] for number in re.findall(r"plain_fleet\.py:(\d+)", finding["summary"]))
