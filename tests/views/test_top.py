"""`jaxobs top`: what it shows at every size, what it says when it cannot, and live in a real terminal."""

from __future__ import annotations

import argparse
import dataclasses
import io
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.tmux import Tmux, terminal
from helpers.top_snapshots import (
    GIB,
    STARTED,
    URL,
    CannedEndpoint,
    compilations,
    device,
    finding,
    overview,
    process,
    serving,
    snapshot,
)

from jaxobs.base.errors import MissingExtraError, SettingError, install
from jaxobs.cli import top
from jaxobs.facts.accelerators import AcceleratorProcess, AcceleratorState
from jaxobs.facts.cache import CacheLookup, CacheState
from jaxobs.facts.compilations import OpenCompilation
from jaxobs.facts.events import as_event, plain
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.memory import Account, ArrayGroup, DeviceState, Headroom
from jaxobs.facts.out_of_memory import OomCause, OutOfMemory
from jaxobs.facts.process import ObserverState
from jaxobs.views import client
from jaxobs.views.client import EndpointUnreachableError, NotAnEndpointError
from jaxobs.views.terminal import Connection, Overview, Screen, Surface, lay_out, make_console, plain_text
from jaxobs.views.terminal.lines import as_text, cells
from jaxobs.views.terminal.text import (
    ASCII,
    UNICODE,
    ago,
    bar,
    causes,
    duration,
    flops,
    middle,
    number,
    program_bytes,
    safe,
    shares,
    size,
    spark,
)  # fmt: skip
from tools.ports import free_port


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of the view in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# -------------------------------------------------------------------------------------- the short texts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""), (float("nan"), ""), (0, "0 s"), (0.00084, "0.84 ms"), (0.0123, "12.3 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"), (1.234, "1.23 s"), (9.999, "10.0 s"), (59.96, "60.0 s"), (99.96, "1m40s"),
        (75, "75.0 s"), (119.6, "2m00s"), (3_599.7, "1h00m"), (11_520, "3h12m"), (187_200, "2d04h"),
    ],
)  # fmt: skip
def test_duration(seconds: float | None, text: str) -> None:
    """A duration has three digits, rolls over at its units and is empty when not known."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (0, "0"), (7, "7"), (0.5, "0.5"), (9.96, "10"), (43.2, "43"), (12_345, "12,345"),
        (999_499, "999,499"), (999_500, "1M"), (1_234_567, "1.23M"), (4_560_000_000, "4.56G"),
    ],
)  # fmt: skip
def test_number(value: float | None, text: str) -> None:
    """A number fits seven cells whatever its size."""
    assert number(value) == text
    assert len(text) <= 7


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, ""), (0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (1536, "1.5 KiB"),
        (123 * 2**20, "123 MiB"),
        (71 * GIB, "71 GiB"), (2**50, "1024 TiB"),
    ],
)  # fmt: skip
def test_size(count: int | None, text: str) -> None:
    """A size is told in binary units."""
    assert size(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.0, "0 FLOP"),
        (950.0, "950 FLOP"),
        (999.6, "1 kFLOP"),
        (1.318e15, "1.32 PFLOP"),
        (4e24, "4e+06 EFLOP"),
    ],
)
def test_flops(value: float | None, text: str) -> None:
    """Operations are told by powers of a thousand."""
    assert flops(value) == text


def test_program_bytes_count_shared_memory_once() -> None:
    """Memory that outputs take over from arguments is not there twice; an unknown figure is not zero."""
    assert program_bytes({"argument": 10, "output": 8, "alias": 8, "temp": 3}) == 13
    assert program_bytes({}) is None


def test_ago() -> None:
    """Ages are whole seconds, and never negative when two clocks differ."""
    assert [ago(-3), ago(8.2), ago(172)] == ["0 s ago", "8 s ago", "2m52s ago"]


def test_middle_keeps_both_ends() -> None:
    """A long name is cut in the middle, and the end, which tells most, keeps more."""
    assert middle("library_models_attention_forward", 16) == "libra…on_forward"
    assert middle("jax.models.attention.forward", 22) == "jax…attention.forward"
    assert middle("jax.models.attention.forward", 16) == "jax…forward"
    assert middle("jax.models.Attention.__call__", 20) == "jax…tention.__call__"
    assert middle("jax.models.attention.forward", 8) == "ja…rward"
    assert middle("short", 16) == "short"
    assert middle("anything", 1) == "…"


def test_safe_takes_control_characters_out() -> None:
    """Escape codes, line breaks and what the encoding cannot show do not get through."""
    assert safe("a\x1b[31mred\n  b\u202ec") == "a?[31mred b?c"
    assert safe("größe…", "ascii") == "gr??e?"


def test_causes_come_by_count_and_say_what_is_left_out() -> None:
    """The first call, which everything has, comes last; what does not fit is counted."""
    counts = {"first_call": 1, "shape": 2, "dtype": 3}
    assert causes(counts, 60, UNICODE) == [
        ("dtype", "dtype×3"),
        ("shape", "shape×2"),
        ("first_call", "first_call×1"),
    ]
    assert causes(counts, 18, UNICODE) == [("dtype", "dtype×3"), ("shape", "shape×2"), ("", "+1")]
    assert causes(counts, 12, UNICODE) == [("dtype", "dtype×3"), ("", "+3")]
    assert causes({"static_argument": 10}, 12, ASCII) == [("static_argument", "static_argu~")]
    assert causes({}, 12, UNICODE) == []


def test_shares_add_up() -> None:
    """The parts of a bar take as many cells as their sum, and something is always seen."""
    assert shares({"trace": 1.0, "lower": 1.0, "compile": 2.0}, 8.0, 8) == [
        ("trace", 1),
        ("lower", 1),
        ("compile", 2),
    ]
    assert shares({"compile": 0.001}, 100.0, 8) == [("compile", 1)]
    assert shares({"trace": 1.0, "lower": 1.0, "compile": 1.0}, 3.0, 8) == [
        ("trace", 3),
        ("lower", 3),
        ("compile", 2),
    ]
    assert shares({"trace": 0.0}, 1.0, 8) == []


def test_bars_and_sparks() -> None:
    """A bar has the width that was asked for; a spark line needs two values and Unicode."""
    assert bar(0.5, 4, UNICODE) == ("██", "░░")
    assert bar(0.28, 4, UNICODE) == ("█▏", "░░")
    assert bar(0.5, 3, ASCII) == ("##", ".")
    assert bar(7.0, 4, ASCII) == ("####", "")
    assert spark([0, 5, 10], 10, UNICODE) == "▁▄█"
    assert spark([1], 10, UNICODE) == spark([1, 2], 10, ASCII) == spark([0, 0], 10, UNICODE) == ""


# --------------------------------------------------------------------------------------------- the view


NARROW = """\
 train_digits.py                                                         ● live
 node-7 · pid 4711 · up 3m12s · 2 × NVIDIA H200 · jax 0.10.2 · jaxlib 0.10.2
 Compiling now ────────────────────────────────────────────────────────────────
 ▸ eval_step  compile       12.4 s  MainThread
 Functions ──────────────────── 68 compilations · 7.92 s · cache 1 hit, 11 miss
 function              calls   per s  comp.  why              seconds  by phase
 train_step           12,345      43      5  shape×3 +2        5.33 s  tlcccccc
 a_com…__call__            7              7  new_functi… +1    1.20 s  cc
 <eager>                                 44  unknown×3 +41     570 ms  c
 helper_11                                1  first_call×1      123 ms  c
 11 more: 11 compilations, 693 ms
 Recent compilations ──────────────────────────────────────────────────────────
 09:03:04  a_company…adAttention.__call__  new_function       980 ms  hit
           `<lambda>` at layers.py:81 is made again on each call: make it
           once, outside the loop.
 09:01:00  train_step                      dtype              980 ms  miss
           `scale` was a Python int and is a Python float now: pass one type
           always, 1.0 instead of 1.
 Device memory ────────────────────────────────────────────────────────────────
 gpu:0  ████████████████░░   89%  71 GiB of 80 GiB  · peak 72 GiB
 gpu:1  ██▊░░░░░░░░░░░░░░░   15%  12 GiB of 80 GiB  · peak 13 GiB
 Notes ────────────────────────────────────────────────────────────────────────
 Somebody removed our listeners; they are back.
 q quit · ? help · Tab lists · m memory · http://127.0.0.1:9464 · every 1 s
