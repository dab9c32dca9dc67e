"""Incident as launchers, loggers and collectors write it: its cause and its process are the same in all of them."""

import bz2
import datetime
import gzip
import json
import lzma
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.gathering.instances import processes
from jaxobs.ops.diagnosis.result import Diagnosis

START = datetime.datetime(2026, 11, 20, 10, 0, 0, tzinfo=datetime.timezone.utc)
PROCESSES = range(4)
_TRACEBACK = """Traceback (most recent call last):
  File "/app/train.py", line 88, in <module>
    main()
  File "/app/data.py", line 23, in __next__
    return self.records[self.order[self.i]]
IndexError: list index out of range"""
_LOST = (
    "E1120 10:02:15.000000   412 coordination_service_agent.cc:344] Polled an error from coordination service: "
    "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):",
    "/job:jax_worker/replica:0/task:2",
    "F1120 10:02:15.100000   412 client.h:80] Terminating process because the JAX distributed service detected fatal "
    "errors. This most likely indicates that another task died; see the other task logs for more details.",
)


@dataclass(frozen=True)
class Said:
    rank: int
    seconds: float
    text: str

    @property
    def time(self) -> datetime.datetime:
        return START + datetime.timedelta(seconds=self.seconds)

    @property
    def iso(self) -> str:
        return self.time.isoformat(timespec="microseconds").replace("+00:00", "Z")

    @property
    def epoch(self) -> float:
        return self.time.timestamp()


def incident() -> list[Said]:
    """Process 2 raises, and the others notice two minutes later that it is gone."""
    found = [Said(rank, 10.0 * step, f"step {step + 1} loss 2.{9 - step}") for step in range(3) for rank in PROCESSES]
    found += [Said(2, 31 + 0.001 * number, text) for number, text in enumerate(_TRACEBACK.split("\n"))]
    found += [Said(rank, 135, text) for rank in PROCESSES if rank != 2 for text in _LOST]
    return sorted(found, key=lambda each: each.seconds)


def diagnosed(folder: Path, files: dict[str, str | bytes]) -> Diagnosis:
    paths = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(str(path))
    return diagnose(gather(Inputs(logs=tuple(paths))))


def names_process_2(found: Diagnosis) -> None:
    """As the cause, and the others as its victims."""
    assert [(each.id, each.component) for each in found.causes] == [("program_error", "process 2")]
    assert set(found.causes[0].victims) == {"process 0", "process 1", "process 3"}


def pod(rank: int) -> dict[str, Any]:
    """Labels of Google's collector."""
    return {"type": "k8s_container", "labels": {"pod_name": f"train-{rank}-abc12", "container_name": "main"}}


ONE_FILE: dict[str, str] = tomllib.loads(Path(__file__).with_name("lines.toml").read_text(encoding="utf-8"))["forms"]


def written(form: str, each: Said) -> str:
    return ONE_FILE[form].format(
        rank=each.rank, text=each.text, quoted=json.dumps(each.text), iso=each.iso, time=each.time,
        micros=int(each.epoch * 1e6), nanos=int(each.epoch * 1e9),
    )  # fmt: skip


@pytest.mark.parametrize("form", ONE_FILE)
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_log_of_all_processes(form: str, newest_first: bool, tmp_path: Path) -> None:
    lines = [written(form, each) for each in incident()]
    if newest_first:
        if not any(each.iso[:19] in line or str(int(each.epoch)) in line for each in incident() for line in lines):
            return  # Nothing shows the order, and no collector turns it round.
        lines.reverse()
    names_process_2(diagnosed(tmp_path, {"job.log": "\n".join(lines) + "\n"}))


def yaml(each: Said) -> str:
    """As `gcloud logging read` lists entries."""
    text = each.text.replace("'", "''")
    return (
        f"---\ninsertId: x\nresource:\n  labels:\n    pod_name: train-{each.rank}-abc12\nseverity: INFO\n"
        f"textPayload: '{text}'\ntimestamp: '{each.iso}'"
    )


def array(entries: Iterable[Said]) -> str:
    """As `gcloud logging read --format=json` does."""
    return json.dumps(
        [{"timestamp": each.iso, "textPayload": each.text, "resource": pod(each.rank)} for each in entries], indent=2
    )


