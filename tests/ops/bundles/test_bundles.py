"""Bundles: the same bytes for the same evidence, the same diagnosis anywhere, and nothing taken on trust."""

import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT
from helpers.requirements import program
from helpers.run_programs import environment
from helpers.waiting import until

from benchmarks.incidents.scenarios import EPOCH, laid_out, scenarios
from jaxobs import cli
from jaxobs.ops.diagnosis import Inputs, bundles, diagnose, gather
from jaxobs.ops.diagnosis.bundles import archives, staging
from jaxobs.ops.diagnosis.bundles.masking import masked
from jaxobs.ops.diagnosis.gathering import bounded
from jaxobs.ops.local_prometheus import LocalPrometheus
from tools.ports import free_port

LOG = "2026-01-31 09:00:00 INFO step 1\nOSError: [Errno 28] No space left on device: '/ckpt'\n"
ELSEWHERE = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "LANG": "C", "PYTHONHASHSEED": "4711", "PYTHONUTF8": "0"}
SCENARIOS = {f"{each.family}/{each.name}": each for each in scenarios()}


def replayed(path: Path, folder: Path) -> bytes:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "jaxobs", "diagnose", "--json", "--bundle", str(path)]
    variables = environment(PYTHONPATH=str(ROOT), **ELSEWHERE)
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, timeout=120, check=False)
    assert done.stderr == b""
    return done.stdout


def made(folder: Path, name: str = "incident.tar.gz") -> Path:
    (folder / "train.log").write_text(LOG, encoding="utf-8")
    path = folder / name
    bundles.write(Inputs(logs=(str(folder / "train.log"),)), str(path), now=EPOCH)
    return path


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]


def changed(path: Path, change: Callable[[tarfile.TarFile, dict[str, bytes]], object]) -> Path:
    """A bundle whose entries were changed: `change` may also add some itself."""
    entries = contents(path)
    with tarfile.open(path, "w:gz") as archive:
        change(archive, entries)
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def rewritten(of: dict[str, bytes], **fields: Any) -> None:
    of["manifest.json"] = json.dumps(json.loads(of["manifest.json"]) | fields).encode()