"""


def render(view: Overview, width: int, height: int | None, **options: Any) -> str:
    """The view as `rich` writes it into a file."""
    from rich.console import Console

    written = io.StringIO()
    console = Console(file=written, width=width, height=height or 1000, highlight=False, _environ={}, **options)
    console.print(Screen(view, fill=height is not None))
    return written.getvalue()


def test_view_at_80_by_24(in_utc: None) -> None:
    """The smallest usual terminal shows every section, and nothing wraps."""
    drawn = render(overview(), 80, 24)
    assert [line.rstrip() for line in drawn.splitlines()] == NARROW.splitlines()


def test_wide_view_has_all_columns_and_whole_sentences(in_utc: None) -> None:
    """At 200 by 60 nothing is left out: phases, cache, ages, and sentences beside their compilation."""
    drawn = render(overview(), 200, 60)
    assert "calls   per s  errors  comp.  why" in drawn
    assert "hit/miss     trace     lower   compile      load   seconds  by phase" in drawn
    assert "shape×3 dtype×1 first_call×1" in drawn
    assert "helper_00" in drawn
    (line,) = [line for line in drawn.splitlines() if "new_function   " in line]
    assert line.rstrip().endswith(
        "`<lambda>` at layers.py:81 is made again on each call: make it once, outside the loop."
    )
    assert "41 eager operations" in drawn


def explained() -> Overview:
    """A run with findings, program costs, slow calls, and a cache that missed what an earlier process had compiled."""
    known = list(compilations())
    known[-1] = dataclasses.replace(known[-1], flops=1.318e15, memory={"argument": 3 * GIB, "temp": GIB})
    known[-2] = dataclasses.replace(
        known[-2], uncached_because="too_fast", uncached_detail="Compiled in 0.8 s, below the threshold of 1 s."
    )
    lookup = CacheLookup(
        time=known[-1].time,
        sequence=60,
        function=known[-1].function,
        result="miss",
        differs=("flags",),
        reason="Process 41007 compiled it with other flags.",
    )
    functions = list(snapshot().functions)
    functions[1] = dataclasses.replace(functions[1], fastpath_misses={"unsupported_argument": 3, "effects": 2})
    state = snapshot(
        functions=tuple(functions),
        findings=tuple(finding(index) for index in range(3)),
        cache=CacheState(
            enabled=True,
            directory="/var/cache/jax",
            unsaved={"callbacks": 2, "too_fast": 31, "error": 0},
            saved_seconds=412.345,
            bytes=3 * GIB,
            entries=1_212,
            grown_bytes=-(2**20),
        ),
    )
    return overview(snapshot=state, compilations=tuple(known), lookups=(lookup,))


def test_findings_come_first(in_utc: None) -> None:
    """The dearest at the top, with what to do as far as there is room for it; the others by their heading or number."""
    drawn = as_text(lay_out(explained(), Surface(80, 24))).splitlines()
    assert re.fullmatch(r" Findings ─+ 3", drawn[2])
    assert drawn[3] == " ▸ unbounded shapes  decode_2   17 compiled    12.0 s  since 09:00:21"
    assert drawn[4] == "   Do: Pad it to powers of two (512, 1,024, 2,048, 4,096)."
    assert [line.split()[3] for line in drawn if "▸ unbounded" in line] == ["decode_2", "decode_1", "decode_0"]
    whole = as_text(lay_out(explained(), Surface(120)))
    assert whole.count("has taken 17 sizes from 128 to 4,096, each compiles") == 3
    assert whole.count("Do: Pad it") == 3
    many = overview(snapshot=snapshot(findings=tuple(finding(index) for index in range(30))))
    drawn = as_text(lay_out(many, Surface(80, 24))).splitlines()
    assert [line.split()[3] for line in drawn if "▸ unbounded" in line] == [f"decode_{n}" for n in (29, 28, 27, 26)]
    assert drawn[7] == " 26 more findings"
    assert "Findings" not in as_text(lay_out(overview(), Surface(80, 24)))


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


def test_out_of_memory_comes_before_all_else(in_utc: None) -> None:
    """The call, what it wanted, the first cause, what to do and the file; of one long survived only the head."""
    state = snapshot(last_out_of_memory=died())
    drawn = as_text(lay_out(overview(snapshot=state), Surface(100, 40))).splitlines()
    start = next(number for number, line in enumerate(drawn) if line.startswith(" Out of memory ─"))
    assert drawn[start + 1 : start + 5] == [
        " ▸ 09:03:00 · train_step · 2 GiB wanted · gpu:0 · train_digits.py:61",
        "   412 arrays alike, float32[8192,2048], hold 25.8 GiB. [leaked_arrays]",
        "   Do: Keep `float(loss)` instead.",
        "   Report: /logs/out-of-memory-1.txt",
    ]
    assert start < next(number for number, line in enumerate(drawn) if "Functions ─" in line)
    old = snapshot(last_out_of_memory=died(time=STARTED - 3600))
    drawn = as_text(lay_out(overview(snapshot=old), Surface(100, 40))).splitlines()
    start = next(number for number, line in enumerate(drawn) if line.startswith(" Out of memory ─"))
    assert drawn[start + 1].startswith(" ▸ 08:00:00") and drawn[start + 2] == ""


def test_a_finding_that_is_over_is_told_as_such(in_utc: None) -> None:
    """An old finding comes last, however expensive it was; a leak, which compiles nothing, claims no compilations."""
    over = finding(9, ended=STARTED + 100)
    leak = finding(1, finding="array_leak", seconds=0.0, count=12)
    drawn = as_text(lay_out(overview(snapshot=snapshot(findings=(over, leak, finding(0)))), Surface(120)))
    rows = [line.split("▸")[1] for line in drawn.splitlines() if line.startswith(" ▸") and "decode" in line]
    assert ["array leak" in each for each in rows] == [False, True, False]
    assert rows[2].rstrip().endswith("over 09:01:40") and "compiled" not in rows[1]


def test_the_view_of_memory(in_utc: None) -> None:
    """The view has each device's account and free memory, who else is on it, and the groups with their line of code."""
    group = ArrayGroup(
        shape=(8192, 2048), dtype="float32", sharding="gpu:0", memory_kind="device", count=412,
        bytes_per_device={"gpu:0": 26 * GIB}, call_sites={"train_digits.py:70": 3, "train_digits.py:61": 9},
    )  # fmt: skip
    processes = (
        AcceleratorProcess(pid=1, bytes=60 * GIB, ours=True),
        AcceleratorProcess(pid=4242, bytes=9 * GIB, ours=False),
    )
    first, second = device(0, 71 * GIB, 80 * GIB), device(1, 12 * GIB, 80 * GIB)
    parts = Account(in_use_bytes=71 * GIB, array_bytes=60 * GIB, code_bytes=GIB, gap_bytes=10 * GIB)
    state = snapshot(
        devices=(dataclasses.replace(first, account=parts), second),
        array_groups=(group, *(dataclasses.replace(group, shape=(n,)) for n in range(40))),
        headroom=Headroom("gpu:0", 9 * GIB),
        accelerators=(
            AcceleratorState(time=1.0, device="gpu:0", uuid="u", index=0, memory_used_bytes=70 * GIB,
                             memory_total_bytes=80 * GIB, utilization=0.5, processes=processes),
        ),
        findings=(finding(1), finding(2, finding="array_leak", seconds=0.0)),
        last_out_of_memory=died(),
    )  # fmt: skip
    view = overview(snapshot=state, memory=True)
    drawn = as_text(lay_out(view, Surface(110, 50)))
    assert re.search(r"Device memory ─+ 9 GiB left on gpu:0\n", drawn)
    assert re.search(r"gpu:0 +71 GiB +60 GiB +1 GiB +10 GiB  █+", drawn)
    assert " gpu:0 · 70 GiB of 80 GiB · 50% busy · this process 60 GiB · pid 4242 9 GiB" in drawn
    assert re.search(r"26 GiB +412  float32\[8192,2048\]  gpu:0, created at train_digits.py:61", drawn)
    assert "array leak" in drawn and "unbounded shapes" not in drawn and "Functions" not in drawn
    assert "m back" in drawn and "Out of memory" in drawn
    for width in (20, 30, 60, 110, 200):
        for height in (3, 12, 24, 50, 90):
            lines = lay_out(view, Surface(width, height))
            assert len(lines) == height
            assert max(sum(cells(text) for text, _ in line) for line in lines) <= width
    whole = as_text(lay_out(view, Surface(100)))
    assert whole.count("float32[") == 42