DOCUMENTS: dict[str, Callable[[list[Said]], str]] = {
    "YAML": lambda entries: "\n".join(map(yaml, entries)),
    "an array": array,
    "events": lambda entries: json.dumps({"events": [
        {"timestamp": int(each.epoch * 1000), "message": each.text, "logStreamName": f"train/{each.rank}"}
        for each in entries
    ]}),
    "Datadog": lambda entries: json.dumps([
        {"content": {"timestamp": each.iso, "host": "h", "hostname": f"train-{each.rank}", "message": each.text}}
        for each in entries
    ]),
    "a table": lambda entries: "timestamp,severity,pod,textPayload\n" + "".join(
        '{},INFO,train-{},"{}"\n'.format(each.iso, each.rank, each.text.replace('"', '""')) for each in entries
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_document(form: str, newest_first: bool, tmp_path: Path) -> None:
    """In which each line of the program is an entry."""
    entries = incident()
    names_process_2(diagnosed(tmp_path, {"job.log": DOCUMENTS[form](entries[::-1] if newest_first else entries)}))


FILES = [
    "rank{}.log", "{}/stderr.log", "job-4711_{}.err", "std_log_process_{}.txt", "train-workers-0-{}-abc1{}.log",
    "train-{}.log.gz", "train-{}.log.bz2", "train-{}.log.xz", "utf16-{}.out",
]  # fmt: skip
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "out": lambda data: data.decode().encode("utf-16"),
}


@pytest.mark.parametrize("form", FILES)
def test_a_file_of_each_process(form: str, tmp_path: Path) -> None:
    """By the names of the files and folders, compressed or not."""
    texts = {rank: "".join(f"{each.text}\n" for each in incident() if each.rank == rank) for rank in PROCESSES}
    pack = next((each for suffix, each in PACK.items() if form.endswith(suffix)), bytes)
    names_process_2(diagnosed(tmp_path, {form.format(*[rank] * 2): pack(texts[rank].encode()) for rank in PROCESSES}))


def test_the_pods_of_slices_stay_apart(tmp_path: Path) -> None:
    lines = [f"[pod/ms-slice-{each.rank // 2}-{each.rank % 2}-x7k2p/main] {each.text}\n" for each in incident()]
    found = diagnosed(tmp_path, {"job.log": "".join(lines)})
    assert found.causes[0].component == "ms-slice-1-0-x7k2p"
    assert len(found.causes[0].victims) == 3


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train-0", "train-2"], ["process 0", "process 2"]),
        (["node17", "node23"], ["node17", "node23"]),
        (["node0", "node1"], ["process 0", "process 1"]),
        (["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"]),
        (["a-0", "b-0"], ["process 0", "b-0"]),
        (["a-0-1", "a-1-0"], ["a-0-1", "a-1-0"]),
        (["train-7d9f8b6c5d-q9w8e", "train-7d9f8b6c5d-abcde"], ["train-7d9f8b6c5d-q9w8e", "train-7d9f8b6c5d-abcde"]),
        (["head"], ["head"]),
    ],
)
def test_what_processes_are_called(names: list[str], expected: list[str]) -> None:
    """By a number only where it can be nothing else than that of the process."""
    called = processes(names)
    assert [called.get(each, each) for each in names] == expected


HEALTHY = {
    "epochs": "".join(f"[epoch{epoch}] batch {batch} ok\n" for epoch in range(3) for batch in range(50)),
    "places": "".join(f"train.py:{61 if step % 2 else 88} step {step} ok\n" for step in range(100)),
    "threads": "".join(f"Thread-{step % 4} fetched shard {step}\n" for step in range(100)),
    "a countdown": "".join(f"2026-11-20 10:{59 - step:02d}:00 step {60 - step} ok\n" for step in range(60)),
    "figures": json.dumps([{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}]),
    "numbers": "[1, 2, 3]",
    "a table of figures": "step,loss\n1,0.5\n2,0.4\n",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_stays_healthy(name: str, tmp_path: Path) -> None:
    assert diagnosed(tmp_path, {"train.log": HEALTHY[name]}).verdict == "no_fault"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x28\xb5\x2f\xfd\0\1\2", "zstd"),
        (b"PK\3\4\0\0", "zip"),
        (b"\x7fELF" + bytes(400), "not a text file"),
        (gzip.compress(bytes(5000)), "not a text file"),
        (b"\x1f\x8bnonsense", "cannot be unpacked"),
        (b"", "empty"),
    ],
    # Not by their bytes: gzip writes the time into its header, and each worker has its own.
    ids=["zstd", "zip", "program", "packed bytes", "damaged", "empty"],
)
def test_what_is_no_text_is_no_sign_of_health(data: bytes, problem: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path, {"train.log": data})
    assert found.verdict == "inconclusive"
    assert problem in found.missing[0]


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """The beginning may show the cause, and what is lost is said."""
    text = "step 1\n" * 5000 + _TRACEBACK + "\n" + "".join(f"{each}\n" for each in range(50_000))
    found = diagnosed(tmp_path, {"train.log.gz": gzip.compress(text.encode())[:-20_000]})
    assert [each.id for each in found.causes] == ["program_error"]
    assert "damaged" in found.missing[0]


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-01-31 09:00:02.250 | {0}    | train.loop:step:12 - ",
        "2026-01-31 09:00:02 | {0} | ",
        "2026-01-31 09:00:02,250\t{0} worker.py:1462 -- ",
        "[{0}|trainer.py:2821] 2026-01-31 09:00:02,250 >> ",
        "2026-01-31 09:00:02 [{1}    ] ",
        "[2026-01-31 09:00:02,250 {2} 7 9] core_worker.cc:22: ",
        "[36m(train pid=7, ip=10.0.0.9)[0m {0}: ",
    ],
)
def test_what_loggers_put_before_a_message(prefix: str, tmp_path: Path) -> None:
    """Bars and arrows do not make it a quotation, and what it calls itself counts."""
    path = tmp_path / "run.log"
    for level, causes in (("ERROR", ["disk_full"]), ("DEBUG", [])):
        before = prefix.format(level, level.lower(), level[0])
        path.write_text(f"{before}No space left on device\n", encoding="utf-8")
        assert [each.id for each in diagnose(gather(Inputs(logs=(str(path),)))).causes] == causes
