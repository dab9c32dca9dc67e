"""Time and place at which a cause began, if its sign does not say it itself."""

import datetime
import json
import os
from pathlib import Path

import pytest
from helpers.log_verdicts import tables

from jaxobs.ops.diagnosis import Inputs, diagnose, gather, onsets
from jaxobs.ops.diagnosis.result import Cause

WRITTEN = datetime.datetime(2026, 1, 3, 12, 0, 0, tzinfo=datetime.timezone.utc).timestamp()
"""Time at which the files were written last: soon after New Year."""


def cause(folder: Path, **texts: str) -> Cause:
    """The only cause that files show; `__` in their names stands for a dot, `_` for a hyphen."""
    paths: dict[str, list[str]] = {"log": [], "jsonl": [], "prom": []}
    for key, text in texts.items():
        name = key.replace("__", ".").replace("_", "-")
        path = folder / name
        path.write_text(text, encoding="utf-8")
        os.utime(path, (WRITTEN, WRITTEN))
        paths[name.rpartition(".")[2].replace("out", "log")].append(str(path))
    inputs = Inputs(
        logs=tuple(paths["log"]), event_logs=tuple(paths["jsonl"]), metrics_files=tuple(paths["prom"])
    )  # fmt: skip
    (found,) = diagnose(gather(inputs, now=WRITTEN)).causes
    return found


RAISED = "OSError: [Errno 28] No space left on device: '/ckpt/100'"


def test_a_year_that_the_log_gives_counts(tmp_path: Path) -> None:
    """For its other times, also across New Year."""
    log = f"2022-12-31 23:59:00,000 INFO train: hello\nE0101 00:00:10.000000 12 save.cc:1] {RAISED}\n"
    assert cause(tmp_path, run__log=log).onset == "2023-01-01T00:00:10.000000Z"


def test_a_line_before_the_first_time(tmp_path: Path) -> None:
    found = cause(tmp_path, run__log=f"{RAISED}\n2026-01-02 10:00:00,000 ERROR train: giving up\n")
    assert found.onset == "2026-01-02T10:00:00.000000Z"


def test_a_report_without_a_time(tmp_path: Path) -> None:
    log = "2026-01-02T10:00:00Z step 12 loss 3.2\n2026-01-02T10:00:30Z step 13 loss 3.1\n"
    found = cause(tmp_path, pod__log=log, describe__log="    Reason:       OOMKilled\n    Exit Code:    137\n")
    assert (found.id, found.onset) == ("host_out_of_memory", "2026-01-02T10:00:30.000000Z")


def test_a_message_that_says_how_long_somebody_waited(tmp_path: Path) -> None:
    """The wait belongs to it."""
    text = "Stopping coordination service as cluster registration failed. The timeout is currently set to: 1h30m."
    found = cause(tmp_path, worker_0__log=f"E0102 10:00:00.000000 1 coordination_service.cc:8] {text}\n")
    assert found.onset == "2026-01-02T08:30:00.000000Z"


def test_a_process_that_is_found_to_be_stuck(tmp_path: Path) -> None:
    manifest = {"time": "2026-01-02T09:00:00Z", "event": "manifest", "process_index": 0, "pid": 1, "sequence": 1}
    finding = {
        **manifest, "time": "2026-01-02T10:02:00Z", "event": "finding", "sequence": 2, "id": "stuck-1",
        "finding": "stuck", "function": "train", "summary": "It is stuck.", "advice": "", "severity": "warning",
        "since": 1767348120.0, "data": {"process": 0, "idle_seconds": 120.0, "inside_jax": False},
    }  # fmt: skip
    found = cause(tmp_path, events_0__jsonl="".join(json.dumps(each) + "\n" for each in (manifest, finding)))
    assert (found.id, found.onset) == ("process_stuck", "2026-01-02T10:00:00.000000Z")


def test_a_job_that_slurm_cancels(tmp_path: Path) -> None:
    log = (
        "slurmstepd: error: *** STEP 47.0 ON n7 CANCELLED AT 2026-01-02T10:00:00 ***\n"
        "slurmstepd: error: *** JOB 47 ON n7 CANCELLED AT 2026-01-02T10:10:00 DUE TO PREEMPTION ***\n"
    )
    found = cause(tmp_path, slurm_47__out=log)
    assert (found.id, found.component) == ("preemption", "slurm-47.out")
    assert found.onset == "2026-01-02T10:00:00.000000Z"


def test_the_task_that_slurm_names(tmp_path: Path) -> None:
    text = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\nsrun: error: a: task 3: Out Of Memory\n"
    found = cause(tmp_path, slurm_48211__out=text)
    assert (found.id, found.component) == ("host_out_of_memory", "process 3")


def test_a_metrics_file_says_whose_it_is(tmp_path: Path) -> None:
    metrics = (
        'jax_process_info{process_index="0",process_count="1"} 1\naccelerator_xid_errors_total{xid="79"} 1\n'
    )  # fmt: skip
    assert cause(tmp_path, m__prom=metrics).component == "process 0"
    clean = 'jax_process_info{process_index="0",process_count="1"} 1\n'
    assert cause(tmp_path, m__prom=clean, job__log=f"{RAISED}\n").component == "process 0"
    of_two = clean.replace('count="1"', 'count="2"')
    assert cause(tmp_path, m__prom=of_two, job__log=f"{RAISED}\n").component == "job.log"


@pytest.mark.parametrize(("text", "expected"), tables(Path(__file__).parent / "onsets.txt"))
def test_a_line_says_when_or_whose(tmp_path: Path, text: str, expected: str) -> None:
    found = cause(tmp_path, run__log=text)
    assert expected in f"since {found.onset} {found.component}"


WAITS = (Path(__file__).parent / "waits.txt").read_text().splitlines()


@pytest.mark.parametrize("line", WAITS)
def test_waits_in_messages(line: str) -> None:
    """How long something had gone on when it was said; what ran well before is no wait."""
    seconds, _, text = line.partition(": ")
    assert onsets._waited(text) == pytest.approx(float(seconds))
