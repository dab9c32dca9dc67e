"""A damaged line of an event log costs that line, in every command that reads one."""

import json
import pathlib
from typing import Any

import pytest
from helpers.made_by_hand import compilation

from jaxobs import cli
from jaxobs.base import json_lines
from jaxobs.facts.events import as_event
from jaxobs.facts.memory import DeviceMemory
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.steps import Step
from jaxobs.views.story import log as story_log

START = 1_770_000_000.0


def lines() -> list[dict[str, Any]]:
    events = [
        Manifest(time=START, sequence=1, versions={"jax": "0.10.2"}, program="train.py"),
        compilation("train.step", time=START + 1, sequence=2),
        compilation("train.step", time=START + 2, sequence=3, cause="shape", reason="`train.step`: smaller."),
        Step(
            time=START + 3, sequence=4, loop="train", last=9, count=9, seconds=3.0, least_seconds=0.2, most_seconds=0.4,
            median_seconds=0.3,
        ),
        DeviceMemory(time=START + 4, sequence=5, device="gpu:0", in_use_bytes=2**30, peak_bytes=2**31),
        Exit(time=START + 5, sequence=6, reason="normal"),
    ]  # fmt: skip
    return [as_event(each) for each in events]


def changed(number: int, **fields: Any) -> bytes:
    """Returns one of these lines with other fields; None leaves one out."""
    body = {**lines()[number], **fields}
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def raw(number: int, field: str, text: str) -> bytes:
    """Returns a line with a number that JSON's encoder would not write."""
    return changed(number, **{field: "@"}).replace(b'"@"', text.encode())


DAMAGE = {
    "NULs of a power loss": b"\0" * 4096,
    "a line of another program": b"WARNING: something else wrote here",
    "a list": b"[1, 2]",
    "no event": b'{"a": 1}',
    "no UTF-8": changed(1).replace(b"train.step", b"\xff\xfe"),
    "a compilation without time": changed(1, time=None),
    "a time that is none": changed(1, time="noon"),
    "a year after all": changed(1, time="9999-12-31T23:59:59Z"),
    "a year before all": changed(1, time="0001-01-01T00:00:00+23:59"),
    "a time without a zone": changed(1, time="2026-01-01T00:00:00"),
    "half a line": changed(1)[:60],
    "deep": b'{"event": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "an infinite number": raw(1, "flops", "1e999"),
    "a number of 400 digits": raw(4, "in_use_bytes", "1" + "0" * 400),
    "400 digits as a float": raw(3, "seconds", "1" + "0" * 400),
    "not a number": raw(3, "seconds", "NaN"),
    "more than 64 bits": raw(1, "sequence", str(2**63)),
    "a float beyond all": raw(1, "flops", "1e300"),
    "another type": changed(1, phases=[1]),
}


def log(path: pathlib.Path, *more: bytes) -> pathlib.Path:
    """A log with these lines in the middle."""
    whole = [json.dumps(each).encode() for each in lines()]
    path.write_bytes(b"\n".join([*whole[:3], *more, *whole[3:], b""]))
    return path


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, output and standard error."""
    code = cli.main(list(map(str, words)))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_line_costs_that_line(
    damage: bytes, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`explain`, `report` and `compare` say how many they skipped, and tell the rest as if it were not there."""
    whole, torn = log(tmp_path / "whole.jsonl"), log(tmp_path / "torn.jsonl", damage)
    skipped = "Skipped 1 damaged line (line 4): it "
    code, out, err = told(capsys, "explain", whole, "--json")
    assert told(capsys, "explain", torn, "--json")[:2] == (code, out)
    assert skipped in told(capsys, "explain", torn, "--json")[2] and err == ""
    assert skipped in told(capsys, "explain", torn)[1]
    code, out, err = told(capsys, "compare", whole, torn, "--json", "--max-step-time", "0%")
    assert code == 0
    assert skipped in err
    figures = json.loads(out)["figures"]
    assert figures and all(each["a"] == each["b"] for each in figures)
    code, out, err = told(capsys, "report", torn)
    assert (code, skipped in out) == (0, True)
    assert skipped in (tmp_path / "torn.html").read_text()
    assert skipped in told(capsys, "report", torn, "--out", "-")[2]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_warming_goes_on(damage: bytes, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    signature = {
        "version": 1, "module": "m", "qualname": "f", "platform": "cpu", "options": {}, "shardings": [],
        "nodes": [{"shape": [3], "dtype": "float32"}], "args": [0], "kwargs": {},
    }  # fmt: skip
    good = json.dumps({**lines()[1], "signature": signature}).encode()
    code, out, _ = told(capsys, "cache", "warm", log(tmp_path / "log", damage, good), "--dry-run", "--json")
    body = json.loads(out)
    assert [each["signature"] for each in body["signatures"]] == ["(float32[3])"]
    assert body["damaged_lines"] <= 1
    assert code in (0, 1)


def test_the_cache_is_inspected_all_the_same(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged line costs that line where a log tells who stored an entry, too."""
    lookup = {**lines()[1], "event": "cache_lookup", "result": "miss", "key": "k"}
    told_of = log(tmp_path / "log", b"\0" * 512, json.dumps(lookup).encode())
    (tmp_path / "cache").mkdir()
    code, _, err = told(capsys, "cache", "inspect", tmp_path / "cache", "--event-log", told_of)
    assert code in (0, 1)
    assert "Skipped 1 damaged line (line 4): it is not valid JSON." in err


OF_PROCESSES = (("explain", "LOG"), ("report", "LOG"), ("compare", "LOG", "LOG"), ("diagnose", "--event-log", "LOG"))
OF_LINES = (
    ("cache", "warm", "--dry-run", "LOG"), ("cache", "inspect", "CACHE", "--event-log", "LOG"), ("profile", "LOG"),
    ("bundle", "--event-log", "LOG", "-o", "LOG.tar.gz"),
)  # fmt: skip


@pytest.mark.parametrize("words", [*OF_PROCESSES, *OF_LINES], ids=lambda words: " ".join(words[:2]))
def test_what_is_left_out_of_a_log_is_said(
    words: tuple[str, ...], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines in the middle of too many, and processes after the first ones, whose own later events are read."""
    (tmp_path / "CACHE").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(json_lines, "MOST_LINES", 8)
    log(tmp_path / "LOG", *[changed(2)] * 50)
    assert "eft out lines in the middle, from line 5 on: 48" in "".join(told(capsys, *words)[1:])
    if words in OF_PROCESSES:
        monkeypatch.setattr(story_log, "MOST_PROCESSES", 2)
        log(tmp_path / "LOG", *(changed(0, pid=7, process_index=index) for index in (1, 2)))
        assert "eft out events of processes after the first 2: 1" in "".join(told(capsys, *words)[1:])


def test_what_windows_does_to_a_log_is_no_damage(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A byte order mark and other ends of lines; equal keys."""
    whole = log(tmp_path / "whole.jsonl")
    other = tmp_path / "other.jsonl"
    doubled = whole.read_bytes().replace(b'"pid": 0', b'"pid": 7, "pid": 0')
    other.write_bytes(b"\xef\xbb\xbf" + doubled.replace(b"\n", b"\r\n"))
    code, out, err = told(capsys, "explain", whole, "--json")
    assert told(capsys, "explain", other, "--json") == (code, out, err)
