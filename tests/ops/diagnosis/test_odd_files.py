"""Files that are not what they were given as, or not what they look like."""

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.evidence import LAST, LINE
from jaxobs.ops.diagnosis.gathering import bounded, logs, unpacking
from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, NO_FAULT, Diagnosis

STEPS = "".join(f"2026-01-31T11:00:{each:02d}Z step {each} loss 2.1\n" for each in range(20))
FAILED = (
    STEPS + 'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n    step(x)\n'
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.00GiB.\n"
)


def of_logs(folder: Path, **logs: bytes | str) -> Diagnosis:
    for name, text in logs.items():
        (folder / f"{name}.log").write_bytes(text if isinstance(text, bytes) else text.encode())
    return diagnose(gather(Inputs(logs=tuple(str(folder / f"{name}.log") for name in logs))))


@pytest.mark.parametrize(
    "body",
    [
        bytes(5000) + FAILED.encode(), bytes(2**21) + FAILED.encode(), FAILED.encode() + bytes(5000),
        FAILED.encode("utf-16-le"), FAILED.encode("utf-16-be"), "Schätzung\n".encode("latin-1") + FAILED.encode(),
    ],
    ids=["hole before", "large hole", "hole behind", "UTF-16 little", "UTF-16 big", "Latin"],
)  # fmt: skip
def test_a_text_is_read_whatever_surrounds_it(body: bytes, tmp_path: Path) -> None:
    """Rotation leaves holes of NULs; tools of Windows write two bytes a letter, with and without a mark."""
    found = of_logs(tmp_path, odd=body)
    assert (found.verdict, [each.id for each in found.causes]) == (CAUSE, ["device_out_of_memory"])


@pytest.mark.parametrize(
    "body",
    [random.Random(7).randbytes(50_000), bytes(range(256)) * 50, bytes(5000), bytes(2**21), b"\n\n \n"],
    ids=["random", "bytes", "NULs", "many NULs", "blank"],
)
def test_what_is_no_text_shows_no_health(body: bytes, tmp_path: Path) -> None:
    """Neither a fault nor its absence."""
    found = of_logs(tmp_path, odd=body)
    assert (found.verdict, found.causes) == (INCONCLUSIVE, ())
    assert len(found.missing) == 1


def test_an_event_log_among_the_logs_is_read_as_what_it_is(tmp_path: Path) -> None:
    """A line of JSON that another program writes is not."""
    common = {"process_index": 3, "pid": 7}
    lines = [
        {"time": "2026-01-31T11:00:00Z", "event": "manifest", **common},
        {"time": "2026-01-31T11:00:05Z", "event": "nonfinite", "name": "loss", "kind": "nan", "call": 5, **common},
    ]
    found = of_logs(tmp_path, events="".join(json.dumps(each) + "\n" for each in lines))
    assert [(each.id, each.component) for each in found.causes] == [("nonfinite_values", "process 3")]
    assert of_logs(tmp_path, other='{"time": "2026-01-31T11:00:00Z", "event": "started"}\n').verdict == NO_FAULT


def test_what_failed_of_its_own_cause_is_no_victim_of_a_later_one(tmp_path: Path) -> None:
    """Two faults that have nothing to do with each other: the first one comes first, with its own process."""
    gpu = (
        STEPS + "2026-01-31T11:00:20Z NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n"
        'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    step()\n'
        "jax.errors.JaxRuntimeError: INTERNAL: CUDA_ERROR_UNKNOWN: unknown error\n"
    )
    disk = (
        STEPS + "2026-01-31T11:00:40Z step 20 loss 2.1\nTraceback (most recent call last):\n"
        '  File "train.py", line 8, in <module>\n    save()\nOSError: [Errno 28] No space left on device\n'
    )
    for names in ({"a": gpu, "b": disk}, {"b": disk, "a": gpu}):
        found = of_logs(tmp_path, **names)
        assert [(each.id, each.component) for each in found.causes] == [
            ("gpu_hardware", "a.log"), ("disk_full", "b.log")
        ]  # fmt: skip
        assert "a.log" not in found.causes[1].victims


def test_a_volume_that_is_mounted_at_the_second_try_is_no_fault(tmp_path: Path) -> None:
    """Kubernetes tries again; without a step behind it, the container never started."""
    event = "2026-01-31T10:59:00Z Warning FailedMount MountVolume.SetUp failed for volume data: timed out\n"
    assert of_logs(tmp_path, later=event + STEPS).verdict == NO_FAULT
    found = of_logs(tmp_path, never=event)
    assert [each.id for each in found.causes] == ["container_not_started"]
    again = of_logs(tmp_path, again=STEPS + event.replace("10:59", "11:59"))
    assert [each.id for each in again.causes] == ["container_not_started"]


@pytest.mark.parametrize(
    ("given", "count", "said"),
    [((1,), 2, "process 0:"), ((0, 1), 2, ""), ((0,), 1, ""), ((3,), 1000, "process 5, process 6 and 993 more:")],
)
def test_processes_that_nobody_shows_are_named(given: tuple[int, ...], count: int, said: str, tmp_path: Path) -> None:
    paths = []
    for index in given:
        common = {"process_index": index, "pid": 7, "time": "2026-01-31T11:00:00Z"}
        events = [{"event": "manifest", "versions": {}, "process_count": count, **common}]
        events += [{"event": "exit", "reason": "normal", "code": 0, **common}]
        paths.append(tmp_path / f"{index}.jsonl")
        paths[-1].write_text("".join(json.dumps(event) + "\n" for event in events))
    found = diagnose(gather(Inputs(event_logs=tuple(map(str, paths)))))
    assert (found.verdict, [said in each for each in found.missing]) == (NO_FAULT, [True] if said else [])


