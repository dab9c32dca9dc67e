"""`jaxobs explain`: real programs that do everything wrong, their logs and endpoints, and files that are none."""

import dataclasses
import json
import pathlib
import subprocess
import sys
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from helpers.made_by_hand import compilation
from helpers.run_programs import environment
from helpers.waiting import until

import jaxobs
from jaxobs import cli
from jaxobs.facts.actions import Action
from jaxobs.facts.compilations import CacheLookup, Change, Compilation, OpenCompilation
from jaxobs.facts.errors import Error, OomCause, OutOfMemory
from jaxobs.facts.events import Event, as_event
from jaxobs.facts.findings import Finding
from jaxobs.facts.loops import HostLine, LoopState
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.standing import Standing
from jaxobs.facts.wall import TimeState
from jaxobs.state.store import Store

WRONG, SOUND = tomllib.loads(pathlib.Path(__file__).with_name("explained.toml").read_text(encoding="utf-8")).values()
EXPECTED = {
    ("unbounded_shapes", "ragged"),
    ("weak_type_at_start", "scalar"),
    ("two_shardings_at_start", "sharded"),
    ("recreated_functions", "<lambda>"),
    ("static_values", "window"),
    ("identity_hashed_static", "configured"),
    ("unbounded_structures", "grown"),
    ("flip_flop", "alternating"),
    ("forgotten_programs", "forgotten"),
    ("eager_recompiles", "<eager>"),
}


def jaxobs_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `jaxobs` with these arguments as a user does."""
    command = [sys.executable, "-m", "jaxobs", *map(str, arguments)]
    variables = environment(XLA_FLAGS="--xla_force_host_platform_device_count=8", COLUMNS="100")
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)


def recorded(folder: pathlib.Path, program: str) -> pathlib.Path:
    """The event log of a program."""
    script, log = folder / "program.py", folder / "events.jsonl"
    script.write_text(program)
    done = jaxobs_command("run", "--port", 0, "--event-log", log, script)
    assert done.returncode == 0, done.stderr
    return log


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The log of a program that makes each mistake once."""
    return recorded(tmp_path_factory.mktemp("wrong"), WRONG)


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit code and output of `jaxobs explain`."""
    code = cli.main(["explain", *map(str, arguments)])
    return code, capsys.readouterr().out


def as_object(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """Returns what `--json` prints."""
    body: dict[str, Any] = json.loads(explained(capsys, *arguments, "--json")[1])
    return body


def write(path: pathlib.Path, *events: Event | str) -> pathlib.Path:
    """A log of these events and lines."""
    lines = [each if isinstance(each, str) else json.dumps(as_event(each)) + "\n" for each in events]
    path.write_text("".join(lines))
    return path


def resized(count: int = 8, **more: Any) -> list[Compilation]:
    """A first call, and as many sizes as are wanted."""
    changes = [Change("x", "shape", f"float32[{n}]", f"float32[{n - 1}]") for n in range(90, 90 - count, -1)]
    given = {"cause": "shape", "reason": "`train.step`: smaller.", "call_site": "t.py:3"} | more
    again = [compilation(changes=(each,), sequence=n, **given) for n, each in enumerate(changes, 3)]
    return [compilation(sequence=2, **more), *again]


# ------------------------------------------------------------------------------------------------- real programs


@pytest.mark.slow
def test_every_mistake_of_a_real_program_is_found(wrong: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each pattern is told of the function that shows it, and nothing else is: as events in the log, by `explain`."""
    body = as_object(capsys, wrong)
    assert {(each["finding"], each["function"].removeprefix("__main__.")) for each in body["findings"]} == EXPECTED
    live = [json.loads(line) for line in wrong.read_text().splitlines()]
    told = {(each["finding"], each["id"]) for each in live if each["event"] == "finding"}
    assert told == {(each["finding"], each["id"]) for each in body["findings"]}
    by_type = {each["finding"]: each for each in body["findings"]}
    ragged = by_type["unbounded_shapes"]
    assert ragged["subject"] == "batch['image'] dimension 0"
    assert ragged["data"]["sizes"] == sorted([32, 17, 29, 11, 23, 30, 26, 19, 14, 31, 22, 13, 27])
    assert ragged["count"] == 12
    lines = WRONG.splitlines()
    assert by_type["recreated_functions"]["subject"].rpartition(":")[2] == str(
        1 + next(n for n, line in enumerate(lines) if "lambda scores" in line)
    )
    leaf = by_type["two_shardings_at_start"]["data"]["leaves"][0]
    assert leaf["path"] == "parameters['w']" and "data" in leaf["after"]
    assert len([each for each in body["findings"] if each["finding"] == "eager_recompiles"]) == 2
    compilations = [each for each in live if each["event"] == "compilation"]
    assert sum(each["programs"] for each in body["functions"]) == len(compilations)
    assert sum(each["seconds"] for each in body["functions"]) == pytest.approx(
        sum(sum(each["phases"].values()) for each in compilations)
    )


