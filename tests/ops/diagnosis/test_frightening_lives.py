"""Lines that look like a fault and are none, beside the same where they are one."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import STEPS, TRACEBACK, said

NO_MEMORY = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9000000000 bytes."


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("WARNING train: Checkpoint /ckpt/latest not found, initializing from scratch", "checkpoint_damaged"),
        ("WARNING ckpt: checkpoint is missing parameters ('head', 'kernel')", "checkpoint_mismatch"),
        ("WARNING hub: 401 Client Error: Unauthorized for url: https://hub/x. Using cached files.", "storage_denied"),
        (f"WARNING tuner: batch 512 failed ({NO_MEMORY}), trying 256", "device_out_of_memory"),
    ],
)
@pytest.mark.parametrize("begins", ["Starting training", "Resuming from step 0"])
def test_what_comes_before_the_training_begins(tmp_path: Path, line: str, cause: str, begins: str) -> None:
    """The process goes on with its first steps; without them, or after a restart, it is what happened."""
    assert said(tmp_path, f"{line}\n{begins}\n{STEPS}") == ("no_fault", [])
    assert said(tmp_path, f"{line}\n{begins}\n") == ("cause", [cause])
    assert said(tmp_path, f"{line}\nRestarting job\n{STEPS}") == ("cause", [cause])
    assert said(tmp_path, f"{TRACEBACK}RuntimeError: {line.partition(': ')[2]}\n{begins}\n{STEPS}")[0] == "cause"


@pytest.mark.parametrize(
    ("line", "causes"),
    [
        ("WARNING data: skipping /data/1.jpg: cannot identify image file '/data/1.jpg'", []),
        ("WARNING data: image file is truncated (3 bytes not processed), dropped", []),
        ("WARNING data: ignored shard 3: unexpected end of data", []),
        ("WARNING data: cannot identify image file '/data/1.jpg'", ["input_damaged"]),
        ("WARNING data: image file is truncated (drop_remainder=True, ignore_errors=False)", ["input_damaged"]),
        (f"{TRACEBACK}OSError: image file is truncated, skipping is off, ignored 3", ["input_damaged"]),
    ],
)
def test_records_that_are_left_out(tmp_path: Path, line: str, causes: list[str]) -> None:
    """A pipeline may do without some, and says so."""
    assert said(tmp_path, f"{STEPS}{line}\n")[1] == causes


@pytest.mark.parametrize(
    ("line", "causes"),
    [
        ("best val_loss inf -> 3.2", []),
        ("best loss: inf", []),
        ("lowest_loss = inf, epoch 1", []),
        ("loss nan, best val_loss inf", ["nonfinite_values"]),
        ("best loss: nan", ["nonfinite_values"]),
        ("val_loss: inf", ["nonfinite_values"]),
    ],
)
def test_the_best_loss_so_far(tmp_path: Path, line: str, causes: list[str]) -> None:
    assert said(tmp_path, f"{STEPS}2026-01-31 09:00:02,000 INFO train: {line}\n")[1] == causes


@pytest.mark.parametrize(
    ("line", "verdict", "causes"),
    [
        ("./run.sh: line 4: 41001 Abort trap: 6           python train.py", "inconclusive", []),
        ("./run.sh: line 4:  4100 Aborted                 python train.py", "inconclusive", []),
        ("zsh: abort      python train.py", "inconclusive", []),
        ("python: a.cc:12: void f(): Assertion `n > 0' failed.", "inconclusive", []),
        ("/S/MPSGraphExecutable.mm:1710: failed assertion `Error: MLIR pass manager failed'", "inconclusive", []),
        ('loc("-":0:0): error: current mps dialect version is 1.0.0, can\'t parse version 1.1.0', "cause",
         ["plugin_mismatch"]),
        ("the abort criterion of line 4: none", "no_fault", []),
    ],
)  # fmt: skip
def test_how_a_shell_says_that_a_program_crashed(tmp_path: Path, line: str, verdict: str, causes: list[str]) -> None:
    """As shells and C do on several systems."""
    assert said(tmp_path, f"{STEPS}{line}\n") == (verdict, causes)


@pytest.mark.parametrize(
    ("start", "end", "causes"),
    [
        ("2026-01-31 09:00:02,000 WARNING eval: ", "Training complete\n", []),
        ("2026-01-31 09:00:02,000 WARNING eval: ", "", ["device_out_of_memory"]),
        ("2026-01-31 09:00:02,000 ERROR eval: ", "Training complete\n", ["device_out_of_memory"]),
        (f"{TRACEBACK}RuntimeError: ", "Training complete\n", ["device_out_of_memory"]),
    ],
)
def test_a_warning_after_the_last_step(tmp_path: Path, start: str, end: str, causes: list[str]) -> None:
    """The end of the training says that it was survived, as a further step would."""
    assert said(tmp_path, f"{STEPS}{start}{NO_MEMORY}; evaluating in halves\n{end}")[1] == causes
