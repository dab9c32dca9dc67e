"""Texts of the live page as a reader sees them, unfolded: each scene is as the text file has it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from helpers.made_by_hand import profile_sample
from helpers.page_extremes import everything
from helpers.page_facts import GIB, NOW, empty, events, lookups, on_cpu, rich
from helpers.page_fixtures import Opener, chrome, opened, seen, serving, unfold
from helpers.page_input_facts import AHEAD, FAST, LINES, SLOW, TRAIN, WALL, WATCHED, WELL
from helpers.page_memory_facts import CODE, FINDING_OVER, LEAK, capture, died, full, full_gpu, groups, without_allocator
from helpers.page_profile_facts import PROFILE
from helpers.page_request_facts import ENGINES, GENERATE, PREDICT, UNSEEN
from helpers.waiting import until
from playwright.sync_api import expect

from jaxobs.facts.compilations import CacheState
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import DeviceMemory, headroom
from jaxobs.facts.process import ObserverState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.wall import RunState

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

FOUND = LoopState(
    name="eval.<img src=x onerror=alert(1)>", found=True, steps=200, ended=NOW - 60, recent=(0.002,),
    mean_seconds=0.002, steps_per_second=500.0, mfu_unknown="The peak of `cpu` is not known.", lines=LINES,
)  # fmt: skip
UNCERTAIN = replace(TRAIN, mfu=None, mfu_range=(0.00372, 0.0517), mfu_unknown="Which runs?")
RUN = RunState(
    id="nightly-7", attempt=2, since=0.0, wall_seconds=2000.0, seconds=WALL.seconds | {"step": 1400.0},
    down_seconds=200.0, redone_seconds=400.0, redone_steps=400, unsaved_seconds=12.0, unsaved_steps=12, goodput=0.5,
)  # fmt: skip
LOST = {"redone": 400.0, "compile": 300.0, "down": 200.0, "init": 60.0, "input_wait": 40.0}
FINDINGS = (
    Finding(
        time=NOW, id="i", finding="input_bound", function="<unknown>", subject="train", summary="It waits.",
        advice="Load ahead.", count=300, seconds=45.0, since=NOW - 60, data={"input": "train"},
    ),
    Finding(
        time=NOW, id="f", finding="straggler", function="train", subject="process 2", summary="It is slow.",
        advice="Look at that host.", count=500, since=NOW - 60, data={"process": 2, "host": "node-7"},
    ),
    LEAK, FINDING_OVER,
)  # fmt: skip


def with_device(used: int | None, *, split: bool = True) -> Snapshot:
    """A process with one device that reports so many bytes in use; if it isn't split, it reports nothing else."""
    device = full_gpu(0, groups())
    assert device.memory is not None
    memory = replace(device.memory, in_use_bytes=used)
    if not split:
        memory = DeviceMemory(time=NOW, device="gpu:0", in_use_bytes=used, limit_bytes=10 * GIB)
        device = replace(device, history=tuple((time, used, None) for time, used, _ in device.history))
    device = replace(device, memory=memory, account=None)
    return replace(full(), devices=(device,), array_groups=groups() if split else ())


def tight() -> Snapshot:
    """A process in which a program needs more than what is left on a device."""
    devices = (full_gpu(0, groups(), extra=30 * GIB), *full().devices[1:])
    return replace(full(), devices=devices, headroom=headroom(devices))


ARRAYS = full_gpu(0, groups()).memory
assert ARRAYS is not None and ARRAYS.live_array_bytes is not None
TRAINING = replace(
    rich(), loops=(TRAIN, FOUND), wall=WALL, profile=PROFILE, inputs=(SLOW, FAST, AHEAD), watched=WATCHED
)
OFF = CacheState(enabled=False, directory="/var/cache/jax")
BUCKET = CacheState(enabled=True, directory="gs://bucket/cache", saved_seconds=0.25)
REFUSED = capture(
    2001, name="profile", result="refused", detail="One is under way.", path=None, bytes=None, seconds=None
)
SERVING = {"routes": (UNSEEN, PREDICT, GENERATE), "requests_in_flight": 3, "engines": ENGINES}

SCENES: dict[str, tuple[Snapshot, Sequence[Event], str]] = {
    "rich": (rich(), [*lookups(), *events()], ".top, main > *"),
    "memory": (full(), [capture(2000), REFUSED], "#devices, #accelerators"),
    "memory that ran out": (died(), [], "#verdict, #oom"),
    "memory of which little is left": (tight(), [], "#devices"),
    "memory outside of the allocator's count": (with_device(ARRAYS.live_array_bytes + CODE - GIB), [], "#devices"),
    "memory of which only the use is known": (with_device(5 * GIB, split=False), [], "#devices"),
    "memory without an allocator": (without_allocator(), [], "#devices"),
    "on a CPU": (on_cpu(), [], "main > *"),
    "nothing yet": (empty(), [], "main > *"),
    "not installed": (replace(empty(), observer=ObserverState(installed=False)), [], ".split, #observer"),
    "training": (TRAINING, [], ".tiles, #wall, #steps, #profile, #loops, #inputs, #watched"),
    "run with a loss": (replace(rich(), wall=replace(WALL, lost=LOST, run=RUN)), [], "#wall"),
    "run without checkpoints": (
        replace(rich(), wall=replace(WALL, run=replace(RUN, redone_seconds=None, redone_steps=None))), [], "#wall",
    ),
    "one sample of a profile": (replace(rich(), profile=replace(PROFILE, latest=(profile_sample(),))), [], "#profile"),
    "uncertain MFU": (replace(on_cpu(), loops=(UNCERTAIN,)), [], ".tiles, #loops"),
    "input of mixed cost": (replace(on_cpu(), inputs=(replace(SLOW, verdict="mixed"),)), [], "#inputs"),
    "serving": (replace(on_cpu(), **SERVING), [], ".tiles, #requests"),  # type: ignore[arg-type]
    "findings": (replace(on_cpu(), findings=FINDINGS), [], "#verdict, #findings"),
    "no findings": (replace(rich(), findings=(), wall=WELL), [], "#verdict"),
    "cache that is off": (replace(rich(), cache=OFF), [], "#tile-cache, #cache-panel"),
    "cache in a bucket": (replace(rich(), cache=BUCKET), [], "#tile-cache, #cache-panel"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_is_as_the_file_has_it(opened: Opener, whole: Callable[[str, str], None], name: str) -> None:
    snapshot, told, selector = SCENES[name]
    with serving(snapshot, told) as server:
        page = opened(server, at=NOW)
        until(lambda: server.snapshots >= 2)  # between the first and the second one it asks for events of all kinds
        unfold(page)
        whole(name, f"{page.title()}\n{seen(page, selector)}")
        assert not re.search(r"undefined|NaN|\bnull\b|\[object|Infinity", page.locator("body").inner_text())


PANELS = (
    "#tile-steps, #tile-requests, #tile-cache, #findings, #oom, #loops, #wall, #steps, #profile, #inputs, #watched, "
    "#requests, #generation, #accelerators, #cache-panel, #held, #programs"
)


def test_panels_come_and_go_with_what_they_show(opened: Opener) -> None:
    """An empty process has none of them, and none stays when a process has nothing more to show in it."""
    busy = replace(everything(), routes=(PREDICT, GENERATE))
    with serving(empty(), []) as server:
        page = opened(server)
        for snapshot, shown in ((empty(), 0), (busy, len(PANELS.split(","))), (replace(empty(), time=NOW + 9), 0)):
            server.snapshot = snapshot
            expect(page.locator(PANELS).filter(visible=True)).to_have_count(shown)