def test_a_compilation_tells_its_program_and_its_cache(in_utc: None) -> None:
    """Wide details have call site, FLOPs and memory, why it was not stored, and what an earlier process had."""
    for width in (100, 200):
        drawn = as_text(lay_out(explained(), Surface(width, 70)))
        assert "train_digits.py:61 · 1.32 PFLOP · 4 GiB" in drawn
        assert "not stored: Compiled in 0.8 s, below the threshold of 1 s." in drawn
        assert "Process 41007 compiled it with other flags." in drawn
        assert "1,212 entries · 3 GiB · -1 MiB since first seen · saved 412.35 s · /var/cache/jax" in drawn
        assert "31 not stored, too fast; latest: Compiled in 0.8 s" in drawn
        assert " 2 not stored, callbacks\n" in drawn and "error" not in drawn.partition("Persistent cache")[2]
    heading, *rows = (line for line in drawn.splitlines() if " comp. " in line or " 1.32 P " in line)
    assert re.search(r"errors +slow +comp\.", heading) and re.search(r"by phase +flop +memory", heading)
    assert re.search(r"__call__ .* 5      7  new_function×6 .* 1\.32 P +4 GiB$", rows[0])
    unnamed = dataclasses.replace(explained().lookups[0], reason=None)
    drawn = as_text(lay_out(dataclasses.replace(explained(), lookups=(unnamed,)), Surface(100)))
    assert "An earlier process had compiled it; the key differs in flags" in drawn
    assert "Persistent cache" not in as_text(lay_out(explained(), Surface(100, 24)))


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("height", [3, 8, 12, 18, 24, 31, 32, 50, 90])
@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 131, 150, 200, 300])
def test_view_fits_every_terminal(width: int, height: int, busy: bool, gone: bool) -> None:
    """No line is wider than the terminal and there are exactly as many as it has rows."""
    state = snapshot()
    if busy:
        state = dataclasses.replace(
            state,
            devices=tuple(device(i, i * 10 * GIB, 80 * GIB) for i in range(8)),
            in_progress=state.in_progress * 9,
            functions=state.functions * 10,
            findings=tuple(finding(index, function="f" * index) for index in range(9)),
            last_out_of_memory=died(),
            cache=explained().snapshot.cache,
            observer=ObserverState(
                installed=False,
                capabilities={"miss_frame": False},
                internal_errors={"wrapper": 3},
                dropped={"functions": 12},
                notes=("One note that is long enough to need more than one line in most terminals. " * 3,) * 5,
            ),
        )
    connection = Connection(url=URL, interval=1.0, gone_since=STARTED + 200 if gone else None, error="refused")
    view = dataclasses.replace(explained(), snapshot=state, connection=connection)
    lines = lay_out(view, Surface(width, height))
    assert len(lines) == height
    assert max(sum(cells(text) for text, _ in line) for line in lines) <= width
    assert not any("\n" in text for line in lines for text, _ in line)


