"""Views of `jaxobs top`: whole, as the text file has them; at every size; and with names that are hostile."""

import dataclasses
import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from helpers.page_facts import NOW
from helpers.page_input_facts import AHEAD, FAST, LINES, SLOW, TRAIN, WALL, WATCHED
from helpers.page_request_facts import ENGINES, GENERATE, PREDICT, UNSEEN
from helpers.top_snapshots import GIB, STARTED, URL, compilations, device, finding, overview, process, snapshot

from jaxobs.facts.accelerators import AcceleratorProcess, AcceleratorState
from jaxobs.facts.compilations import CacheLookup, CacheState
from jaxobs.facts.errors import OomCause, OutOfMemory
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import Account, ArrayGroup, Headroom
from jaxobs.facts.process import ObserverState
from jaxobs.facts.wall import RunState
from jaxobs.views.terminal import Connection, Overview, Screen, Surface, lay_out, plain_text
from jaxobs.views.terminal.lines import as_text, cells

pytestmark = pytest.mark.usefixtures("in_utc")


def explained() -> Overview:
    """A run with findings, program costs, slow calls, and a cache that missed what an earlier process had compiled."""
    known = list(compilations())
    known[-1] = replace(known[-1], flops=1.318e15, memory={"argument": 3 * GIB, "temp": GIB})
    known[-2] = replace(
        known[-2], uncached_because="too_fast", uncached_detail="Compiled in 0.8 s, below the threshold of 1 s."
    )
    lookup = CacheLookup(
        time=known[-1].time, sequence=60, function=known[-1].function, result="miss", differs=("flags",),
        reason="Process 41007 compiled it with other flags.",
    )  # fmt: skip
    functions = list(snapshot().functions)
    functions[1] = replace(functions[1], fastpath_misses={"unsupported_argument": 3, "effects": 2})
    cache = CacheState(
        enabled=True, directory="/var/cache/jax", unsaved={"callbacks": 2, "too_fast": 31, "error": 0},
        saved_seconds=412.345, bytes=3 * GIB, entries=1_212, grown_bytes=-(2**20),
    )  # fmt: skip
    state = snapshot(functions=tuple(functions), findings=tuple(finding(index) for index in range(3)), cache=cache)
    return overview(snapshot=state, compilations=tuple(known), lookups=(lookup,))


def died(**changed: Any) -> OutOfMemory:
    """A report of a call that died of memory, and that the process survived."""
    cause = OomCause(
        cause="leaked_arrays", summary="412 arrays alike, float32[8192,2048], hold 25.8 GiB.",
        advice="Keep `float(loss)` instead.",
    )  # fmt: skip
    known: dict[str, Any] = {
        "time": STARTED + 180, "stage": "run", "error": "JaxRuntimeError", "message": "m", "device": "gpu:0",
        "wanted_bytes": 2 * GIB, "call_site": "train_digits.py:61", "causes": (cause,),
        "report": "/logs/out-of-memory-1.txt",
    }  # fmt: skip
    return OutOfMemory(function="__main__.train_step", **(known | changed))


def memory() -> Overview:
    """The view of memory of two devices: one with an account, a stranger's process, and arrays of many shapes."""
    group = ArrayGroup(
        shape=(8192, 2048), dtype="float32", sharding="gpu:0", memory_kind="device", count=412,
        bytes_per_device={"gpu:0": 26 * GIB}, call_sites={"train_digits.py:70": 3, "train_digits.py:61": 9},
    )  # fmt: skip
    processes = (
        AcceleratorProcess(pid=1, bytes=60 * GIB, ours=True),
        AcceleratorProcess(pid=4242, bytes=9 * GIB, ours=False),
    )
    parts = Account(in_use_bytes=71 * GIB, array_bytes=60 * GIB, code_bytes=GIB, gap_bytes=10 * GIB)
    driver = AcceleratorState(
        time=1.0, device="gpu:0", uuid="u", index=0, memory_used_bytes=70 * GIB, memory_total_bytes=80 * GIB,
        utilization=0.5, processes=processes,
    )  # fmt: skip
    state = snapshot(
        devices=(replace(device(0, 71 * GIB, 80 * GIB), account=parts), device(1, 12 * GIB, 80 * GIB)),
        array_groups=(group, *(replace(group, shape=(n,)) for n in range(40))),
        headroom=Headroom("gpu:0", 9 * GIB),
        accelerators=(driver,),
        findings=(finding(1), finding(2, finding="array_leak", seconds=0.0)),
        last_out_of_memory=died(),
    )
    return overview(snapshot=state, memory=True)


