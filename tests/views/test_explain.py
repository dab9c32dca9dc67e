"""`jaxobs explain`: real programs that do everything wrong, their logs and endpoints, and files that are none."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from helpers.made_by_hand import compilation
from helpers.run_programs import environment
from helpers.waiting import until

import jaxobs
from jaxobs import cli
from jaxobs.base.symptoms import symptom_url
from jaxobs.facts.cache import CacheLookup
from jaxobs.facts.compilations import Change, Compilation
from jaxobs.facts.errors import Error
from jaxobs.facts.events import Event, as_event
from jaxobs.facts.findings import Finding
from jaxobs.facts.out_of_memory import OomCause, OutOfMemory
from jaxobs.facts.process import Exit, Manifest
from jaxobs.state.store import Store

WRONG = """
    import functools, os
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P

    @jax.jit
    def ragged(batch): return batch["image"].sum()
    for size in [32, 17, 29, 11, 23, 30, 26, 19, 14, 31, 22, 13, 27]:
        ragged({"image": np.ones((size, 4), np.float32)})

    @jax.jit
    def scalar(state): return {"scale": state["scale"] * jnp.float32(2), "sum": state["sum"] + 1}
    state = {"scale": 1.0, "sum": jnp.zeros(3)}
    for _ in range(4):
        state = scalar(state)

    @jax.jit
    def sharded(parameters, batch): return jax.tree.map(lambda leaf: leaf + batch.mean(), parameters)
    mesh = jax.make_mesh((8,), ("data",))
    batch = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("data")))
    parameters = {"w": jnp.zeros((8, 8))}
    for _ in range(4):
        parameters = sharded(parameters, batch)

    for _ in range(5):
        jax.jit(lambda scores: scores * 2)(np.ones(3))

    @functools.partial(jax.jit, static_argnames="length")
    def window(x, length): return x * length
    for length in range(8):
        window(np.ones(3), length=length)

    class Config: pass
    @functools.partial(jax.jit, static_argnames="config")
    def configured(x, config): return x * 2
    configs = [Config() for _ in range(5)]
    for config in configs:
        configured(np.ones(3), config)

    for size in range(40, 50):
        jnp.sin(np.ones(size, np.float32))
    ones = jnp.ones(5)
    for _ in range(5):
        jax.lax.scan(lambda carry, x: (carry + x, carry), 0.0, ones)

    @jax.jit
    def grown(xs): return sum(xs)
    for count in range(1, 9):
        grown([np.float32(1)] * count)

    @jax.jit
    def alternating(x): return x + 1
    @jax.jit
    def forgotten(x): return x - 1
    for _ in range(6):
        alternating(np.ones(3)), alternating(np.ones(4)), forgotten(np.ones(3))
        jax.clear_caches()
"""

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

SOUND = """
    import jax, jax.numpy as jnp, numpy as np

    def loss(parameters, batch): return jnp.mean((batch @ parameters["w"] + parameters["b"]) ** 2)
    @jax.jit
    def step(parameters, batch):
        gradients = jax.grad(loss)(parameters, batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
    key = jax.random.key(0)
    parameters = {"w": jax.random.normal(key, (4, 3)), "b": jnp.zeros(3)}
    for size in [1, 2, 4, 8, 16, 32, 64] + [64] * 5 + [37]:
        parameters = step(parameters, np.ones((size, 4), np.float32))
    jitted = jax.jit(loss)
    jax.grad(jitted)(parameters, jnp.ones((64, 4)))
    print(float(jitted(parameters, jnp.ones((100, 4)))))
"""


def jaxobs_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `jaxobs` with these arguments as a user does."""
    command = [sys.executable, "-m", "jaxobs", *map(str, arguments)]
    variables = environment(XLA_FLAGS="--xla_force_host_platform_device_count=8", COLUMNS="100")
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)


def recorded(folder: pathlib.Path, program: str) -> pathlib.Path:
    """The event log of a program."""
    script, log = folder / "program.py", folder / "events.jsonl"
    script.write_text(textwrap.dedent(program))
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
    shapes = [[Change("x", "shape", f"float32[{n}]", f"float32[{n - 1}]")] for n in range(90, 90 - count, -1)]
    again = [
        compilation(
            cause="shape", reason="`train.step`: smaller.", changes=tuple(each), sequence=n, call_site="t.py:3", **more
        )
        for n, each in enumerate(shapes, 3)
    ]
    return [compilation(sequence=2, **more), *again]