def test_functions_are_shown_however_small_the_terminal(in_utc: None) -> None:
    """At 60 by 16 the dearest function is still there, and the rest is summed up."""
    drawn = render(overview(), 60, 16)
    assert "train_step" in drawn
    assert re.search(r"\d+ more: \d+ compilations", drawn)


def test_view_without_unicode_is_ascii(monkeypatch: pytest.MonkeyPatch, in_utc: None) -> None:
    """Neither the locale C nor an ASCII output gets a character beyond ASCII, whatever names hold."""
    state = snapshot(process=process(program="größe.py"))
    view = overview(snapshot=state, connection=Connection(url=URL))
    ascii_file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    drawn = plain_text(view, ascii_file)
    assert drawn.isascii()
    assert "gr??e.py" in drawn and "shape=3" in drawn and "####" in drawn
    monkeypatch.setenv("LC_ALL", "C")
    assert "────" not in render(overview(), 80, 24)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert "────" in render(overview(), 80, 24)


def test_colours_only_where_they_are_wanted() -> None:
    """A terminal gets colours and one bar; NO_COLOR gets letters in the bar and no colour codes."""
    coloured = render(overview(), 100, 30, force_terminal=True, color_system="standard")
    assert "\x1b[35m█" in coloured
    plain = render(overview(), 100, 30, force_terminal=True, color_system="standard", no_color=True)
    assert "tlcccccc" in re.sub(r"\x1b\[[\d;]*m", "", plain)
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", plain)


