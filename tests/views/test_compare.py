"""`jaxobs compare`: logs made by hand, and by real runs; figures, differences, tolerances, exit codes."""

import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from helpers.run_programs import programs

from jaxobs.cli import main
from jaxobs.facts.compilations import CacheLookup, Change, Compilation
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
    return DeviceMemory(time=3.0, pid=7, sequence=4, device=device, in_use_bytes=peak // 2, peak_bytes=peak)


@pytest.fixture
def log(tmp_path: pathlib.Path) -> Any:
    """Writes events to a file and returns its path."""

    def write(name: str, *events: Event) -> str:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(as_event(each)) + "\n" for each in events))
        return str(path)

    return write


BEFORE = (
    manifest(), compiled("train.step", 10.0, memory={"temp": 2**30}), steps(0.1), steps(0.1), memory(8 * 2**30),
    Exit(time=9.0, pid=7, sequence=9, reason="normal"),
)  # fmt: skip
AFTER = (
    manifest(versions={"jax": "0.10.2", "jaxlib": "0.9.2"}, flags={}),
    compiled("train.step", 12.0, fingerprint="other", memory={"temp": 2**31}),
    compiled("train.step", 2.0, cause="shape", cache="hit", fingerprint="third"), steps(0.104),
    steps(9.0, 1, slow=True), memory(9 * 2**30), memory(2**30, "gpu:1"),
)  # fmt: skip