def busy() -> Overview:
    """A process with more of everything than a terminal has room for."""
    observer = ObserverState(
        installed=False, capabilities={"miss_frame": False}, internal_errors={"wrapper": 3}, dropped={"functions": 12},
        notes=("One note that is long enough to need more than one line in most terminals. " * 3,) * 5,
    )  # fmt: skip
    state = snapshot(
        devices=tuple(device(i, i * 10 * GIB, 80 * GIB) for i in range(8)),
        in_progress=snapshot().in_progress * 9,
        functions=snapshot().functions * 10,
        findings=tuple(finding(index, function="f" * index) for index in range(9)),
        last_out_of_memory=died(),
        cache=explained().snapshot.cache,
        observer=observer,
    )
    return replace(explained(), snapshot=state)


def of(**changed: Any) -> Overview:
    """The usual run, of whose snapshot something is changed."""
    return overview(snapshot=snapshot(**changed))


def only(**told: Any) -> Overview:
    """A process that has nothing else to tell."""
    nothing: dict[str, Any] = {
        "functions": (),
        "devices": (),
        "in_progress": (),
        "observer": ObserverState(installed=True),
    }
    return overview(snapshot=snapshot(**nothing | told), compilations=())


FOUND = LoopState(
    name="eval.<img src=x onerror=alert(1)>", found=True, steps=200, ended=NOW - 60, recent=(0.002,),
    mean_seconds=0.002, steps_per_second=500.0, mfu_unknown="The peak of `cpu` is not known.", lines=LINES,
)  # fmt: skip
RUN = RunState(
    id="r", attempt=2, since=0.0, wall_seconds=200.0, seconds=WALL.seconds | {"step": 140.0}, down_seconds=20.0,
    redone_seconds=40.0, redone_steps=4, unsaved_seconds=0.0, unsaved_steps=0, goodput=0.5,
)  # fmt: skip
TOLD: dict[str, Any] = {"loops": (TRAIN,), "wall": WALL, "inputs": (FAST, AHEAD, SLOW), "watched": WATCHED}
OVER = (finding(9, ended=STARTED + 100), finding(1, finding="array_leak", seconds=0.0, count=12), finding(0))
OF_INPUT = finding(0, function="<unknown>", subject="train", count=300, seconds=45.0, data={"input": "train"})
DEVICES = (
    device(0, 78 * GIB, 80 * GIB), device(0, None, None), device(1, 5 * GIB, None),
    replace(device(2, 1, None), memory=None),
)  # fmt: skip
EIGHT = tuple(device(i, (79 if i == 6 else 10) * GIB, 80 * GIB) for i in range(8))
UNNAMED = (replace(explained().lookups[0], reason=None),)
UNCERTAIN = replace(TRAIN, mfu=None, mfu_range=(0.00372, 0.0517))
GONE = Connection(url=URL, interval=1.0, gone_since=STARTED + 200, error="connection refused")