def test_gone_process_is_dim_and_named(in_utc: None) -> None:
    """The last values stay, all of them dim, and the header says since when and why."""
    connection = Connection(url=URL, interval=1.0, gone_since=STARTED + 200, error="connection refused")
    lines = lay_out(overview(connection=connection), Surface(100, 30))
    text = as_text(lines)
    assert "● gone since 09:03:20" in text
    assert "The process is gone (connection refused). These are its last values" in text
    (row,) = [
        line
        for line in lines
        if "train_step" in "".join(t for t, _ in line) and "12,345" in "".join(t for t, _ in line)
    ]
    assert {style for _, style in row} == {"gone"}


def test_names_from_the_process_cannot_move_the_cursor() -> None:
    """A function whose name holds an escape code is shown harmless."""
    evil = FunctionState(
        name="f\x1b]0;owned\x07\x1b[2J", compilations={"shape": {"miss": 1}}, phase_seconds={"compile": 1.0}
    )
    text = "\x1b[2J\u202e`x`"
    state = snapshot(
        functions=(evil,),
        process=process(program="x\x1b[2J", hostname="h\x9b2J"),
        findings=(finding(1, finding=text, function=text, summary=text, advice=text),),
        cache=CacheState(enabled=True, directory=text, unsaved={text: 1}),
    )
    event = dataclasses.replace(
        compilations()[-1],
        call_site=text,
        library_site=text,
        uncached_because=text,
        uncached_detail=text,
        function=text,
    )
    lookup = CacheLookup(time=event.time, function=text, result="miss", differs=(text,), reason=text)
    drawn = render(overview(snapshot=state, compilations=(event,), lookups=(lookup,)), 80, 90)
    assert drawn.count("?[2J") >= 8
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", drawn)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (device(0, 78 * GIB, 80 * GIB), r"gpu:0  █+[▉▊▋▌▍▎▏]?░?\s+98%  78 GiB of 80 GiB"),
        (device(0, None, None), r"cpu:0\s+[▁-█]+  3 GiB in 431 live arrays  · the allocator reports no figures"),
        (device(0, 5 * GIB, None), r"cpu:0\s+█+  5 GiB in use"),
        (dataclasses.replace(device(0, 1, None), memory=None), r"cpu:0  not sampled yet"),
    ],
)
def test_device_memory(found: DeviceState, told: str) -> None:
    """A device tells what its backend knows: a share of a limit, what is in use, or its live arrays."""
    drawn = as_text(lay_out(overview(snapshot=snapshot(devices=(found,))), Surface(100)))
    assert re.search(told, drawn), drawn