def usual(log: Any) -> tuple[str, str]:
    """A run before, and one after an upgrade that made it a little slower."""
    return log("a", *BEFORE), log("b", *AFTER)


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the object that is printed."""
    code = main(["compare", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("tolerance", "code"),
    [
        (["--max-step-time", "5%"], FINE), (["--max-step-time", "3%"], FINDINGS), (["--max-step-time", "4ms"], FINE),
        (["--max-step-time", "3ms"], FINDINGS), (["--max-compile-time", "4s"], FINE),
        (["--max-compile-time", "39%"], FINDINGS), (["--max-memory", "1GiB"], FINE),
        (["--max-memory", "0.5GiB"], FINDINGS), (["--max-programs", "1"], FINE),
        (["--max-recompilations", "0"], FINDINGS), (["--max-step-time", "5%", "--max-memory", "1%"], FINDINGS),
        (["--same", "devices,commit"], FINE), (["--same", "versions"], FINDINGS), (["--same", "programs"], FINDINGS),
        (["--max-step-time", "5"], FINE), (["--max-step-time", "5 parsecs"], USAGE),
        (["--max-step-time", "-5%"], USAGE), (["--same", "luck"], USAGE), (["--process", "3"], USAGE),
    ],
)  # fmt: skip
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


def test_no_log_is_a_usage_error(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def slower(stood: Standing | None = None, event: Any = None, found: str = "", **given: Any) -> tuple[Event, ...]:
    """A run whose steps take 30% more; by default nothing in it says why."""
    events: list[Event] = [compiled("train.step", 10.0, **{"signature": SIGNATURE} | (event or {}))]
    if found:
        events.append(Finding(
            time=3.0, pid=7, sequence=4, id="f", finding=found, function="train.step", summary="It is slow.",
            advice="Look.",
        ))  # fmt: skip
    return run_of(*events, stood=stood or standing(0.13), **given)


def intervals(seconds: float, spread: float) -> tuple[Event, ...]:
    """A run whose steps take more and less time by turns."""
    return (manifest(), compiled("f", 1.0), *(steps(seconds + spread * (n % 5 - 2), 20) for n in range(10)))


WIDER = {"fingerprint": "x", "signature": {**SIGNATURE, "nodes": [{"shape": [16, 4], "dtype": "float32"}]}}
CHANGE = Change(path="batch", what="shape", before="float32[8]", after="float32[9]")
PROGRAMS = programs(__file__)
FIRST = compiled("train.step", 10.0)
AGAIN = [compiled("train.step", 2.0, cause="shape", changes=(CHANGE,), fingerprint=str(n)) for n in range(3)]
HITS = [compiled(name, 0.6, cache="hit", phases={"cache_load": 0.1}) for name in "ab"]
OFF = [compiled(name, 5.0, cache="disabled") for name in "ab"]
ARRAYS = DeviceMemory(time=3.0, pid=7, sequence=4, device="cpu:0", live_array_bytes=2**30)
NO_ARRAYS = dataclasses.replace(ARRAYS, live_array_bytes=0)
LOOKUP = CacheLookup(time=2.0, process_index=1, pid=8, sequence=1, function="f", result="miss")
TRAIN, FIT = (manifest(), steps(0.1)), (manifest(), steps(0.2, loop="fit"))
EARLIER, LATER = (manifest(), compiled("f", 1.0)), (manifest(), compiled("f", 3.0))

PAIRS: dict[str, tuple[tuple[Event, ...], tuple[Event, ...], list[str]]] = {
    "an upgrade": (BEFORE, AFTER, ["--max-step-time", "3%"]),
    "a gate that cannot see": (BEFORE, (manifest(), compiled("train.step", 10.0)), ["--max-step-time", "5%"]),
    "the latest of several runs": ((*EARLIER, *LATER, LOOKUP), EARLIER, []),
    "steps of a found loop": (run_of(stood=standing(0.1, init=30.0)), run_of(stood=standing(0.13, init=31.0)), []),
    "slower: input": (run_of(stood=standing()), slower(standing(0.13, input_wait=9.0)), []),
    "slower: other work": (run_of(stood=standing()), slower(event=WIDER), []),
    "slower: other code": (run_of(stood=standing()), slower(event={"fingerprint": "x"}), []),
    "slower: other versions": (
        run_of(stood=standing()), slower(event={"fingerprint": "x"}, versions={"jax": "0.9.3"}), []
    ),
    "slower: other flags": (run_of(stood=standing()), slower(flags={}), []),
    "slower: a finding": (run_of(stood=standing()), slower(found="straggler"), []),
    "slower: nobody knows why": (run_of(stood=standing()), slower(), []),
    "as chance has it": (
        run_of(compiled("f", 1.0), memory(8 * 2**30), stood=standing(0.1, 100)),
        run_of(compiled("f", 1.4), memory(8 * 2**30 + 2**19), stood=standing(0.104, 100)), [],
    ),
    "steps that are steady": (intervals(0.1, 0.0), intervals(0.115, 0.0), []),
    "steps that vary as much": (intervals(0.1, 0.1), intervals(0.115, 0.1), []),
    "more compiling": (run_of(FIRST, stood=standing()), run_of(FIRST, *AGAIN, stood=standing()), []),
    "a cache that is off": (run_of(*HITS, stood=standing()), run_of(*OFF, stood=standing()), []),
    "a platform that reports no memory": (
        run_of(compiled("f", 1.0), ARRAYS, NO_ARRAYS), run_of(compiled("f", 1.0), NO_ARRAYS), ["--max-memory", "1%"],
    ),
    "loops of other names": (TRAIN, FIT, []),
    "one loop": (TRAIN, FIT, ["--loop", "train"]),
}  # fmt: skip
AS_OBJECTS = ("an upgrade", "steps of a found loop")


@pytest.mark.parametrize("name", PAIRS)
def test_two_runs_are_compared_as_the_file_has_it(
    name: str, whole: Callable[[str, str], None], log: Any, tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Measured differences come before others; what a log doesn't have is said, and never 0."""
    a, b, options = PAIRS[name]
    log("a", *a), log("b", *b)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    code = main(["compare", "a.jsonl", "b.jsonl", *options])
    whole(name, f"exit code {code}\n{capsys.readouterr().out}")
    if name in AS_OBJECTS:
        main(["compare", "a.jsonl", "b.jsonl", *options, "--json"])
        told = json.loads(capsys.readouterr().out, parse_float=lambda text: float(f"{float(text):.9g}"))
        rows = [(key, row) for key, value in told.items() for row in (value if isinstance(value, list) else [value])]
        whole(f"{name}, as an object", "\n".join(f"{key}: {json.dumps(row)}" for key, row in rows))


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
    program.write_text(PROGRAMS["plain"])
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
    program.write_text(PROGRAMS["steps"])
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
