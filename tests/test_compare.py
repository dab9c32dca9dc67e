"""`jaxobs compare`: logs made by hand, and by real runs; figures, differences, tolerances, exit codes."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from jaxobs import comparing
from jaxobs.cli import main
from jaxobs.facts import CacheLookup, Compilation, DeviceMemory, Event, Exit, Manifest, Step, as_event

FINE, FINDINGS, USAGE = 0, 1, 2


def manifest(**given: Any) -> Manifest:
    """Of a run on one GPU."""
    known: dict[str, Any] = {
        "versions": {"jax": "0.9.2", "jaxlib": "0.9.2"}, "program": "train.py", "hostname": "host", "commit": "a" * 40,
        "flags": {"XLA_FLAGS": "--x"}, "config": {"jax_enable_x64": "False"}, "platform": "gpu",
        "devices": {"H100": 8}, "devices_by_process": {"0": 8},
    }  # fmt: skip
    return Manifest(time=1.0, sequence=1, pid=7, **(known | given))


def compiled(function: str, seconds: float, **given: Any) -> Compilation:
    """A first call that the cache did not have, unless told otherwise."""
    known: dict[str, Any] = {
        "cause": "first_call", "reason": "It is new.", "phases": {"trace": 0.5, "compile": seconds - 0.5},
        "cache": "miss", "fingerprint": function,
    }  # fmt: skip
    return Compilation(time=2.0, pid=7, sequence=2, function=function, **(known | given))


def steps(seconds: float, count: int = 100, **given: Any) -> Step:
    """Steps of one interval."""
    known: dict[str, Any] = {
        "loop": "train", "count": count, "last": count, "seconds": seconds * count, "least_seconds": seconds,
        "most_seconds": seconds, "median_seconds": seconds,
    }  # fmt: skip
    return Step(time=3.0, pid=7, sequence=3, **(known | given))


def memory(peak: int, device: str = "gpu:0") -> DeviceMemory:
    """A sample."""
    return DeviceMemory(time=3.0, pid=7, sequence=4, device=device, in_use_bytes=peak // 2, peak_bytes=peak)


@pytest.fixture
def log(tmp_path: pathlib.Path) -> Any:
    """Writes events to a file and returns its path."""

    def write(name: str, *events: Event) -> str:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(as_event(each)) + "\n" for each in events))
        return str(path)

    return write


def usual(log: Any) -> tuple[str, str]:
    """A run before, and one after an upgrade that made it a little slower."""
    before = (
        manifest(), compiled("train.step", 10.0, memory={"temp": 2**30}), steps(0.1), steps(0.1), memory(8 * 2**30),
        Exit(time=9.0, pid=7, sequence=9, reason="normal"),
    )  # fmt: skip
    after = (
        manifest(versions={"jax": "0.10.2", "jaxlib": "0.9.2"}, flags={}),
        compiled("train.step", 12.0, fingerprint="other", memory={"temp": 2**31}),
        compiled("train.step", 2.0, cause="shape", cache="hit", fingerprint="third"), steps(0.104),
        steps(9.0, 1, slow=True), memory(9 * 2**30), memory(2**30, "gpu:1"),
    )  # fmt: skip
    return log("a", *before), log("b", *after)


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the object that is printed."""
    code = main(["compare", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_figures_and_differences(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Each from the events that tell it; a slow step that is told by itself is not counted twice."""
    code, told = figures(capsys, *usual(log))
    assert code == FINE
    rows = {each["name"]: (each["a"], each["b"]) for each in told["figures"]}
    assert rows["step-time"] == (0.1, 0.104)
    assert rows["compile-time"] == (10.0, 14.0)
    assert rows["programs"] == (1, 2)
    assert rows["recompilations"] == (0, 1)
    assert rows["cache-misses"] == (1, 1)
    assert rows["memory"] == (8 * 2**30, 9 * 2**30)
    assert rows["temporaries"] == (2**30, 2**31)
    assert [(each["name"], each["before"], each["after"]) for each in told["differences"]] == [
        ("jax", "0.9.2", "0.10.2"), ("XLA_FLAGS", "--x", "(absent)")
    ]  # fmt: skip
    [function] = told["functions"]
    assert function["same_programs"] is False
    assert function["b"]["causes"] == {"first_call": 1, "shape": 1}


@pytest.mark.parametrize(
    ("tolerance", "code"),
    [
        (["--max-step-time", "5%"], FINE),
        (["--max-step-time", "3%"], FINDINGS),
        (["--max-step-time", "4ms"], FINE),
        (["--max-step-time", "3ms"], FINDINGS),
        (["--max-compile-time", "4s"], FINE),
        (["--max-compile-time", "39%"], FINDINGS),
        (["--max-memory", "1GiB"], FINE),
        (["--max-memory", "0.5GiB"], FINDINGS),
        (["--max-programs", "1"], FINE),
        (["--max-recompilations", "0"], FINDINGS),
        (["--max-step-time", "5%", "--max-memory", "1%"], FINDINGS),
        (["--same", "devices,commit"], FINE),
        (["--same", "versions"], FINDINGS),
        (["--same", "programs"], FINDINGS),
        (["--max-step-time", "5"], FINE),
        (["--max-step-time", "5 parsecs"], USAGE),
        (["--max-step-time", "-5%"], USAGE),
        (["--same", "luck"], USAGE),
        (["--process", "3"], USAGE),
    ],
)
def test_tolerances_decide_the_exit_code(
    log: Any, capsys: pytest.CaptureFixture[str], tolerance: list[str], code: int
) -> None:
    """0 kept, 1 passed over, 2 not understood."""
    try:
        found = main(["compare", *usual(log), *tolerance])
    except SystemExit as error:  # argparse's own
        found = int(error.code or 0)
    assert found == code
    assert capsys.readouterr().err == "" or code == USAGE


def test_what_is_not_told_is_not_kept(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A gate that cannot see does not open; the text says what to do."""
    before, after = usual(log)[0], log("c", manifest(), compiled("train.step", 10.0))
    assert main(["compare", before, after, "--max-step-time", "5%"]) == FINDINGS
    out = capsys.readouterr().out
    assert "B does not tell the usual (median) time of a step" in out
    assert "jaxobs.steps" in out


def test_a_smaller_figure_is_always_kept(log: Any) -> None:
    """Faster is fine, also by much; equal is within 0%."""
    before, after = usual(log)
    assert (
        main(["compare", after, before, "--max-step-time", "0%", "--max-compile-time", "0%", "--max-memory", "0"]) == 0
    )
    assert main(["compare", after, after, *(f"--max-{each.name}=0%" for each in comparing.MEASURES)]) == FINE


def test_the_text_for_a_person(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Both runs, the verdicts, what differs, and each function's change."""
    assert main(["compare", *usual(log), "--max-step-time", "3%"]) == FINDINGS
    out = " ".join(capsys.readouterr().out.split())
    for said in (
        "train.py, on host, jax 0.9.2, 8 H100, ended: normal", "1 of 1 tolerances passed over", "+4.0%", "OVER",
        "versions: jax: 0.9.2 -> 0.10.2", "flags: XLA_FLAGS: --x -> (absent)", "1 -> 2", "other program",
    ):  # fmt: skip
        assert said in out


def test_the_latest_run_of_a_process_is_compared(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that is appended to has earlier ones, and other processes."""
    first = (manifest(), compiled("f", 1.0))
    second = (manifest(), compiled("f", 3.0))
    other = (CacheLookup(time=2.0, process_index=1, pid=8, sequence=1, function="f", result="miss"),)
    code, told = figures(capsys, log("a", *first, *second, *other), log("b", *first))
    assert code == FINE
    assert {each["name"]: each["a"] for each in told["figures"]}["compile-time"] == 3.0
    notes = " ".join(told["a"]["notes"])
    assert "2 runs of process 0" in notes
    assert "1 other process is left out" in notes


def test_no_log_is_a_usage_error(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the file."""
    assert main(["compare", str(tmp_path / "none.jsonl"), str(tmp_path / "none.jsonl")]) == USAGE
    assert "none.jsonl" in capsys.readouterr().err


@pytest.mark.slow
def test_two_real_runs(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same program, the second with other shapes, another flag and slower steps."""
    program = tmp_path / "train.py"
    program.write_text(
        "import sys, time, jax, jaxobs, numpy as np\n"
        "f = jaxobs.jit(lambda x: (x @ x).sum())\n"
        "x = np.ones((int(sys.argv[1]),) * 2, np.float32)\n"
        "for n in range(40):\n"
        "    with jaxobs.step('train'):\n"
        "        f(x).block_until_ready(); time.sleep(float(sys.argv[2]))\n"
    )
    for name, size, pause in (("a", "32", "0.02"), ("b", "64", "0.04")):
        command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", f"{name}.jsonl", str(program)]
        subprocess.run([*command, size, pause], check=True, cwd=tmp_path, capture_output=True)
    logs = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    code, told = figures(capsys, *logs, "--max-step-time", "50%", "--max-programs", "0", "--same", "versions")
    assert code == FINDINGS
    rows = {each["name"]: each for each in told["figures"]}
    assert 0.6 < rows["step-time"]["change"] < 1.4
    assert (rows["step-time"]["passed"], rows["programs"]["passed"]) == (False, True)
    assert told["differences"] == []
    assert [each["same_programs"] for each in told["functions"]] == [False]
