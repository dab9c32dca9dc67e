"""`jaxobs compare`: logs made by hand, and by real runs; figures, differences, tolerances, exit codes."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from jaxobs.cli import main
from jaxobs.facts.cache import CacheLookup
from jaxobs.facts.compilations import Change, Compilation
from jaxobs.facts.events import Event, as_event
from jaxobs.facts.findings import Finding
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import DeviceMemory
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.standing import Standing
from jaxobs.facts.steps import Step
from jaxobs.facts.wall import TIME_CATEGORIES, TimeState
from jaxobs.views import comparing

FINE, FINDINGS, USAGE = 0, 1, 2


def manifest(**given: Any) -> Manifest:
    """Returns the manifest of a run on one GPU."""
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
    out = " ".join(capsys.readouterr().out.split())
    assert "Not in B's log: step-time, mean-step-time, steps-per-second. Mark the steps" in out
    assert "jaxobs.steps" in out


def test_a_smaller_figure_is_always_kept(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Faster is fine, also by much; equal is within 0%."""
    before, after = usual(log)
    assert (
        main(["compare", after, before, "--max-step-time", "0%", "--max-compile-time", "0%", "--max-memory", "0"]) == 0
    )
    capsys.readouterr()
    known = {each["name"] for each in figures(capsys, after, after)[1]["figures"]}
    flags = [f"--{each.flag}=0%" for each in comparing.MEASURES if each.better and each.name in known]
    assert len(flags) >= 9
    assert main(["compare", after, after, *flags]) == FINE