def test_fullest_hidden_device_is_named() -> None:
    """The fullest of the devices that do not fit is named: an average would hide it."""
    devices = tuple(device(i, (79 if i == 6 else 10) * GIB, 80 * GIB) for i in range(8))
    drawn = as_text(lay_out(overview(snapshot=snapshot(devices=devices)), Surface(80, 24)))
    assert "5 more; the fullest is gpu:6, 99% in use" in drawn


def test_quiet_process() -> None:
    """A process that has compiled nothing and woken no device is told as such."""
    state = snapshot(functions=(), devices=(), in_progress=(), process=process(platform=None))
    drawn = as_text(lay_out(overview(snapshot=state, compilations=()), Surface(80, 24)))
    assert "Nothing has compiled yet." in drawn
    assert "no device in use yet" in drawn


# ------------------------------------------------------------------------------------------- the client


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("9464", URL),
        (":9464", URL),
        ("9464/metrics", URL),
        ("localhost", "http://localhost:9464"),
        ("localhost:9000", "http://localhost:9000"),
        ("node-7:9464/metrics", "http://node-7:9464"),
        (f"{URL}/", URL),
        (f"{URL}/metrics", URL),
        (f"{URL}/api/v1/snapshot", URL),
        (f" {URL}/healthz ", URL),
        ("[::1]:9464", "http://[::1]:9464"),
        ("https://proxy.example/jobs/7/metrics", "https://proxy.example/jobs/7"),
    ],
)
def test_addresses(given: str, url: str) -> None:
    """An address may be given in whatever form a person has it."""
    assert client.endpoint_url(given) == url


@pytest.mark.parametrize("given", ["", "ftp://x:1", "foo bar", "host:notaport", "http://", "localhost:99999", "0"])
def test_no_addresses(given: str) -> None:
    """A text that is not an address is refused with the forms that are."""
    with pytest.raises(SettingError, match=r"is not the address of an endpoint. Give a port \(9464\)"):
        client.endpoint_url(given)


def test_facts_come_back_as_they_were() -> None:
    """A snapshot and its events go through JSON without a loss."""
    endpoint = CannedEndpoint(snapshot(), compilations())
    with serving(endpoint.answer) as url:
        assert client.fetch_snapshot(url) == snapshot()
        page = client.fetch_events(url, since=40, kind="compilation")
    assert page == client.EventPage(compilations()[40:], next=60, dropped=0)
    assert endpoint.asked == ["/api/v1/snapshot", "/api/v1/events?since=40&kind=compilation"]


def test_newer_process_is_read() -> None:
    """Fields and kinds of events that this version does not know are left out."""
    body = plain(snapshot()) | {"something_new": 1}
    body["process"]["something_new"] = [1]
    known = as_event(compilations()[0])
    events = {"events": [known, {"event": "something_new", "time": known["time"]}], "next": 2, "dropped": 0}
    with serving(lambda path: body if "snapshot" in path else events) as url:
        assert client.fetch_snapshot(url) == snapshot()
        assert client.fetch_events(url).events == compilations()[:1]