def test_metrics_say_how_many_processes_there_are(tmp_path: Path) -> None:
    """As well as event logs."""
    path = tmp_path / "metrics.prom"
    path.write_text('jax_process_info{process_index="1",process_count="2"} 1\njax_steps_total{loop="train"} 7\n')
    found = diagnose(gather(Inputs(metrics_files=(str(path),))))
    assert [each.startswith("Nothing was given of process 0:") for each in found.missing] == [True]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_of_more_lines_than_are_read_both_ends_are(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions of short lines take no more than a hundred thousand do. Numbers of lines stay those of the file."""
    monkeypatch.setattr(bounded, "MOST_LINES", 20)
    text = "".join(f"step {number}\n" for number in range(1, 1000)) + FAILED.removeprefix(STEPS)
    (tmp_path / "many.log").write_bytes(pack(text.encode()))
    lines = bounded.Lines(str(tmp_path / "many.log"))
    read = dict(lines)
    assert [*read] == [*range(1, 11), *range(994, 1004)]
    left = len(text) - sum(len(line) + 1 for line in read.values())
    assert lines.notes == [f"{left:,} bytes in the middle were left out: it has {len(text):,}"]
    assert [each.id for each in of_logs(tmp_path, many=pack(text.encode())).causes] == ["device_out_of_memory"]


def test_between_the_ends_trouble_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its number in the file, whether the file is read whole or in two pieces; a pause across a gap is none."""
    monkeypatch.setattr(bounded, "LINES_OF_ALL", 20)
    monkeypatch.setattr(bounded, "LEAST_LINES", 1)
    clock = "2026-01-31 {:02}:{:02}:00 INFO step {}\n"
    steps = [clock.format(number // 60, number % 60, number) for number in range(1000)]
    steps[299] = "2026-01-31 04:59:00 INFO loss is nan\n"
    path = str(tmp_path / "long.log")
    Path(path).write_text("".join(steps))
    for most in (bounded.MOST_BYTES, 30_000):
        monkeypatch.setattr(bounded, "MOST_BYTES", most)
        lines = bounded.Lines(path, 20)
        read = dict(lines)
        assert [*read][:40] == [*range(1, 11), *range(300, 330)] and [*read.values()][40:] == [
            each.strip() for each in steps[-10:]
        ]
        assert lines.gaps == [300, [*read][40]]
        evidence = gather(Inputs(logs=(path,)))
        (shown,) = (each for each in evidence.observations if each.kind == LINE)
        (last,) = (each for each in evidence.observations if each.kind == LAST)
        assert (shown.place, last.data["pause"]) == (300, "60.000")
    Path(tmp_path / "short.log").write_text(80 * "x")
    assert bounded.shares([path, str(tmp_path / "short.log"), "", path]) == [8, 6, 5, 8]


def test_a_file_that_unpacks_to_more_than_is_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_UNPACKED", len(FAILED) + 1)
    found = of_logs(tmp_path, bomb=gzip.compress(FAILED.encode() + STEPS.encode() * 100_000))
    assert [each.id for each in found.causes] == ["device_out_of_memory"]
    assert "bytes were unpacked" in found.missing[0]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress], ids=["gzip", "xz", "bzip2"])
def test_streams_without_end_are_not_read(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines before them are."""
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 100)
    stream = pack(b"")
    found = of_logs(tmp_path, endless=pack(FAILED.encode()) + 100 * stream)
    assert [each.id for each in found.causes] == ["device_out_of_memory"]
    assert "it is damaged: only its first" in found.missing[0]
    assert "it has more than 100 streams" in of_logs(tmp_path, empty=101 * stream).missing[0]
    assert of_logs(tmp_path, filled=pack(FAILED.encode()) + bytes(100_000)).missing == ()


def test_a_stream_that_asks_for_much_memory_is_not_unpacked(tmp_path: Path) -> None:
    """The header of LZMA says how much of the text is to be kept at hand."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**29}]
    found = of_logs(tmp_path, greedy=lzma.compress(FAILED.encode(), filters=filters))
    assert [each.startswith("log greedy.log: it cannot be unpacked: ") for each in found.missing] == [True]


def test_processes_beyond_those_that_are_told_apart_are_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared with each other one, so that a log of 20,000 would take minutes."""
    monkeypatch.setattr(logs, "MOST_PROCESSES", 3)
    text = "".join(f"[rank{number}]: 2026-01-31T09:00:01.5Z INFO step {number}\n" for number in range(50))
    found = gather(Inputs(logs=(str(_written(tmp_path, text)),)))
    assert {each.process for each in found.observations} == {"process 0", "process 1", "process 2", ""}
    assert found.sources[0].notes == ("only its first 3 processes are distinguished",)


def _written(folder: Path, text: str) -> Path:
    (folder / "many.log").write_text(text)
    return folder / "many.log"
