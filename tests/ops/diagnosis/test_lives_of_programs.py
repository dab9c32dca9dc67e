"""Programs that other people wrote: each fault beside a healthy life that looks alike."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather

MANIFEST: dict[str, Any] = {
    "event": "manifest", "versions": {"jax": "0.10.2"}, "program": "train.py", "process_count": 1, "hostname": "host-0",
    "flags": {}, "config": {}, "devices": {}, "devices_by_process": {}, "data": [],
}  # fmt: skip


def event_log(folder: Path, *events: dict[str, Any]) -> str:
    """An event log of one process with these events, one a second."""
    path = folder / "events.jsonl"
    lines = [
        json.dumps({"time": f"2026-01-31T09:00:{n:02}Z", "process_index": 0, "pid": 7, "sequence": n + 1, **each})
        for n, each in enumerate((MANIFEST, *events))
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def causes(inputs: Inputs) -> list[str]:
    return [each.id for each in diagnose(gather(inputs)).causes]


def error(message: str, uncaught: bool = True) -> dict[str, Any]:
    """An exception that jaxobs saw."""
    return {"event": "error", "error": "AttributeError", "message": message, "uncaught": uncaught}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (error("jax.device_put_replicated is deprecated; use jax.device_put instead."), ["library_mismatch"]),
        (error("jax.device_put_replicated is deprecated; use jax.device_put instead.", uncaught=False), []),
        (error("'Batch' object has no attribute 'image'"), ["program_error"]),
    ],
)
def test_an_exception_means_in_the_event_log_what_it_means_in_the_log(
    tmp_path: Path, event: dict[str, Any], expected: list[str]
) -> None:
    assert causes(Inputs(event_logs=(event_log(tmp_path, event),))) == expected


SPENT = {"compile": 20.0, "trace": 5.0, "input_wait": 58.0, "step": 29.0, "init": 14.0, "idle": 1.0}


@pytest.mark.parametrize(
    ("changed", "batches", "expected"),
    [
        ({}, 0, ["input_bound"]),
        ({"step": 80.0}, 0, []),
        ({"compile": 200.0}, 0, []),
        ({"input_wait": 20.0, "step": 1.0, "compile": 5.0}, 0, []),
        ({}, 900, []),
        ({"input_wait": 400.0}, 900, ["input_bound"]),
    ],
)  # fmt: skip
def test_the_time_that_a_process_waits_for_its_input(
    tmp_path: Path, changed: dict[str, float], batches: int, expected: list[str]
) -> None:
    """Two thirds of the loop are a fault after a minute; the first wait for a declared input may be as long as that."""
    spent = SPENT | changed
    metrics = tmp_path / "metrics.prom"
    metrics.write_text(
        "".join(f'jax_time_seconds_total{{category="{name}"}} {seconds}\n' for name, seconds in spent.items())
        + (f'jax_input_batches_total{{input="input"}} {batches}\n' if batches else "")
    )
    declared = {
        "name": "input", "batches": batches, "wait_seconds": 58.0, "mean_wait_seconds": 0.06, "share": 0.6,
        "mean_interval_seconds": 0.1, "verdict": "unknown", "summary": "",
    }  # fmt: skip
    wall = {
        "seconds": spent, "counted": spent, "category": "idle", "wall_seconds": 127.0, "started": 0.0, "steps": 0,
        "goodput": 0.2, "lost": {}, "checkpoints": {}, "run": None,
    }  # fmt: skip
    end = {
        "event": "exit", "reason": "normal", "code": 0,
        "standing": {"wall": wall, "inputs": [declared] if batches else []},
    }  # fmt: skip
    assert causes(Inputs(metrics_files=(str(metrics),))) == expected
    assert causes(Inputs(event_logs=(event_log(tmp_path, end),))) == expected


@pytest.mark.parametrize(
    ("line", "reason", "verdict"),
    [
        ("SIGTERM received, saving and leaving", "normal", "no_fault"),
        ("SIGTERM received, saving and leaving", "signal", "inconclusive"),
        ("the node was preempted: SIGTERM received, saving and leaving", "normal", "cause"),
    ],
)
def test_a_signal_that_a_process_handles(tmp_path: Path, line: str, reason: str, verdict: str) -> None:
    end = {"event": "exit", "reason": reason, "detail": None if reason == "normal" else "SIGTERM"}
    log = tmp_path / "train.log"
    log.write_text(f"step=1, loss=0.6\n{line}\nsaved\n")
    found = diagnose(gather(Inputs(event_logs=(event_log(tmp_path, end),), logs=(str(log),))))
    assert found.verdict == verdict


COMPILED = {
    "event": "compilation", "function": "f", "cause": "first_call", "reason": "", "changes": [],
    "phases": {"compile": 0.1}, "cache": "disabled", "eager": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([{"event": "exit", "reason": "normal", "code": 0}], []),
        ([COMPILED], []),
        ([{"event": "exit", "reason": "exception", "detail": "AttributeError"}], ["program_error"]),
        ([{"event": "exit", "reason": "normal", "code": 1}], ["program_error"]),
        ([], ["program_error"]),
    ],
)
def test_an_exception_that_a_notebook_shows(tmp_path: Path, events: list[dict[str, Any]], expected: list[str]) -> None:
    """Nothing catches it in a cell, and the process goes on."""
    shown = error("'Batch' object has no attribute 'image'")
    assert causes(Inputs(event_logs=(event_log(tmp_path, shown, *events),))) == expected