def test_nothing_listens() -> None:
    """A refused connection names the address, what was asked, and what to do."""
    with pytest.raises(EndpointUnreachableError) as caught:
        client.fetch_snapshot(f"http://127.0.0.1:{free_port()}")
    assert re.fullmatch(
        r"No jaxobs endpoint at `http://127\.0\.0\.1:\d+` \(GET http://127\.0\.0\.1:\d+/api/v1/snapshot: "
        r"connection refused\)\. Start a program with `jaxobs run SCRIPT`, or call `jaxobs\.start\(\)` in it; "
        r"for a different port, run `jaxobs top PORT`\.",
        str(caught.value),
    )


def test_slow_endpoint_times_out() -> None:
    """An endpoint that accepts and says nothing is told as one that is too slow."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(EndpointUnreachableError, match=r"no answer within 0\.2 s\)\. The program may be stopped"),
    ):
        client.fetch_snapshot(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.2)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (404, "it is not a jaxobs endpoint .*HTTP 404 Not Found"),
        (500, "it is not a jaxobs endpoint .*HTTP 500"),
        (b"<html>hello</html>", "it is not a jaxobs endpoint .*the answer is not JSON"),
        ([1, 2], "not as this version of jaxobs expects .*`the answer` is list instead of an object"),
        ({"time": 1.0}, "not as this version of jaxobs expects .*`process` is missing"),
        (plain(snapshot()) | {"time": "noon"}, "`time` is str instead of"),
        (plain(snapshot()) | {"functions": [{"name": 7}]}, r"`functions\[\]\.name` is int instead of"),
    ],
)  # fmt: skip
def test_something_else_listens(body: Any, said: str) -> None:
    """An answer that is none of ours says so, and names the field that does not fit."""
    with serving(lambda path: body) as url, pytest.raises(NotAnEndpointError, match=said):
        client.fetch_snapshot(url)


def test_something_else_than_http_listens() -> None:
    """A server of another protocol is told as no endpoint."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            connection.close()

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(NotAnEndpointError, match="no HTTP answer, BadStatusLine"):
            client.fetch_snapshot(f"http://127.0.0.1:{server.getsockname()[1]}")


# --------------------------------------------------------------------------------------------- the feed


def test_feed_tells_rates_and_asks_for_new_events_only() -> None:
    """Calls a second come from two looks, and the second look asks for what came after the first."""
    lookup = CacheLookup(time=STARTED + 184, sequence=49, function="__main__.train_step", result="miss")
    endpoint = CannedEndpoint(snapshot(), (*compilations(), lookup))
    with serving(endpoint.answer) as url:
        feed = top.Feed(url, 1.0)
        feed.look(first=True)
        assert feed.view().rates == {}
        first = snapshot().functions[0]
        later = (dataclasses.replace(first, calls=first.calls + 50), *snapshot().functions[1:])
        endpoint.state = snapshot(time=STARTED + 194, functions=later)
        feed.look()
    view = feed.view()
    assert view.rates["__main__.train_step"] == 25.0
    assert len(view.compilations) == len(compilations())
    assert view.lookups == (lookup,)
    kinds = ("compilation", "cache_lookup")
    assert endpoint.asked[-2:] == [f"/api/v1/events?since=60&kind={kind}" for kind in kinds]


def test_feed_keeps_the_last_values_and_comes_back() -> None:
    """A process that is gone leaves its values; one that is started again is read from its first event."""
    endpoint = CannedEndpoint(snapshot(), compilations())
    with serving(endpoint.answer) as url:
        feed = top.Feed(url, 1.0)
        feed.look(first=True)
    feed.look()
    gone = feed.view()
    assert gone.snapshot == snapshot()
    assert gone.connection.gone_since is not None
    assert gone.connection.error == "connection refused"
    feed.look()
    assert feed.view().connection.gone_since == gone.connection.gone_since
    endpoint.state = snapshot(process=process(pid=4800, started=STARTED + 500), last_sequence=3)
    endpoint.events = compilations()[:3]
    with serving(endpoint.answer, int(url.rpartition(":")[2])):
        feed.look()
    back = feed.view()
    assert back.connection.gone_since is None
    assert "has restarted: pid 4800" in back.connection.news
    assert back.compilations == compilations()[:3]
    assert "since=0" in endpoint.asked[-1]


def test_first_look_fails_loudly() -> None:
    """An address that cannot be reached at the start is an error, not an empty view."""
    with pytest.raises(EndpointUnreachableError):
        top.Feed(f"http://127.0.0.1:{free_port()}", 1.0).look(first=True)


# ------------------------------------------------------------------------------------------ the command


def parsed(*arguments: str) -> argparse.Namespace:
    """The arguments of `jaxobs top`."""
    parser = argparse.ArgumentParser(prog="jaxobs top")
    top.configure(parser)
    return parser.parse_args(arguments)