# ------------------------------------------------------------------------------------------------- real programs


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
    lines = textwrap.dedent(WRONG).splitlines()
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


def test_the_line_of_a_library_is_told_beside_the_users(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library's line is shown if all passes through one line of the user's, also in the finding."""
    path = tmp_path / "log.jsonl"
    events = [as_event(each) for each in resized(16, library_site="brax/training/agents/ppo/train.py:512")]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in events))
    _, out = explained(capsys, path)
    text = " ".join(out.split())
    findings, _, recompilations = text.partition("Functions by cost")
    for part in (findings, recompilations):
        assert "t.py:3, in brax/training/agents/ppo/train.py:512" in part


def test_the_text_tells_findings_first_then_functions_and_reasons(
    wrong: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a person: findings with evidence and advice, functions by cost, each recompilation with reason and line."""
    code, text = explained(capsys, wrong)
    assert code == 1
    parts = [text.index(part) for part in ("Findings ", "Functions by cost ", "Persistent cache ", "─ recompiled ")]
    assert parts == sorted(parts)
    assert "▸ unbounded_shapes · ragged · batch['image'] dimension 0" in text
    assert "Do: Pad it to" in text
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
    assert " FINE  Nothing to mend: " in text
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


def test_logs_of_several_processes_are_told_each(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Processes that share a file are kept apart; those that did the same are told once, and a number comes back."""
    manifest = {"time": 1.0, "versions": {"jax": "0.10.2"}, "program": "train.py", "process_count": 2, "sequence": 1}
    events: list[Event] = []
    for index in (0, 1):
        events += [
            Manifest(process_index=index, pid=9 + index, **manifest),
            *resized(process_index=index, pid=9 + index),
        ]
    events += [Manifest(pid=9, **manifest), compilation(pid=9, sequence=2)]
    log = write(tmp_path / "log", *events)
    body = as_object(capsys, log)
    assert [(each["process_index"], each["pid"], each["programs"]) for each in body["functions"]] == [
        (0, 9, 9), (1, 10, 9), (0, 9, 1),
    ]  # fmt: skip
    assert [(each["process_index"], each["count"]) for each in body["findings"]] == [(0, 8), (1, 8)]
    _, text = explained(capsys, log)
    assert text.count("unbounded_shapes") == 1
    assert "process 0 and 1 other that compiled the same" in text


def test_half_written_lines_are_passed_over(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that was killed leaves half a line, at the end or before the next process's."""
    whole = [json.dumps(as_event(each)) + "\n" for each in resized()]
    log = write(tmp_path / "log", *whole[:4], whole[4][:70] + "\n", *whole[5:], whole[5][:200])
    code, text = explained(capsys, log)
    assert code == 1
    assert "Skipped 2 damaged lines (lines 5, 10): the first is not valid JSON." in text


def test_findings_that_only_the_log_knows_are_told(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that was rotated lost the compilations of a finding; one that has them all knows its latest count."""
    told = Finding(
        time=2.0, id="x-1", finding="static_values", function="f", summary="It was.", advice="Do it.", count=9
    )
    findings = as_object(capsys, write(tmp_path / "log", *resized(), told))["findings"]
    assert {(each["finding"], each["count"]) for each in findings} == {("static_values", 9), ("unbounded_shapes", 8)}


def test_old_and_newer_logs_are_read(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fields that an old log lacks, fields and kinds that a newer one adds, do no harm."""
    old = [
        {
            name: value
            for name, value in as_event(each).items()
            if name not in ("flops", "memory", "signature", "transform")
        }
        for each in resized()
    ]
    newer = {"time": "2026-01-01T00:00:00Z", "event": "invented", "pid": 0, "colour": "blue"}
    log = write(tmp_path / "log", *(json.dumps(each | {"new": 1}) + "\n" for each in [*old, newer]))
    assert [each["finding"] for each in as_object(capsys, log)["findings"]] == ["unbounded_shapes"]


def test_what_the_persistent_cache_did_is_told(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hits, misses, what was not stored and why, and which part of the key differed."""
    unsaved = {"cache": "miss", "uncached_because": "too_fast", "uncached_detail": "Compiled in 0.3 s, below 1 s."}
    log = write(
        tmp_path / "log",
        compilation("f", sequence=1, **unsaved),
        CacheLookup(time=1.0, function="f", result="miss", differs=("flags",), reason="XLA_FLAGS had --xla_x."),
        compilation("g", sequence=3, cache="hit", phases={"trace": 0.1, "cache_load": 0.2}),
        CacheLookup(time=1.0, function="g", result="hit", saved_seconds=12.0),
    )
    code, text = explained(capsys, log)
    assert code == 0
    assert "1 hit, 1 miss, 0 not asked" in text
    assert "Hits saved 12.0 s of compiling." in text
    assert "f: 1 program not stored, too_fast. Compiled in 0.3 s, below 1 s." in text
    assert "(differs: flags). XLA_FLAGS had --xla_x." in " ".join(text.split())
    f = next(each for each in as_object(capsys, log)["functions"] if each["function"] == "f")
    assert f["unsaved"] == [{"reason": "too_fast", "count": 1, "detail": "Compiled in 0.3 s, below 1 s."}]
    assert f["lookups"][0]["differs"] == ["flags"]


def test_a_leak_that_stands_is_a_finding_and_one_that_is_over_is_none(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are shown; only the first is worth an exit code."""
    leak = Finding(
        time=2.0, sequence=2, id="array_leak-1", finding="array_leak", function="train.step", subject="float32[8]",
        summary="412 more arrays.", advice="Find what keeps them.", count=30, since=1.0,
    )  # fmt: skip
    code, text = explained(capsys, write(tmp_path / "stands", compilation(sequence=1), leak))
    assert code == 1
    assert "412 more arrays." in text
    over = dataclasses.replace(leak, time=3.0, sequence=3, ended=3.0, summary="412 more arrays. Over.")
    code, text = explained(capsys, write(tmp_path / "over", compilation(sequence=1), leak, over))
    assert code == 0
    assert "Over." in text


def test_how_it_ended_is_told(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory that ran out with its first cause, the error, the exit and both files; a good end is no news."""
    cause = OomCause(cause="leaked_arrays", summary="412 arrays alike hold 26 GiB.", advice="Keep `float(x)`.")
    died = OutOfMemory(
        time=2.0, sequence=2, function="train.step", stage="run", error="E", message="m", device="gpu:0",
        wanted_bytes=2**31, call_site="train.py:61", causes=(cause,), report="/logs/out-of-memory-1.txt",
    )  # fmt: skip
    error = Error(time=3.0, sequence=3, error="ValueError", message="bad\nshape", call_site="train.py:9")
    end = Exit(time=4.0, sequence=4, reason="exception", detail="ValueError", code=1, report="/logs/last-minutes-1.txt")
    log = write(tmp_path / "log", compilation(sequence=1), died, error, end)
    code, text = explained(capsys, log)
    assert code == 1
    assert re.search(r"How it ended ─+ exception ValueError, exit code 1\n", text)
    lines = [line.strip()[10:] if re.match(r" \d\d:", line) else line.strip() for line in text.splitlines()]
    start = next(number for number, each in enumerate(lines) if each.startswith("How it ended"))
    assert lines[start + 1 : start + 9] == [
        "out of memory in train.step on gpu:0, 2.00 GiB wanted  train.py:61",
        "412 arrays alike hold 26 GiB. [leaked_arrays]",
        "Do: Keep `float(x)`.",
        "The report: /logs/out-of-memory-1.txt",
        "ValueError: bad  train.py:9",
        "The last minutes: /logs/last-minutes-1.txt",
        'By symptom: "It ran out of memory" in',
        symptom_url(),
    ]
    assert [each["event"] for each in as_object(capsys, log)["ends"]] == ["out_of_memory", "error", "exit"]
    _, text = explained(capsys, write(tmp_path / "alive", compilation(), died))
    assert "Trouble ─" in text and "How it ended" not in text
    _, text = explained(capsys, write(tmp_path / "well", compilation(), Exit(time=4.0, reason="normal", code=0)))
    assert "How it ended" not in text and "Trouble" not in text


def test_control_characters_of_a_log_do_not_reach_the_terminal(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name or a reason comes from elsewhere; escape codes in it are shown as question marks."""
    bad = compilation("f\x1b[31m", cause="shape", reason="\x1b]0;title\x07 bad", sequence=1)
    assert "\x1b" not in explained(capsys, write(tmp_path / "log", bad))[1]


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
