"""The sidecar: what is written is read back, by many, within its bound, and whatever else the file holds."""

import dataclasses
import json
import os
import threading
from pathlib import Path

import pytest
from helpers.counting import calls

from jaxobs.reasons import cache_records
from jaxobs.reasons.cache_records import FILE, KeyRecord, Sidecar, read

MOST_CALLS_A_LINE = 10


def record(number: int = 0, **fields: object) -> KeyRecord:
    known = {
        "function": 'train."f"\u00fc', "key": f"jit_f-{number}", "time": 1.5 + number, "process": "other", "pid": 7,
        "module": "jit_f", "parts": {"program": f"{number:012x}", "flags": "f1", "options": "o1"},
        "values": {"flags": ["--xla_a=1"], "options": {"x": "1"}}, "directory": "/c", "compile_seconds": 0.25,
        "stored": False, "uncached_because": "too_fast", "uncached_detail": "Compiled in 0.25 s.",
    }  # fmt: skip
    return KeyRecord(**{**known, **fields})  # type: ignore[arg-type]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    assert read(tmp_path) == []
    sidecar = Sidecar(str(tmp_path))
    records = [record(number) for number in range(3)]
    for each in records:
        sidecar.add(each)
    assert read(tmp_path) == records
    lines = (tmp_path / FILE).read_text().splitlines()
    assert len(lines) == 5 and sum('"digest"' in line for line in lines) == 2


def test_others_are_found_as_they_write(tmp_path: Path) -> None:
    """By key, any process; by function, other processes only, those of the same program if there are any."""
    mine, theirs = Sidecar(str(tmp_path)), Sidecar(str(tmp_path))
    function = record().function
    mine.refresh()
    assert list(mine.neighbours(function, None)) == []
    theirs.add(record(1))
    theirs.add(record(2))
    mine.add(record(3, process=mine.process))
    mine.refresh()
    assert [each.key for each in mine.neighbours(function, f"{2:012x}")] == ["jit_f-2"]
    assert sorted(each.key for each in mine.neighbours(function, "unknown")) == ["jit_f-1", "jit_f-2"]
    assert list(mine.neighbours("another", None)) == []
    assert [each.key for each in mine.of_key("jit_f-3")] == ["jit_f-3"]
    assert next(mine.of_key("jit_f-1")).values["options"] == {"x": "1"}
    os.unlink(mine.path)
    mine.refresh()
    assert list(mine.of_key("jit_f-1")) == []


def test_neighbours_are_many_programs_and_several_records_of_each(tmp_path: Path) -> None:
    """Bounded, and none of them is crowded out: an earlier record of one program may be the nearer one."""
    mine, theirs = Sidecar(str(tmp_path)), Sidecar(str(tmp_path))
    for number in range(200):
        theirs.add(record(number % 2, time=float(number)))
    mine.refresh()
    times = [each.time for each in mine.neighbours(record().function, "unknown")]
    assert sorted(times) == [float(number) for number in range(184, 200)]
    for number in range(200):
        theirs.add(record(number, time=float(number)))
    mine.refresh()
    keys = [each.key for each in mine.neighbours(record().function, "unknown")]
    assert len(keys) == 32 == len(set(keys)) and keys[0] == "jit_f-199"


def test_lines_that_cannot_be_read_are_skipped(tmp_path: Path) -> None:
    sidecar = Sidecar(str(tmp_path))
    sidecar.add(record(1))
    whole = (tmp_path / FILE).read_bytes()
    odd = b'\xff\xfe\n[1]\n{"event":"x"}\n{"function":"g","key":1,"time":"soon"}\n{"function":"h"}\n\n'
    (tmp_path / FILE).write_bytes(whole + odd + whole[: len(whole) // 2])
    sidecar.add(record(2))
    assert [each.key for each in read(tmp_path)] == ["jit_f-1", "jit_f-2"]
    fresh = Sidecar(str(tmp_path))
    fresh.refresh()
    assert [each.key for each in fresh.of_key("jit_f-2")] == ["jit_f-2"]


def test_the_file_stays_within_its_bound_and_keeps_the_latest(tmp_path: Path) -> None:
    """Each process index has one record of a program; the newest survive, with the values of their digests."""
    sidecar = Sidecar(str(tmp_path), most_bytes=20_000)
    for number in range(300):
        sidecar.add(record(number % 100, time=float(number)))
    assert os.path.getsize(sidecar.path) <= 20_000
    kept = read(tmp_path)
    assert [each.time for each in kept] == sorted(each.time for each in kept)
    assert kept[-1].time == 299.0 and kept[-1].values["flags"] == ["--xla_a=1"]
    assert os.listdir(tmp_path) == [FILE], "no draft is left"
    other = Sidecar(str(tmp_path))
    other.refresh()
    assert next(other.of_key("jit_f-99")).time == 299.0
    for number in range(300):
        sidecar.add(record(1000, time=300.0 + number))
    assert "jit_f-99" in {each.key for each in read(tmp_path)}, "one that comes again and again pushes none out"


def test_of_a_file_beyond_any_bound_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file by another hand, by whoever reads it: all its records at once, or as a process looks for a key."""
    sidecar = Sidecar(str(tmp_path), most_bytes=10**6)
    for number in range(100):
        sidecar.add(record(number))
    monkeypatch.setattr(cache_records, "MOST_BYTES", 2000)
    kept = [each.key for each in read(tmp_path)]
    assert 0 < len(kept) < 20 and kept[-1] == "jit_f-99"
    fresh = Sidecar(str(tmp_path))
    fresh.refresh()
    assert [len(list(fresh.of_key(f"jit_f-{number}"))) for number in (0, 99)] == [0, 1]


def test_many_append_at_once(tmp_path: Path) -> None:
    """Four writers of one file: no line is lost or torn.

    A writer that sees another's line before its end puts a line break before its own, which leaves an empty line.
    """

    def write(name: str) -> None:
        sidecar = Sidecar(str(tmp_path))
        for number in range(50):
            sidecar.add(record(number, process=name))

    writers = [threading.Thread(target=write, args=(f"p{number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read(tmp_path)) == 200
    assert all(json.loads(line) for line in (tmp_path / FILE).read_text().splitlines() if line)


def test_a_record_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    sidecar = Sidecar(str(tmp_path))
    sidecar.add(record(1, uncached_detail="x" * 5000))
    sidecar.add(dataclasses.replace(record(2), parts={"flags": "f2"}, values={"flags": ["y" * 20_000]}))
    (only,) = read(tmp_path)
    assert only.key == "jit_f-2" and only.values == {}


def test_a_directory_that_is_gone_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Sidecar(str(tmp_path / "gone")).add(record())


def test_a_sidecar_is_read_with_the_same_calls_for_each_line(tmp_path: Path) -> None:
    """Once a process, next to its first compile: however long it is."""

    def reading(records: int) -> int:
        folder = tmp_path / str(records)
        folder.mkdir()
        sidecar = Sidecar(str(folder))
        for number in range(records):
            sidecar.add(record(number))
        return calls(Sidecar(str(folder)).refresh).total()

    few, some, many = reading(10), reading(100), reading(1000)
    assert (many - some) / 900 <= 1.05 * (some - few) / 90 <= MOST_CALLS_A_LINE