def test_the_text_tells_findings_first_then_functions_and_reasons(
    wrong: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a person: findings with evidence and advice, functions by cost, each recompilation with reason and line."""
    code, text = explained(capsys, wrong)
    assert code == 1
    parts = [text.index(part) for part in ("Findings ", "Functions by cost ", "Persistent cache ", "─ recompiled ")]
    assert parts == sorted(parts)
    assert "▸ unbounded_shapes · ragged · batch['image'] dimension 0" in text
    assert "Do: Pad `batch['image']` to" in text
    assert "`batch['image']` float32[13,4] -> float32[27,4]" in text
    assert "program.py:9" in text
    assert all(len(line) <= 100 for line in text.splitlines() if "/" not in line), "paths are not cut"
    _, only = explained(capsys, wrong, "--function", "scalar")
    assert "weak_type_at_start" in only and "ragged" not in only


def test_a_sound_program_has_no_findings(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A training start with buckets, gradients and an evaluation gives none: exit code 0, here and in the log."""
    log = recorded(tmp_path, SOUND)
    assert '"event": "finding"' not in log.read_text()
    code, text = explained(capsys, log)
    assert code == 0
    assert " OK  Nothing to fix: " in text
    assert "step" in text


@pytest.mark.usefixtures("fresh")
def test_a_running_process_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """By its address: the same story from snapshot and events; the snapshot has the finding."""
    import jax
    import numpy as np

    handle = jaxobs.start(port=0)
    assert handle is not None

    @jax.jit
    def ragged(x: Any) -> Any:
        return x + 1

    for size in range(60, 50, -1):
        ragged(np.ones(size, np.float32))
    assert [each.finding for each in jaxobs.snapshot().findings] == ["unbounded_shapes"]
    until(lambda: jaxobs.snapshot().findings[0].count == 9)  # brought up to date once a second
    body = as_object(capsys, handle.url)
    assert [each["finding"] for each in body["findings"]] == ["unbounded_shapes"]
    assert body["findings"][0]["count"] == 9
    code, text = explained(capsys, handle.url, "--function", "ragged")
    assert code == 1
    assert "Dimension 0 of `x` has taken 10 sizes from 51 to 60" in text


# ---------------------------------------------------------------------------------------------- logs made by hand


def two_processes() -> list[Event]:
    """Two that compiled the same into one file, of which the first was started again with the number of its process."""
    manifest = {"time": 1.0, "versions": {"jax": "0.10.2"}, "program": "train.py", "process_count": 2, "sequence": 1}
    events: list[Event] = []
    for index in (0, 1):
        given: dict[str, Any] = {"process_index": index, "pid": 9 + index}
        events += [Manifest(**manifest, **given), *resized(**given)]  # type: ignore[arg-type]
    return [*events, Manifest(pid=9, **manifest), compilation(pid=9, sequence=2)]  # type: ignore[arg-type]


LINES = [json.dumps(as_event(each)) + "\n" for each in resized()]
CAUSE = OomCause(cause="leaked_arrays", summary="412 arrays alike hold 26 GiB.", advice="Keep `float(x)`.")
DIED = OutOfMemory(
    time=2.0, sequence=2, function="train.step", stage="run", error="E", message="m", device="gpu:0",
    wanted_bytes=2**31, call_site="train.py:61", causes=(CAUSE,), report="/logs/out-of-memory-1.txt",
)  # fmt: skip
ERROR = Error(time=3.0, sequence=3, error="ValueError", message="bad\nshape", call_site="train.py:9")
END = Exit(time=4.0, sequence=4, reason="exception", detail="ValueError", code=1, report="/logs/last-minutes-1.txt")


def test_a_finding_names_the_trace_taken_while_it_lasted(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {"name": "profile", "origin": "http", "result": "done"}
    events = resized(time=1000.0)
    traces = [Action(time=1000.0 + at, path=f"captures/{at}", **taken) for at in (-10, 10, 20)]
    refused = Action(time=1030.0, **taken | {"result": "refused"})
    log = write(tmp_path / "log.jsonl", *events, *traces, refused)
    [finding] = as_object(capsys, log)["findings"]
    assert finding["evidence"][-1] == "A trace of that time: `jaxobs profile captures/20`"
    assert "- A trace of that time: `jaxobs profile captures/20`" in explained(capsys, log)[1]
    log = write(tmp_path / "early.jsonl", *events, traces[0])
    assert "A trace of that time" not in explained(capsys, log)[1]


LEAK = Finding(
    time=2.0, sequence=2, id="array_leak-1", finding="array_leak", function="train.step", subject="float32[8]",
    summary="412 more arrays.", advice="Find what keeps them.", count=30, since=1.0,
)  # fmt: skip
OVER = dataclasses.replace(LEAK, time=3.0, sequence=3, ended=3.0, summary="412 more arrays. Over.")
ROTATED = Finding(
    time=2.0, id="x-1", finding="static_values", function="f", summary="It was.", advice="Do it.", count=9
)
MADE = [
    Finding(
        time=2.0, sequence=2 + number, id=f"recreated_functions-{number}", finding="recreated_functions",
        function=f"train.make.<locals>.{name}", subject="train.py:7", where="train.py:7", seconds=9.0 - number,
        summary=f"`{name}` was created again 11 times.", advice="Create it once.", count=11, since=1.0,
    )
    for number, name in enumerate(("init", "step"))
]  # fmt: skip
UNSAVED = {"cache": "miss", "uncached_because": "too_fast", "uncached_detail": "Compiled in 0.3 s, below 1 s."}
CACHE = [
    compilation("f", sequence=1, **UNSAVED),
    CacheLookup(time=1.0, function="f", result="miss", differs=("flags",), reason="XLA_FLAGS had --xla_x."),
    compilation("g", sequence=3, cache="hit", phases={"trace": 0.1, "cache_load": 0.2}),
    CacheLookup(time=1.0, function="g", result="hit", saved_seconds=12.0),
]
MANY = [
    *(
        compilation(cause="shape", reason=reason, call_site=f"train.py:{line}", sequence=2 * size + line)
        for size in range(30)
        for line, reason in enumerate((f"`x` float32[{size}] -> float32[{size + 1}]. Pad it.", "`y` moved. Pad it."))
    ),
    *(
        compilation(
            operation, eager=True, cause="shape", reason=f"`x` has {number} rows. Jit it.", call_site="train.py:9",
            library_site=f"numpyro/util.py:{number}", sequence=100 + number,
        )
        for number, operation in enumerate(("add", "mul", "add", "neg", "dot"))
    ),
    *(compilation(f"f{number}", sequence=60 + number, **UNSAVED) for number in range(5)),
    *(CacheLookup(time=1.0, function=f"f{number}", result="miss", differs=("flags",)) for number in range(5)),
]  # fmt: skip
ACCOUNTED = Standing(
    wall=TimeState(
        seconds={"init": 5.0, "step": 10.0, "input_wait": 85.0}, counted={}, category="step", wall_seconds=100.0,
        started=0.0, steps=20, goodput=0.1, lost={},
    ),
    loops=(
        LoopState(
            name="train", steps=20, mean_seconds=4.75, steps_per_second=0.21,
            lines=(
                HostLine(line="/home/me/project/train.py:30", category="input_wait", seconds=82.0, share=0.863),
                HostLine(line="<stdin>:7\x1b", category="step", seconds=10.0, share=0.105),
            ),
        ),
    ),
)  # fmt: skip
HOSTILE = compilation("f\x1b[31m", cause="shape", reason="\x1b]0;title\x07 bad", sequence=1)

OPEN = OpenCompilation("m.train", "compile", 17.0, "MainThread (1)", 15.0, "train.py:5", 40.0)
INTERRUPTED = Exit(time=40.0, reason="signal", detail="SIGINT", code=130, compiling=(OPEN,))

LOGS: dict[str, list[Any]] = {
    "line of a library beside the user's": resized(16, library_site="brax/training/agents/ppo/train.py:512"),
    "several processes": two_processes(),
    "half-written lines": [*LINES[:4], LINES[4][:70] + "\n", *LINES[5:], LINES[5][:200]],
    "finding that only the log knows": [*resized(), ROTATED],
    "persistent cache": CACHE,
    "leak that stands": [compilation(sequence=1), LEAK],
    "functions of one maker": [compilation(sequence=1), *MADE],
    "leak that is over": [compilation(sequence=1), LEAK, OVER],
    "bad end": [compilation(sequence=1), DIED, ERROR, END],
    "trouble that was survived": [compilation(), DIED],
    "interrupted while it compiled": [compilation(time=1.0), INTERRUPTED],
    "good end": [compilation(), Exit(time=4.0, reason="normal", code=0)],
    "many for one reason": MANY,
    "account and loops": [compilation(), Exit(time=4.0, reason="normal", code=0, standing=ACCOUNTED)],
    "control characters": [HOSTILE],
}


@pytest.mark.usefixtures("in_utc")
@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_told_as_the_file_has_it(
    name: str, whole: Callable[[str, str], None], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Exit code and text; no control character of a log reaches the terminal."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    code, text = explained(capsys, write(pathlib.Path("log"), *LOGS[name]))
    assert "\x1b" not in text
    whole(name, f"exit code {code}\n{text}")


def test_the_same_as_an_object(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Processes that share a file are kept apart; a finding that a log has all of has its latest count."""
    body = as_object(capsys, write(tmp_path / "log", *two_processes()))
    assert [(each["process_index"], each["pid"], each["programs"]) for each in body["functions"]] == [
        (0, 9, 9), (1, 10, 9), (0, 9, 1),
    ]  # fmt: skip
    assert [(each["process_index"], each["count"]) for each in body["findings"]] == [(0, 8), (1, 8)]
    findings = as_object(capsys, write(tmp_path / "log", *resized(), ROTATED))["findings"]
    assert {each["finding"]: each["count"] for each in findings} == {"unbounded_shapes": 8, "static_values": 9}
    f, _ = as_object(capsys, write(tmp_path / "log", *CACHE))["functions"]
    assert f["unsaved"] == [{"reason": "too_fast", "count": 1, "detail": "Compiled in 0.3 s, below 1 s."}]
    assert f["lookups"][0]["differs"] == ["flags"]
    ends = as_object(capsys, write(tmp_path / "log", compilation(sequence=1), DIED, ERROR, END))["ends"]
    assert [each["event"] for each in ends] == ["out_of_memory", "error", "exit"]
    (loop,) = as_object(capsys, write(tmp_path / "log", *LOGS["account and loops"]))["loops"]
    assert (loop["pid"], loop["name"], loop["lines"][0]["seconds"]) == (0, "train", 82.0)


def test_old_and_newer_logs_are_read(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fields that an old log lacks, fields and kinds that a newer one adds, do no harm."""
    lacking = ("flops", "memory", "signature", "transform")
    old = [{name: each[name] for name in each if name not in lacking} for each in map(as_event, resized())]
    newer = {"time": "2026-01-01T00:00:00Z", "event": "invented", "pid": 0, "colour": "blue"}
    log = write(tmp_path / "log", *(json.dumps(each | {"new": 1}) + "\n" for each in [*old, newer]))
    assert [each["finding"] for each in as_object(capsys, log)["findings"]] == ["unbounded_shapes"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no events"),
        ("\n\n", "contains no events"),
        ("hello\n", ":1: the line is not valid JSON: 'hello'"),
        ("[1]\n", ":1: the line is JSON, but not an object"),
        ("\0" * 512, ":1: the line is not valid JSON"),
        ("\x7fELF\udce9\n", ":1: the line is not UTF-8 text"),
        ('{"a": 1}\n', ":1: the line is JSON, but not an event"),
        ('{"time": "2026-01-01T00:00:00Z", "event": "compilation"}\n', ":1: the line is a `compilation`"),
        ('{"time": "noon", "event": "compilation", "function": "f"}\n', ":1: the line is a `compilation`"),
    ],
)
def test_what_is_no_event_log_is_an_error(
    text: str, said: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, with the file, the line and the next step."""
    log = tmp_path / "log"
    log.write_bytes(text.encode(errors="surrogateescape"))
    assert cli.main(["explain", str(log)]) == 2
    error = capsys.readouterr().err
    assert said in error and str(log) in error


@pytest.mark.parametrize("source", ["no/such/file.jsonl", "-", ".", "events"])
def test_a_source_that_is_not_there_is_an_error(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is missing, a folder, standard input: what to give instead is said."""
    assert cli.main(["explain", source]) == 2
    assert "--event-log" in capsys.readouterr().err


def test_an_address_where_nothing_answers_and_an_unknown_function(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both say what to do: start a program, or which functions there are."""
    assert cli.main(["explain", "localhost:1"]) == 2
    assert "No jaxobs endpoint" in capsys.readouterr().err
    assert cli.main(["explain", str(write(tmp_path / "log", *resized())), "--function", "nothing"]) == 2
    assert "`train.step`" in capsys.readouterr().err


def test_a_store_that_recorded_findings_is_explained_by_its_events() -> None:
    """`explain` and the live source agree, for they are the same patterns over the same facts."""
    from jaxobs.sources.patterns import PatternsSource
    from jaxobs.views import story

    store = Store()
    source = PatternsSource(store)
    source.start()
    for event in resized(30):
        store.record(event)
    source.sample()
    process = story.ProcessEvents(compilations=store.events(kind="compilation")[0])  # type: ignore[arg-type]
    live = {each.id: (each.count, each.summary) for each in store.snapshot().findings}
    assert live == {each.id: (each.count, each.summary) for each in story.tell(process).findings}