def refusal(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["diagnose", "--bundle", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


# ------------------------------------------------------------------------------------------------ the same everywhere


@pytest.mark.parametrize("name", list(SCENARIOS)[::6])
def test_a_bundle_says_what_its_sources_said(name: str, tmp_path: Path) -> None:
    bundle = tmp_path / "incident.zip"
    with laid_out(SCENARIOS[name], tmp_path) as inputs:
        direct = bundles.as_text(diagnose(gather(inputs, now=EPOCH, timeout=60.0)))
        written = bundles.write(inputs, str(bundle), now=EPOCH, timeout=60.0)
    with bundles.opened(str(bundle)) as opened:
        assert opened.recorded == direct
        assert bundles.as_text(opened.diagnosis()) == direct
    assert bundles.as_text(written.diagnosis) == direct


def test_equal_evidence_gives_equal_bytes(tmp_path: Path) -> None:
    for ending in ("tar.gz", "zip"):
        first = made(tmp_path, f"first.{ending}").read_bytes()
        os.utime(tmp_path / "train.log", (1, 1))
        assert made(tmp_path, f"second.{ending}").read_bytes() == first
        bundles.write(Inputs(logs=(str(tmp_path / "train.log"),)), str(tmp_path / f"third.{ending}"), now=EPOCH + 1)
        assert (tmp_path / f"third.{ending}").read_bytes() != first


PROGRAM = """
import logging, sys, time
import jax, jax.numpy as jnp
import jaxobs
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
handle = jaxobs.start(port=int(sys.argv[1]), event_log=sys.argv[2], metrics_file=sys.argv[3], metrics_interval=1)
step = jax.jit(lambda w, x: w - 0.1 * jnp.log(x))
w = jnp.ones(4)
for number in range(1, 100_000):
    with jaxobs.step("train"):
        w = step(w, jnp.float32(1 if number < 20 else -1))
    jaxobs.watch(loss=w.sum())
    logging.info("step %d", number)
    time.sleep(0.05)
"""


@pytest.mark.slow
def test_a_real_incident_elsewhere(tmp_path: Path) -> None:
    """A process that runs, a Prometheus that scrapes it, its event log, metrics and log; replayed when all is gone."""
    program("prometheus")
    port, folder = free_port(), tmp_path / "here"
    folder.mkdir()
    paths = [str(folder / name) for name in ("events.jsonl", "metrics.prom", "worker-0.log")]
    target = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", PROGRAM, str(port), *paths[:2]]
    variables = environment(PYTHONPATH=str(ROOT))
    with open(paths[2], "wb") as log:
        process = subprocess.Popen(command, env=variables, stderr=log, stdout=log)
    try:
        with LocalPrometheus(f"{target}/metrics", scrape_seconds=1) as prometheus:
            known = Inputs(targets=(target,), prometheus=(prometheus.url,))

            def sees_it() -> bool:
                seen = gather(known)
                shown = {(each.source, each.name) for each in seen.observations}
                return {(target, "nonfinite:loss"), (prometheus.url, "jax_nonfinite_total")} <= shown

            until(sees_it, lambda: (process.poll(), Path(paths[2]).read_text()[-2000:]))
            sources = [f"--event-log={paths[0]}", f"--metrics-file={paths[1]}", f"--log={paths[2]}"]
            bundle = tmp_path / "incident.tar.gz"
            asked = [*sources, f"--target={target}", f"--prometheus={prometheus.url}"]
            assert cli.main(["bundle", *asked, "-o", str(bundle)]) == 0
    finally:
        process.kill()
        process.wait()
    shutil.rmtree(folder)
    text = contents(bundle)["diagnosis.json"]
    body = json.loads(text)
    assert [each["id"] for each in body["causes"]][:1] == ["nonfinite_values"]
    assert body["missing"] == []
    manifest = json.loads(contents(bundle)["manifest.json"])
    assert len(manifest["files"]) == 3
    assert len(manifest["answers"]) > 10
    assert replayed(bundle, tmp_path / "elsewhere") == text


def test_another_process_elsewhere(tmp_path: Path) -> None:
    bundle = made(tmp_path)
    (tmp_path / "train.log").unlink()
    text = replayed(bundle, tmp_path / "elsewhere")
    assert text == contents(bundle)["diagnosis.json"]
    assert json.loads(text)["causes"][0]["id"] == "disk_full"


# ---------------------------------------------------------------------------------------------------- what is in it


def test_it_is_for_its_owner_alone_and_names_no_folder(tmp_path: Path) -> None:
    """Two logs of one name are told apart by as little of their paths as differs."""
    paths = [tmp_path / "secret-project" / worker / "train.log" for worker in ("a", "b")]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text(LOG, encoding="utf-8")
    bundle = tmp_path / "incident.tar.gz"
    written = bundles.write(Inputs(logs=tuple(map(str, paths))), str(bundle))
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert [each.name for each in written.manifest.files] == ["a/train.log", "b/train.log"]
    assert not [name for name, data in contents(bundle).items() if b"secret-project" in data]
    assert list(tmp_path.glob("*.draft")) == []


def test_secrets_are_masked(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(f"connecting with password=hunter2hunter2\n{LOG}", encoding="utf-8")
    bundle = tmp_path / "incident.tar.gz"
    target = f"http://me:hunter2hunter2@127.0.0.1:{free_port()}"
    log = str(tmp_path / "train.log")
    written = bundles.write(Inputs(logs=(log,), targets=(target,), prometheus=(target,)), str(bundle), timeout=1.0)
    assert not [name for name, data in contents(bundle).items() if b"hunter2" in data]
    assert written.manifest.masked == 1
    assert written.diagnosis.causes[0].id == "disk_full"
    assert f"password={14 * '*'}\n{LOG}".encode() in contents(bundle)["evidence/0000"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"Authorization: Bearer abcdefghijklmnop1234", 1),
        (b'{"api_key": "0123456789abcdef", "step": 3}', 1),
        (b"https://user:pa55word@bucket.example/x", 1),
        (b"key AKIAIOSFODNN7EXAMPLE and hf_abcdefghijklmnopqrstuvwxyz0123456789", 2),
        (b" " * (2**20 - 3) + b"password=hunter22 eyJhbGciOiJIUzI1NiJ9.e30.abcdefghijkl", 2),
        (b"step 3: loss 0.5, 12 tokens, basic blocks, secret sauce", 0),
        (b"http://127.0.0.1:9464/metrics and user@example.com", 0),
        (b'MountVolume.SetUp failed for volume "gcp-credentials" : secret "user-gcp-sa" not found', 0),
        (b"tokenizer: sentencepiece, keys: ('a', 'b'), password: ", 0),
    ],
)
def test_what_is_masked(text: bytes, count: int) -> None:
    hidden, found = masked(text)
    assert (found, len(hidden)) == (count, len(text))
    assert (hidden == text) == (count == 0)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_long_file_is_kept_as_far_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", 4000)
    text = "".join(f"step {number}\n" for number in range(5000)) + LOG
    log = tmp_path / "train.log"
    log.write_bytes(pack(text.encode()))
    bundle = tmp_path / "incident.tar.gz"
    direct = bundles.as_text(diagnose(gather(Inputs(logs=(str(log),)))))
    bundles.write(Inputs(logs=(str(log),)), str(bundle))
    with bundles.opened(str(bundle)) as opened:
        assert bundles.as_text(opened.diagnosis()) == opened.recorded == direct
    assert "were left out" in direct
    assert sum(map(len, contents(bundle).values())) < 20_000


def test_a_long_event_log_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MOST_EVENT_LOG", 1020)
    log = tmp_path / "events.jsonl"
    log.write_text('{"event": "step", "time": "2026-01-31T09:00:00Z"}\n' * 100, encoding="utf-8")
    bundle = tmp_path / "incident.tar.gz"
    bundles.write(Inputs(event_logs=(str(log),)), str(bundle))
    assert contents(bundle)["evidence/0000"].endswith(b"}\n")
    with bundles.opened(str(bundle)) as opened:
        assert "only its first 1,000 bytes of 5,000 are in the bundle" in opened.recorded
        assert bundles.as_text(opened.diagnosis()) == opened.recorded


def test_a_full_bundle_leaves_out_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MOST_BYTES", staging._RESERVED + len(LOG) + 5)
    paths = [tmp_path / name for name in ("a.log", "b.log")]
    for each in paths:
        each.write_text(LOG, encoding="utf-8")
    bundle = tmp_path / "incident.tar.gz"
    bundles.write(Inputs(logs=tuple(map(str, paths))), str(bundle))
    with bundles.opened(str(bundle)) as opened:
        assert "log b.log: it was left out, because the bundle is full" in opened.recorded
        assert bundles.as_text(opened.diagnosis()) == opened.recorded


# ------------------------------------------------------------------------------------------------------ what is refused


Tampering = Callable[[tarfile.TarFile, dict[str, bytes]], object]


def adding(name: str, data: bytes = b"?") -> Tampering:
    return lambda archive, entries: entries.update({name: data})


def without(name: str) -> Tampering:
    return lambda archive, entries: entries.pop(name)


def edited(name: str, edit: Callable[[bytes], bytes]) -> Tampering:
    return lambda archive, entries: entries.update({name: edit(entries[name])})


def special(kind: bytes, target: str = "") -> Tampering:
    info = tarfile.TarInfo("evidence/0001")
    info.type, info.linkname = kind, target
    return lambda archive, entries: archive.addfile(info)


def claiming(**fields: Any) -> Tampering:
    return lambda archive, entries: rewritten(entries, **fields)


def of_file(**fields: Any) -> Tampering:
    """Changes what the manifest says of the log; `HEAD` is the entry with its beginning."""

    def tamper(archive: tarfile.TarFile, entries: dict[str, bytes]) -> None:
        (one,) = json.loads(entries["manifest.json"])["files"]
        wanted = {name: one["head"] if value == "HEAD" else value for name, value in fields.items()}
        rewritten(entries, files=[one | wanted])

    return tamper


def _twice(archive: tarfile.TarFile, entries: dict[str, bytes]) -> None:
    info = tarfile.TarInfo("diagnosis.json")
    info.size = 2
    archive.addfile(info, io.BytesIO(b"{}"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edited("evidence/0000", lambda data: data.replace(b"28", b"30")), "the entry `evidence/0000` was changed"),
        (without("evidence/0000"), "the entry `evidence/0000` is missing"),
        (adding("evidence/0009"), "the entry `evidence/0009` is not in the manifest"),
        (without("manifest.json"), "it has no `manifest.json`"),
        (adding("evidence/../../../0001"), "the entry `evidence/../../../0001` has a name that no entry"),
        (adding("/tmp/0001"), "the entry `/tmp/0001` has a name that no entry"),
        (special(tarfile.SYMTYPE, "/etc/passwd"), "the entry `evidence/0001` is a symbolic link"),
        (special(tarfile.LNKTYPE, "manifest.json"), "the entry `evidence/0001` is a link"),
        (special(tarfile.FIFOTYPE), "the entry `evidence/0001` is a pipe"),
        (adding(f"evidence/{'x' * 300}"), "is an extension of the format"),
        (_twice, "the entry `diagnosis.json` is there twice"),
        (claiming(schema_version=2, versions={"jaxobs": "9.1.0"}), "has schema version 2; this jaxobs"),
        (claiming(format="something else"), "has another format"),
        (edited("manifest.json", lambda data: data[:50]), "the entry `manifest.json` is not valid JSON"),
        (of_file(size=2**60), "`manifest.json` is damaged: the file 'train.log' is out of range"),
        (of_file(kind="event-log", size=2**40, tail="HEAD"),
         "`manifest.json` is damaged: the event log 'train.log' has no middle"),
        (of_file(head="/etc/passwd"), "'/etc/passwd' is not an entry with evidence"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_was_tampered_with_is_refused(
    change: Tampering, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    bundle = changed(made(tmp_path), change)
    before = sorted(tmp_path.rglob("*"))
    assert said in refusal(bundle, capsys)
    assert sorted(tmp_path.rglob("*")) == before


def test_too_many_entries_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 2)
    assert "it has more than 2 entries" in refusal(made(tmp_path), capsys)


@pytest.mark.parametrize("kind", ["symbolic link", "encrypted", "name", "damaged"])
def test_zip_files_are_checked_too(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = made(tmp_path, "incident.zip")
    if kind == "damaged":
        data = bytearray(bundle.read_bytes())
        data[len(data) // 3] ^= 0xFF
        bundle.write_bytes(data)
        assert "incident.zip" in refusal(bundle, capsys)
        return
    with zipfile.ZipFile(bundle, "a") as archive:
        info = zipfile.ZipInfo("../0001" if kind == "name" else "evidence/0001")
        info.external_attr = ((stat.S_IFLNK if kind == "symbolic link" else stat.S_IFREG) | 0o600) << 16
        archive.writestr(info, b"/etc/passwd")
        if kind == "encrypted":
            info.flag_bits |= 1
    said = {"name": "`../0001` has a name", "encrypted": "is encrypted"}.get(kind, "is a symbolic link")
    assert said in refusal(bundle, capsys)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_half_a_bundle_is_refused(share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("incident.tar.gz", "incident.zip"):
        bundle = made(tmp_path, name)
        data = bundle.read_bytes()
        bundle.write_bytes(data[: int(share * len(data))])
        assert str(bundle) in refusal(bundle, capsys)


def test_what_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of another kind, a directory, nothing at all."""
    (tmp_path / "a").write_bytes(b"hello")
    (tmp_path / "b").write_bytes(gzip.compress(b"hello" * 1000))
    os.mkfifo(tmp_path / "c")
    for name, said in (("a", "neither"), ("b", "damaged"), ("c", "not a regular file"), ("d", "No such file")):
        assert said in refusal(tmp_path / name, capsys)
    assert "not a regular file" in refusal(tmp_path, capsys)


@pytest.mark.parametrize("text", [b"{}\n", b"\xff\xfe", b'"\\ud800"'])
def test_another_verdict_is_noted(text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(archive: tarfile.TarFile, entries: dict[str, bytes]) -> None:
        entries["diagnosis.json"] = text
        said = json.loads(entries["manifest.json"])["entries"]
        said["diagnosis.json"] = {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        rewritten(entries, entries=said)

    bundle = changed(made(tmp_path), change)
    assert cli.main(["diagnose", "--bundle", str(bundle)]) == 1
    captured = capsys.readouterr()
    assert "disk_full" in captured.out
    assert "says something else" in captured.err