VIEWS: dict[str, tuple[Overview, list[tuple[int, int | None]]]] = {
    "usual": (overview(), [(80, 24), (200, 60), (60, 16)]),
    "explained": (explained(), [(80, 24), (100, 70), (200, None)]),
    "cache key without a reason": (replace(explained(), lookups=UNNAMED), [(100, None)]),
    "many findings": (of(findings=tuple(finding(index) for index in range(30))), [(80, 24)]),
    "findings that are over, that leak, that cost": (only(findings=OVER), [(120, None)]),
    "finding about an input": (only(findings=(OF_INPUT,)), [(140, None)]),
    "out of memory": (of(last_out_of_memory=died()), [(100, 30)]),
    "out of memory an hour ago": (only(last_out_of_memory=died(time=STARTED - 3600)), [(100, None)]),
    "memory": (memory(), [(110, 50), (100, None)]),
    "busy": (busy(), [(100, 50)]),
    "gone": (overview(connection=GONE), [(100, 30)]),
    "busy and gone": (replace(busy(), connection=GONE), []),
    "devices that tell more and less": (only(devices=DEVICES), [(100, None)]),
    "eight devices": (of(devices=EIGHT), [(80, 24)]),
    "quiet": (only(process=process(platform=None)), [(80, 24)]),
    "time, inputs and watched values": (of(**TOLD), [(80, 24), (80, 16)]),
    "time, inputs and watched values only": (only(**TOLD), [(160, None)]),
    "time of a run": (only(wall=replace(WALL, run=RUN)), [(160, None)]),
    "loops": (only(loops=(FOUND, TRAIN)), [(40, None), (80, None), (160, None)]),
    "loop of uncertain MFU": (only(loops=(UNCERTAIN,)), [(160, None)]),
    "requests": (only(routes=(UNSEEN, PREDICT), requests_in_flight=3), [(120, None), (60, 12)]),
    "generated text": (only(routes=(GENERATE, PREDICT), requests_in_flight=3, engines=ENGINES), [(140, None)]),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_as_the_file_has_it(name: str, whole: Callable[[str, str], None]) -> None:
    view, sizes = VIEWS[name]
    for width, height in sizes:
        whole(f"{name}, {width} by {height or 'all'}", as_text(lay_out(view, Surface(width, height))))


def test_without_colour_the_parts_of_a_bar_are_letters(whole: Callable[[str, str], None]) -> None:
    whole("time in letters", as_text(lay_out(only(**TOLD), Surface(140, colour=False))))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 131, 150, 200, 300])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_fits_every_terminal(name: str, width: int) -> None:
    """No line is wider than the terminal and there are exactly as many as it has rows, in letters as in colours."""
    for height in (3, 8, 12, 18, 24, 31, 32, 50, 90):
        lines = lay_out(VIEWS[name][0], Surface(width, height, colour=height % 2 == 0))
        assert len(lines) == height
        assert max(sum(cells(text) for text, _ in line) for line in lines) <= width
        assert not any("\n" in text for line in lines for text, _ in line)


def render(view: Overview, width: int, height: int | None, **options: Any) -> str:
    """The view as `rich` writes it into a file."""
    from rich.console import Console

    written = io.StringIO()
    console = Console(file=written, width=width, height=height or 1000, highlight=False, _environ={}, **options)
    console.print(Screen(view, fill=height is not None))
    return written.getvalue()


def test_rich_draws_it_without_colour_into_a_file(whole: Callable[[str, str], None]) -> None:
    whole("usual, 80 by 24, as a file", render(overview(), 80, 24))


def test_view_without_unicode_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the locale C nor an ASCII output gets a character beyond ASCII, whatever names hold."""
    view = overview(snapshot=snapshot(process=process(program="größe.py")), connection=Connection(url=URL))
    drawn = plain_text(view, io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert drawn.isascii()
    assert "gr??e.py" in drawn and "shape=3" in drawn and "####" in drawn
    for locale, unicode in (("C", False), ("de_DE.UTF-8", True)):
        monkeypatch.setenv("LC_ALL", locale)
        assert ("────" in render(overview(), 80, 24)) == unicode


def test_colours_only_where_they_are_wanted() -> None:
    """A terminal gets colours and one bar; NO_COLOR gets letters in the bar and no colour codes."""
    coloured = render(overview(), 100, 30, force_terminal=True, color_system="standard")
    assert "\x1b[35m█" in coloured
    plain = render(overview(), 100, 30, force_terminal=True, color_system="standard", no_color=True)
    assert "tlcccccc" in re.sub(r"\x1b\[[\d;]*m", "", plain)
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", plain)


def test_what_is_gone_is_dim() -> None:
    (row,) = [line for line in lay_out(VIEWS["gone"][0], Surface(100, 30)) if "12,345" in "".join(t for t, _ in line)]
    assert {style for _, style in row} == {"gone"}


def test_names_from_the_process_cannot_move_the_cursor() -> None:
    """A function whose name holds an escape code is shown harmless."""
    text = "\x1b[2J\u202e`x`"
    evil = FunctionState(
        name="f\x1b]0;owned\x07\x1b[2J", compilations={"shape": {"miss": 1}}, phase_seconds={"compile": 1.0}
    )
    state = snapshot(
        functions=(evil,),
        process=process(program="x\x1b[2J", hostname="h\x9b2J"),
        findings=(finding(1, finding=text, function=text, summary=text, advice=text),),
        cache=CacheState(enabled=True, directory=text, unsaved={text: 1}),
    )
    texts = dict.fromkeys(("call_site", "library_site", "uncached_because", "uncached_detail", "function"), text)
    event = dataclasses.replace(compilations()[-1], **texts)  # type: ignore[arg-type]
    lookup = CacheLookup(time=event.time, function=text, result="miss", differs=(text,), reason=text)
    drawn = render(overview(snapshot=state, compilations=(event,), lookups=(lookup,)), 80, 90)
    assert drawn.count("?[2J") >= 8
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", drawn)
