"""Texts of other processes, machines and people are data: bounded, checked, and refused in a sentence."""

from __future__ import annotations

import dataclasses
import itertools
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from jaxobs.base.errors import JaxobsError, SettingError
from jaxobs.compile_cache import entries, events
from jaxobs.findings.fleet.support.digest import Digest, decode, decode_listed
from jaxobs.ops.monitoring import openslo, promql, site
from jaxobs.reasons import cache_records
from jaxobs.reasons.cache_records import KeyRecord
from jaxobs.recorder import predecessors
from jaxobs.recorder.predecessors import Attempt
from jaxobs.state.runs import Earlier
from jaxobs.testing import baseline_file
from jaxobs.testing.costs import Cost
from jaxobs.views import access, client
from jaxobs.views.client import EndpointUnreachableError, NotAnEndpointError

HUGE = int("1" + "0" * 400)
WRONG = [None, "text", [1], {"a": 1}, -1, HUGE, float("inf"), float("nan")]


@pytest.mark.parametrize("name", ["tick", "usual", "waiting", "looks", "idle", "steps", "programs", "pid", "process"])
@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:10])
def test_a_digest_with_a_wrong_figure_is_none(name: str, value: Any) -> None:
    body = dataclasses.asdict(Digest(process=1, tick=2)) | {name: value}
    found = decode(json.dumps(body))
    assert found is None if value is not None or name not in ("usual", "waiting") else found is not None


def test_a_digest_is_bounded() -> None:
    right = Digest(process=1, tick=2, host="h", usual=0.5, inside=True)
    assert decode(right.encode()) == right
    for wrong in ({"line": "x" * 10_000}, {"line": 3}, {"inside": 1}, {"chain": None}, {"host": []}, {"usual": 0}):
        assert decode(json.dumps(dataclasses.asdict(right) | wrong)) is None
    assert decode("[" * 100_000) is None
    assert decode_listed("[" * 100_000) is None
    assert decode_listed(f"[{HUGE}]") is None
    assert decode_listed('[1e999, ["a", "b"]]') is None
    assert decode_listed('[3, ["a", "b"]]') is not None


@pytest.mark.parametrize("field", ["started", "seconds", "pid", "unsaved_seconds", "hostname", "earlier.since"])
@pytest.mark.parametrize("value", ["text", [1], {"step": "text"}, -1, HUGE, float("inf")], ids=lambda v: repr(v)[:10])
def test_a_run_file_with_a_wrong_figure_is_none_of_a_run(tmp_path: Path, field: str, value: Any) -> None:
    if field == "hostname" and value == "text":
        value = 3
    attempt = Attempt(
        earlier=Earlier(), pid=1, hostname="h", started=1.0, updated=2.0, seconds={"step": 1.0}, unsaved_seconds=0.0,
        unsaved_steps=0, checkpoints=0,
    )  # fmt: skip
    path = tmp_path / "run.json"
    predecessors.write_attempt(str(path), "r", attempt)
    assert predecessors.read_attempt(str(path)) == attempt
    body = json.loads(path.read_text())
    *holders, name = field.split(".")
    holder = body["attempt"]
    for each in holders:
        holder = holder[each]
    holder[name] = value
    path.write_text(json.dumps(body))
    with pytest.raises(ValueError):
        predecessors.read_attempt(str(path))
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError):
        predecessors.read_attempt(str(path))


@pytest.mark.parametrize("cost", [{"compilations": "2"}, {"flops": [1]}, {"memory": {"temp": None}}, {"causes": 3}])
def test_a_baseline_with_a_wrong_figure_is_refused(tmp_path: Path, cost: dict[str, Any]) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(baseline_file.rendered({"t": baseline_file.Entry(functions={"f": Cost(compilations=1)})}))
    body = json.loads(path.read_text())
    body["tests"]["t"]["functions"]["f"] |= cost
    for text in (json.dumps(body), "[" * 100_000):
        path.write_text(text)
        with pytest.raises(baseline_file.BaselineError, match="--jaxobs-update"):
            baseline_file.read(path)