def test_the_text_for_a_person(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Both runs, the verdicts, what differs, and each function's change."""
    assert main(["compare", *usual(log), "--max-step-time", "3%"]) == FINDINGS
    out = " ".join(capsys.readouterr().out.split())
    for said in (
        "train.py, on host, jax 0.9.2, 8 H100, ended: normal", "1 of 1 tolerances exceeded", "+4.0%", "OVER",
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
    assert "left out 1 other process" in notes


def test_no_log_is_a_usage_error(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the file."""
    assert main(["compare", str(tmp_path / "none.jsonl"), str(tmp_path / "none.jsonl")]) == USAGE
    assert "none.jsonl" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------- the verdict

SIGNATURE = {
    "version": 1,
    "nodes": [{"shape": [8, 4], "dtype": "float32"}, {"dict": {"a": 0}}],
    "args": [1],
    "kwargs": {},
}


def standing(seconds: float = 0.1, count: int = 300, **spent: float) -> Standing:
    """After so many steps of a loop that was found."""
    loop = LoopState(
        name="train.step", found=True, steps=count, mean_seconds=seconds, p50_seconds=seconds,
        steps_per_second=1 / seconds, recent=(seconds,) * 100, calls={"train.step": 1.0},
    )  # fmt: skip
    times = dict.fromkeys(TIME_CATEGORIES, 0.0) | {"step": seconds * count} | spent
    wall = sum(times.values())
    time = TimeState(
        seconds=times, counted=times, category="idle", wall_seconds=wall, started=0.0, steps=0,
        goodput=times["step"] / wall, lost={},
    )  # fmt: skip
    return Standing(wall=time, loops=(loop,))


def run_of(*events: Event, stood: Standing | None = None, **given: Any) -> tuple[Event, ...]:
    """A run with one function, and how it stood at its end."""
    end = Exit(time=9.0, pid=7, sequence=9, reason="normal", standing=stood)
    return (manifest(**given), *(events or (compiled("train.step", 10.0, signature=SIGNATURE),)), end)


def verdict(log: Any, capsys: pytest.CaptureFixture[str], a: tuple[Event, ...], b: tuple[Event, ...]) -> dict[str, Any]:
    """Returns what is said of two runs."""
    _, told = figures(capsys, log("a", *a), log("b", *b))
    known: dict[str, Any] = told["verdict"]
    return known


def test_steps_of_a_found_loop_are_compared(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """By how it stood at the end: median, 95th percentile, rate and goodput."""
    a, b = run_of(stood=standing(0.1, init=30.0)), run_of(stood=standing(0.13, init=31.0))
    _, told = figures(capsys, log("a", *a), log("b", *b))
    rows = {each["name"]: (each["a"], each["b"], each["judged"]) for each in told["figures"]}
    assert rows["step-time"] == (0.1, 0.13, "worse")
    assert rows["p95-step-time"] == (0.1, 0.13, "worse")
    assert rows["steps-per-second"] == (10.0, pytest.approx(7.69, rel=0.01), "worse")
    assert rows["goodput"][:2] == (pytest.approx(0.5), pytest.approx(39 / 70))
    assert told["verdict"]["headline"] == ("A step of B takes 130 ms, A's 100 ms, 30% more: 9.00 s over 300 steps.")
    assert told["b"]["loops"]["train.step"]["found"]
    assert told["a"]["time"]["init"] == 30.0


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"stood": {"input_wait": 9.0}}, "Waiting for input: 30 ms per step in B, 0 s in A."),
        (
            {
                "event": {
                    "fingerprint": "x",
                    "signature": {**SIGNATURE, "nodes": [{"shape": [16, 4], "dtype": "float32"}]},
                }
            },
            "`train.step` does different work: float32[8,4] -> float32[16,4].",
        ),
        ({"event": {"fingerprint": "x"}}, "the code must differ"),
        ({"event": {"fingerprint": "x"}, "manifest": {"versions": {"jax": "0.9.3"}}}, "jax 0.9.2 -> 0.9.3"),
        ({"manifest": {"flags": {}}}, "are the same programs, but what differs: XLA_FLAGS --x -> (absent)"),
        ({"finding": "straggler"}, "B has the finding `straggler`, which A does not have: It is slow."),
        ({}, "The logs do not say why: programs, versions, flags and devices are the same."),
    ],
)
def test_the_best_supported_cause_of_slower_steps(
    log: Any, capsys: pytest.CaptureFixture[str], given: dict[str, Any], cause: str
) -> None:
    """Measured differences come before others; nothing is said that the logs do not have."""
    known = {"signature": SIGNATURE, "fingerprint": "train.step"} | given.get("event", {})
    events: list[Event] = [compiled("train.step", 10.0, **known)]
    if "finding" in given:
        events.append(Finding(
            time=3.0, pid=7, sequence=4, id="f", finding=given["finding"], function="train.step", summary="It is slow.",
            advice="Look.",
        ))  # fmt: skip
    manifests = {"versions": {"jax": "0.9.2"}} | given.get("manifest", {})
    b = run_of(*events, stood=standing(0.13, **given.get("stood", {})), **manifests)
    told = verdict(log, capsys, run_of(stood=standing(), versions={"jax": "0.9.2"}), b)
    assert cause in told["cause"]


def test_what_chance_explains_is_not_worse(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps 4% slower, half a second more compiling, memory by less than a MiB; nor what varies as much in each run."""
    a = run_of(compiled("f", 1.0), memory(8 * 2**30), stood=standing(0.1, 100))
    b = run_of(compiled("f", 1.4), memory(8 * 2**30 + 2**19), stood=standing(0.104, 100))
    told = verdict(log, capsys, a, b)
    assert told["worse"] == [] and told["cause"] is None
    assert told["headline"] == "Nothing got worse by more than chance: a step takes 100 ms in A and 104 ms in B."
    for spread, worse in ((0.0, True), (0.1, False)):
        logs = []
        for name, usual in (("a", 0.1), ("b", 0.115)):
            intervals = [steps(usual + spread * (number % 5 - 2), 20) for number in range(10)]
            logs.append(log(name, manifest(), compiled("f", 1.0), *intervals))
        rows = {each["name"]: each for each in figures(capsys, *logs)[1]["figures"]}
        assert (rows["step-time"]["judged"] == "worse") == worse


def test_more_compiling_names_function_and_change(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The one that takes most more, by which cause, with an example; and a cache that is off."""
    change = Change(path="batch", what="shape", before="float32[8]", after="float32[9]")
    again = [compiled("train.step", 2.0, cause="shape", changes=(change,), fingerprint=str(n)) for n in range(3)]
    first = compiled("train.step", 10.0)
    told = verdict(log, capsys, run_of(first, stood=standing()), run_of(first, *again, stood=standing()))
    assert told["headline"] == "B spent 16.0 s compiling, A 10.0 s, 60% more."
    assert told["cause"] == (
        "`train.step` compiled 4 times in B, 1 in A: 3 more because of `shape`, as in `batch` float32[8] -> float32[9]."
    )
    hits = [compiled(name, 0.6, cache="hit", phases={"cache_load": 0.1}) for name in "ab"]
    off = [compiled(name, 5.0, cache="disabled") for name in "ab"]
    told = verdict(log, capsys, run_of(*hits, stood=standing()), run_of(*off, stood=standing()))
    assert told["cause"] == "The persistent cache had 2 of 2 programs in A and 0 of 2 in B. It is off in B."


def test_memory_that_the_platform_does_not_report_is_not_nothing(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The CPU's allocator tells nothing: no row, a reason, and the live arrays apart; never 0 B."""
    sample = DeviceMemory(time=3.0, pid=7, sequence=4, device="cpu:0", live_array_bytes=2**30)
    empty = dataclasses.replace(sample, live_array_bytes=0)
    a, b = log("a", *run_of(compiled("f", 1.0), sample, empty)), log("b", *run_of(compiled("f", 1.0), empty))
    rows = {each["name"]: (each["a"], each["b"]) for each in figures(capsys, a, b)[1]["figures"]}
    assert "memory" not in rows and rows["live-arrays"] == (2**30, None)
    assert main(["compare", a, b]) == FINE
    out = " ".join(capsys.readouterr().out.split())
    assert "Not in either log: memory. Devices" in out and "CPU backend does not report memory" in out
    assert "0 B" not in out
    assert main(["compare", a, b, "--max-memory", "1%"]) == FINDINGS


def test_loops_of_other_names_are_compared_and_named(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A function was renamed; a loop that is asked for is taken by its name alone."""
    a, b = log("a", manifest(), steps(0.1)), log("b", manifest(), steps(0.2, loop="fit"))
    _, told = figures(capsys, a, b)
    assert told["loops"] == {"a": "train", "b": "fit"}
    assert {each["name"]: each["b"] for each in told["figures"]}["step-time"] == 0.2
    assert main(["compare", a, b]) == FINE
    assert "(steps of train in A, of fit in B)" in capsys.readouterr().out
    _, told = figures(capsys, a, b, "--loop", "train")
    assert {each["name"]: each["b"] for each in told["figures"]}["step-time"] is None


def test_a_drop_of_throughput_has_its_tolerance(log: Any) -> None:
    """Less is worse: items a second."""
    a, b = log("a", manifest(), steps(0.1, items=6400.0)), log("b", manifest(), steps(0.1, items=3200.0))
    assert main(["compare", a, b, "--max-items-per-second-drop", "40%"]) == FINDINGS
    assert main(["compare", a, b, "--max-items-per-second-drop", "60%"]) == FINE
    assert main(["compare", b, a, "--max-items-per-second-drop", "0"]) == FINE


@pytest.mark.slow
def test_two_real_runs_of_a_plain_program(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No word of jaxobs in it: the second has wider layers, and says so."""
    program = tmp_path / "train.py"
    program.write_text(
        "import sys, jax, jax.numpy as jnp\n"
        "@jax.jit\n"
        "def train_step(params, batch):\n"
        "    return params - 1e-3 * jnp.tanh(batch @ params), jnp.sum(params)\n"
        "params = batch = jnp.ones((int(sys.argv[1]),) * 2)\n"
        "for _ in range(200):\n"
        "    params, loss = train_step(params, batch)\n"
        "    float(loss)\n"
    )
    for name, size in (("a", "64"), ("b", "1024")):
        command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", f"{name}.jsonl", str(program)]
        subprocess.run([*command, size], check=True, cwd=tmp_path, capture_output=True)
    _, told = figures(capsys, str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"))
    rows = {each["name"]: each["judged"] for each in told["figures"]}
    assert rows["step-time"] == "worse" and rows["steps-per-second"] == "worse"
    assert "goodput" in rows and told["b"]["time"]["step"] > 0
    assert told["verdict"]["headline"].startswith("A step of B takes ")
    assert told["verdict"]["cause"] == "`train_step` does different work: float32[64,64] -> float32[1024,1024]."


@pytest.mark.slow
def test_two_real_runs(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs of a program, the second with other shapes, another flag and slower steps."""
    program = tmp_path / "train.py"
    program.write_text(
        "import sys, time, jax, jaxobs, numpy as np\n"
        "f = jaxobs.jit(lambda x: (x @ x).sum())\n"
        "x = np.ones((int(sys.argv[1]),) * 2, np.float32)\n"
        "for n in range(20):\n"
        "    with jaxobs.step('train'):\n"
        "        f(x).block_until_ready(); time.sleep(float(sys.argv[2]))\n"
    )
    for name, size, pause in (("a", "32", "0.005"), ("b", "64", "0.15")):
        command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", f"{name}.jsonl", str(program)]
        subprocess.run([*command, size, pause], check=True, cwd=tmp_path, capture_output=True)
    logs = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    code, told = figures(capsys, *logs, "--max-step-time", "50%", "--max-programs", "0", "--same", "versions")
    assert code == FINDINGS
    rows = {each["name"]: each for each in told["figures"]}
    assert rows["step-time"]["change"] > 0.5
    assert (rows["step-time"]["passed"], rows["programs"]["passed"]) == (False, True)
    assert told["differences"] == []
    assert [each["same_programs"] for each in told["functions"]] == [False]
