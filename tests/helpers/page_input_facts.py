"""Facts made by hand of a process that trains: steps, inputs of each kind, watched values, where its time went."""

from __future__ import annotations

from dataclasses import replace

from helpers.page_facts import NOW
from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import HostLine, LoopState
from jaxobs.facts.numbers import WatchedState
from jaxobs.facts.wall import TIME_CATEGORIES, TimeState

HOSTILE = "<img src=x onerror=document.title='pwned'>"

TRAIN = LoopState(
    name="train", steps=41_233, items=2_638_912, slow=3, ended=NOW, recent=(0.31, 0.3, 0.32, 0.95, 0.31),
    history=(  # half seconds with a pause, and then sample intervals, as a log has of a killed process
        (NOW - 40, 0.31, 0.32), (NOW - 39.5, 0.3, 0.31), (NOW - 39, 0.35, 0.95), (NOW - 30, 0.31, 0.33),
        (NOW - 29.5, 0.31, 0.33), (NOW - 24.5, 0.31, 0.33), (NOW - 19.5, 0.31, 0.33), (NOW - 14.5, 0.31, 0.33),
    ),
    mean_seconds=0.312, least_seconds=0.3, p50_seconds=0.31, p90_seconds=0.32, p99_seconds=0.95,
    steps_per_second=3.21, items_per_second=205.1, flops=1.5e14, peak_flops=9.895e14, mfu=0.486,
)  # fmt: skip

LINES = (
    HostLine(line="/home/me/project/train.py:30", category="input_wait", seconds=24.5, share=0.272),
    HostLine(line="train.py:31", category="step", seconds=20.0, share=0.222),
    HostLine(line=f"{HOSTILE}:9", category="transfer", seconds=0.5, share=0.0056),
)

SLOW = InputState(
    name="train", batches=300, wait_seconds=1.92, intervals=128, mean_wait_seconds=0.0064, mean_interval_seconds=0.008,
    share=0.8, looks=20, hidden=0.1, verdict="input", summary="Of 8 ms the program waits 6.4 ms.",
)  # fmt: skip
FAST = InputState(
    name=HOSTILE, batches=1_060, wait_seconds=0.001, intervals=128, mean_wait_seconds=1e-6, mean_interval_seconds=0.004,
    share=0.00025, looks=4, hidden=0.0, verdict="compute", summary="The input keeps up.",
)  # fmt: skip
AHEAD = InputState(
    name="queue", batches=40, wait_seconds=0.0, elsewhere_batches=40, elsewhere_seconds=2.0,
    summary="Its batches are taken on another thread, by a prefetcher.",
)  # fmt: skip

WATCHED = (
    WatchedState(name="ratio", calls=300, checked=300, nonfinite=0, finite=True),
    WatchedState(name="loss", calls=1_300, checked=1_290, nonfinite=98, finite=False, step=202,
                 skipped={"deleted": 10}),
    WatchedState(name="grads", calls=300, checked=0, nonfinite=0, finite=None, skipped={"too_large": 300}),
    WatchedState(name=HOSTILE, calls=30, checked=30, nonfinite=2, finite=True),
)  # fmt: skip

SECONDS = dict.fromkeys(TIME_CATEGORIES, 0.0) | {"init": 10.0, "step": 60.0, "input_wait": 25.0, "compile": 5.0}
WALL = TimeState(
    seconds=SECONDS, counted=SECONDS, category="step", wall_seconds=100.0, started=0.0, steps=300, goodput=0.6,
    lost={"input_wait": 25.0, "init": 10.0, "compile": 5.0},
)  # fmt: skip
WELL = replace(WALL, seconds={"init": 10.0, "step": 85.0, "compile": 5.0})