def test_a_sidecar_skips_what_is_no_record(tmp_path: Path) -> None:
    good = KeyRecord(function="f", key="k", time=1.0, process="p", parts={"program": "x"})
    line = json.loads(cache_records.encode(good))
    damaged = [
        json.dumps({**line, **wrong})
        for wrong in ({"time": HUGE}, {"compile_seconds": "1"}, {"directory": 3}, {"pid": "1"}, {"stored": "yes"})
    ]
    (tmp_path / cache_records.FILE).write_text(
        "\n".join([*damaged, "[" * 100_000, cache_records.encode(good).decode(), ""])
    )
    assert cache_records.read(tmp_path) == [good]
    sidecar = cache_records.Sidecar(str(tmp_path))
    sidecar.refresh()
    assert list(sidecar.of_key("k")) == [good]


def test_observations_skip_what_is_no_event(tmp_path: Path) -> None:
    good = {"time": "2026-01-01T00:00:00Z", "event": "compilation", "function": "f", "cache": "miss", "phases": {}}
    lines = [{**good, **wrong} for wrong in ({"time": None}, {"phases": [1]}, {"phases": {"compile": "x"}})]
    texts = [json.dumps(each) for each in (*lines, good)]
    (tmp_path / "1.jsonl").write_text("\n".join([*texts, "[" * 100_000, ""]))
    assert [each.function for each in events.read(tmp_path).programs] == ["f"]


def test_a_bomb_of_an_entry_is_not_decompressed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry may hold a thousand times what it takes; beyond any executable it is broken."""
    monkeypatch.setattr(entries, "MOST_EXECUTABLE", 2**24)
    taken: list[int] = []
    take = entries._Contents.take
    monkeypatch.setattr(entries._Contents, "take", lambda self, piece: (taken.append(len(piece)), take(self, piece))[1])
    path = tmp_path / "jit_f-cache"
    path.write_bytes(zlib.compress(bytes(2**28)))
    reading = entries.read(path)
    assert reading.state == entries.BROKEN
    assert "decompresses to more than" in str(reading.problem)
    assert sum(taken) <= 2**24 + entries.MOST_OUTPUT


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n"
    for old, new in itertools.pairwise("abcdefghijkl")
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.yaml", BOMB),
        ("s.yaml", "job: " + "[" * 5000),
        ("s.yaml", "job: 2026-13-45"),
        ("s.yaml", "job: !!python/object/apply:os.getcwd []"),
        ("s.yaml", "job: a\n---\njob: b"),
        ("s.toml", "job = " + "[" * 5000),
        ("s.toml", "job = " + "9" * 5000),
    ],
)
def test_a_site_file_is_refused_in_a_sentence(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SettingError, match=r"s\.(yaml|toml) is not valid (YAML|TOML)"):
        site.read(path)
    if name.endswith("yaml") and "---" not in text:
        with pytest.raises(SettingError, match=r"s\.yaml is not valid YAML"):
            openslo.read(path)


@pytest.mark.parametrize("expr", ["(" * 100_000 + "up", "-" * 100_000 + "up", "up" + "+up" * 5000, "up" * 20_000])
def test_deep_promql_does_not_end_the_process(expr: str) -> None:
    """The parser is no Python: its stack overflows where ours raises."""
    with pytest.raises(ValueError, match="too long or nested too deeply"):
        promql.parse(expr)


class Answer:
    def __init__(self, *pieces: bytes, forever: bool = False) -> None:
        self._pieces = itertools.chain(pieces, itertools.repeat(b" ") if forever else ())

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def open(self, address: str, timeout: float) -> Answer:
        return self

    def read1(self, most: int) -> bytes:
        return next(self._pieces, b"")


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"events": [], "next": 1e999}', '{"events": [], "next": ' + "9" * 400 + "}",
     '{"events": 3, "next": 1}',
     '{"events": [{"event": "step"}], "next": 1}', '{"events": [{"event": "step", "time": 5}], "next": 1}', "NaN"],
)  # fmt: skip
def test_an_answer_that_is_damaged_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "Endpoint", lambda url: Answer(text.encode()[:7], text.encode()[7:]))
    with pytest.raises(NotAnEndpointError):
        client.fetch_events("http://localhost:1")


def test_a_server_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(access, "Endpoint", lambda url: Answer(b'{"events"', forever=True))
    monkeypatch.setattr(client.time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(EndpointUnreachableError, match="no answer within"):
        client.fetch_events("http://localhost:1", timeout=2.0)


def test_these_are_errors_of_ours() -> None:
    for kind in (SettingError, NotAnEndpointError, EndpointUnreachableError, baseline_file.BaselineError):
        assert issubclass(kind, JaxobsError)