def test_pipe_gets_one_plain_snapshot(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that is not a terminal gets one snapshot without a single escape code."""
    monkeypatch.delenv("COLUMNS", raising=False)
    with serving(CannedEndpoint(snapshot(), compilations()).answer) as url:
        assert top.run(parsed(url)) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "train_step" in text and "helper_00" in text and "41 eager operations" in text
    assert "live" not in text.splitlines()[0]
    assert max(map(len, text.splitlines())) <= 100


def test_pipe_works_without_rich(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain snapshot needs nothing beyond the bare install."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    with serving(CannedEndpoint(snapshot()).answer) as url:
        assert top.run(parsed(url, "--once")) == 0
    assert "train_step" in capsys.readouterr().out


def test_live_view_without_rich_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live view says which extra brings what it needs."""
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtraError) as caught:
        make_console("jaxobs top")
    assert str(caught.value) == "`jaxobs top` needs `rich`, from the extra `cli`. Install it with: " + install("cli")


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "often", "1e9"])
def test_interval_is_checked(interval: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An interval that makes no sense is refused with the range."""
    with pytest.raises(SystemExit) as caught:
        parsed(f"--interval={interval}")
    assert caught.value.code == 2
    assert "is not a number of seconds between 0.1 and 3600" in capsys.readouterr().err


COMMAND = [sys.executable, "-m", "jaxobs", "top"]


def test_unreachable_ends_with_2() -> None:
    """The command prints one line and ends with 2."""
    ended = subprocess.run([*COMMAND, str(free_port())], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert re.fullmatch(r"jaxobs: No jaxobs endpoint at `.*\n", ended.stderr)


def test_reader_that_has_enough_is_no_error() -> None:
    """`jaxobs top | head -1` ends without a complaint."""
    many = snapshot(functions=snapshot().functions * 200)
    with serving(CannedEndpoint(many).answer) as url:
        command = f"set -o pipefail; {shlex.join(COMMAND)} {url} | head -1"
        ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert ended.stdout.startswith(" train_digits.py")
    assert (ended.returncode, ended.stderr) == (0, "")


# --------------------------------------------------------------------------------- in a real terminal


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """A terminal of 80 by 24 with a shell in it."""
    with terminal(tmp_path) as opened:
        yield opened


def test_live_view_in_a_terminal(tmux: Tmux) -> None:
    """The view fills the terminal, follows its size, tells of a process that is gone, leaves no trace."""
    endpoint = CannedEndpoint(snapshot(), compilations())
    with serving(endpoint.answer) as url:
        tmux.type(f"{shlex.join(COMMAND)} {url} --interval 0.2", "Enter")
        screen = tmux.await_text(r"● live(?s:.*)q quit")
        assert "train_step" in screen and "Recent compilations" in screen
        assert screen.splitlines()[-1].strip().startswith("q quit · ? help · Tab lists")
        endpoint.state = snapshot(in_progress=(OpenCompilation("__main__.new_one", "trace", STARTED + 192, "T"),))
        tmux.await_text("new_one +trace")
        endpoint.state = snapshot(findings=(finding(1),))
        tmux.await_text(r"Findings ─+ 1\n ▸ unbounded shapes  decode_1 +17 compiled +11\.0 s")
        tmux.type("m")
        assert "Functions" not in tmux.await_text("m back")
        tmux.type("m")
        tmux.resize(160, 50)
        screen = tmux.await_text("hit/miss")
        assert len(screen.splitlines()) == 50
        tmux.resize(80, 24)
    tmux.await_text(r"gone since \d\d:\d\d:\d\d")
    assert "train_step" in tmux.await_text("connection refused")
    with serving(endpoint.answer, int(url.rpartition(":")[2])):
        tmux.await_text("● live")
        tmux.type("q")
        screen = tmux.await_text(r"(?m)^ready>$")
    assert "Functions" not in screen
    tmux.type("clear; stty -a | grep -oE -- '-?(icanon|echo)\\b'", "Enter")
    tmux.await_text(r"(?m)^icanon\necho$")


def test_ctrl_c_ends_the_live_view(tmux: Tmux) -> None:
    """Ctrl-C ends the view like `q`, with the code 0."""
    with serving(CannedEndpoint(snapshot()).answer) as url:
        tmux.type(f"{shlex.join(COMMAND)} {url}; echo code $?", "Enter")
        tmux.await_text("● live")
        tmux.type("C-c")
        tmux.await_text("code 0")
