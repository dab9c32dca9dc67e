"""`jaxobs cache inspect`: what a cache directory holds and what is wrong with it, told without touching it."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT

from jaxobs import cli
from jaxobs.compile_cache import entries
from jaxobs.reasons import cache_records

PROGRAM = """
import jax, jax.numpy as jnp
@jax.jit
def wide_step(w):
    for _ in range(5):
        w = jnp.tanh(w @ w) + jnp.sin(w)
    return w
wide_step(jnp.ones((16, 16))).block_until_ready()
"""
HEX = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that JAX wrote, with its event log beside it."""
    folder = tmp_path_factory.mktemp("made")
    script = folder / "program.py"
    script.write_text(PROGRAM)
    variables = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax-1.2"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", folder / "events.jsonl", script]
    subprocess.run(command, env=variables, check=True, capture_output=True, timeout=120)
    return folder


@pytest.fixture
def cache(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may spoil."""
    copy = tmp_path / "jax-1.2"
    shutil.copytree(made / "jax-1.2", copy)
    copy.chmod(0o755)
    return copy


def entry_of(cache: Path, function: str) -> Path:
    return next(iter(cache.glob(f"jit_{function}-*-cache")))


def handmade(function: str, seconds: int = 0, digits: str = HEX) -> tuple[str, bytes]:
    """Returns name and contents of an entry as JAX would write it, around something that is no executable."""
    return f"jit_{function}-{digits}-cache", zlib.compress(seconds.to_bytes(4, "big") + b"program")


def inspected(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = cli.main(["cache", "inspect", "--json", *map(str, arguments)])
    return code, json.loads(capsys.readouterr().out)


def kinds(body: dict[str, Any], severity: str = "warning") -> list[str]:
    return [each["kind"] for each in body["findings"] if each["severity"] == severity]


def test_a_sound_cache_is_listed_with_the_versions_of_its_writers(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import jaxlib

    directory = made / "jax-1.2"
    code, body = inspected(capsys, directory, "--event-log", made / "events.jsonl")
    files = list(directory.glob("*-cache"))
    assert code == 0
    assert body["findings"] == []
    assert body["bytes"] == sum(file.stat().st_size for file in files)
    assert [each["file"] for each in body["entries"]] == [
        file.name for file in sorted(files, key=lambda file: (-file.stat().st_size, file.name))
    ]
    found = {each["function"]: each for each in body["entries"]}
    assert found["wide_step"]["state"] == "sound"
    assert found["wide_step"]["stored_under"] == str(directory)
    assert {each["jaxlib"] for each in body["entries"]} == {jaxlib.__version__}
    (made / cache_records.FILE).rename(made / "away")
    try:
        _, body = inspected(capsys, directory, "--event-log", made / "events.jsonl")
    finally:
        (made / "away").rename(made / cache_records.FILE)
    assert {each["jaxlib"] for each in body["entries"]} == {jaxlib.__version__}, "from the event log alone"
    _, body = inspected(capsys, directory)
    assert {each["jaxlib"] for each in body["entries"]} == {"unknown"}


def contents_of(folder: Path) -> dict[Path, tuple[bytes, int, int]]:
    """Returns each file's bytes, mode and time of writing; not when it was read."""
    return {file: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode) for file in folder.iterdir()}


def test_broken_entries_are_named_with_the_command_that_deletes_them(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = entry_of(cache, "wide_step")
    torn.write_bytes(torn.read_bytes()[:-1])
    empty, other = cache / f"jit_empty-{HEX}-cache", cache / f"jit_other-{HEX}-cache"
    empty.touch()
    other.write_bytes(b"hello")
    bare = cache / f"jit_bare-{HEX}-cache"
    bare.write_bytes(zlib.compress(b"\0\0\0\0"))
    before = contents_of(cache)
    code, body = inspected(capsys, cache)
    assert code == 1
    (complaint,) = [each for each in body["findings"] if each["kind"] == "broken_entries"]
    assert sorted(complaint["files"]) == sorted(map(str, (torn, empty, other, bare)))
    problems = {each["function"]: each["problem"] for each in body["entries"] if each["state"] == "broken"}
    for name, problem in (("wide_step", "truncated"), ("empty", "empty"), ("other", "68 65 6c 6c")):
        assert problem in problems[name]
    assert cli.main(["cache", "inspect", str(cache)]) == 1
    printed = capsys.readouterr().out
    removal = next(line for line in printed.splitlines() if line.strip().startswith("rm -- "))
    assert sorted(removal.split()[2:]) == sorted(map(str, (torn, empty, other, bare)))
    assert contents_of(cache) == before


def test_zstd_is_checked_where_it_can_be_read_and_is_never_called_broken_otherwise(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A frame made by hand, by the format's specification: magic, single segment, size, one raw block."""
    contents = (3).to_bytes(4, "big") + b"program"
    block = (len(contents) << 3 | 1).to_bytes(3, "little") + contents
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x20, len(contents)]) + block
    (cache / f"jit_packed-{HEX}-cache").write_bytes(frame)
    (cache / f"jit_cut-{HEX}-cache").write_bytes(frame[:-3])
    code, body = inspected(capsys, cache)
    found = {each["function"]: each for each in body["entries"]}
    assert found["packed"]["codec"] == "zstd"
    if sys.version_info >= (3, 14) or importlib.util.find_spec("zstandard"):
        assert (found["packed"]["state"], found["packed"]["compile_seconds"]) == ("sound", 3)
        assert found["cut"]["state"] == "broken"
    else:
        assert {found["packed"]["state"], found["cut"]["state"]} == {"unchecked"}
        assert (code, kinds(body)) == (0, [])
        assert "unchecked_entries" in kinds(body, "info")


def test_leftovers_are_told_apart_from_what_jax_and_xla_keep_there(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = entry_of(cache, "wide_step")
    used = time.time() - 3600
    for case in cache.glob("*-cache"):
        stamp = case.with_name(case.name.removesuffix("-cache") + "-atime")
        stamp.write_bytes(int(used * 1e9).to_bytes(8, "little"))
    orphan = cache / f"jit_gone-{HEX}-atime"
    orphan.touch()
    (cache / "x.tmp").write_bytes(b"12345")
    (cache / "notes.txt").touch()
    (cache / ".lockfile").touch()
    autotune = cache / "xla_gpu_per_fusion_autotune_cache_dir"
    autotune.mkdir()
    (autotune / "a").write_bytes(b"123")
    code, body = inspected(capsys, cache)
    assert code == 1
    assert kinds(body) == ["orphaned_files", "temporary_files"]
    assert {each["kind"]: each["files"] for each in body["findings"]}["orphaned_files"] == [str(orphan)]
    assert "other_files" in kinds(body, "info")
    assert [(each["file"], each["bytes"]) for each in body["xla"]] == [(autotune.name, 3)]
    assert body["lock"]["file"] == ".lockfile"
    accessed = next(each["accessed"] for each in body["entries"] if each["file"] == entry.name)
    assert accessed.startswith(time.strftime("%Y-%m-%dT%H:%M", time.gmtime(used)))


def test_what_breaks_a_cache_of_bounded_size_is_told(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", "100")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, body = inspected(capsys, cache)
    assert code == 1
    assert kinds(body) == ["filelock_missing", "missing_access_times", "over_max_size"]
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", "-1")
    assert inspected(capsys, cache)[0] == 0


def test_whoever_may_write_entries_may_run_code(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.chmod(0o777)
    entry_of(cache, "wide_step").chmod(0o664)
    code, body = inspected(capsys, cache)
    told = [each for each in body["findings"] if each["kind"] == "writable_by_others"]
    assert code == 1
    assert ["everybody" in each["summary"] for each in told] == [True, False]
    assert told[1]["files"] == [str(entry_of(cache, "wide_step"))]


UNPRIVILEGED = """
import contextlib, io, json, os, sys
from pathlib import Path
from jaxobs import cli

def inspected():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = cli.main(["cache", "inspect", "--json", str(cache)])
    return code, [each["kind"] for each in json.loads(out.getvalue())["findings"] if each["severity"] == "warning"]

cache = Path(sys.argv[1])
told = [inspected()]
if os.geteuid() == 0:
    os.chown(cache, 65534, 65534)
    for entry in cache.iterdir():
        os.chown(entry, 65534, 65534)
    os.setuid(65534)
for mode, of in ((0, next(cache.iterdir())), (0o555, cache), (0, cache)):
    of.chmod(mode)
    told.append(inspected())
cache.chmod(0o755)
print(json.dumps(told))
"""


def test_what_this_user_may_not_read_or_write_is_told() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        cache = Path(folder) / "jax-1.2"
        cache.mkdir(mode=0o755)
        name, contents = handmade("f")
        (cache / name).write_bytes(contents)
        # The clone may lie in a folder that another user may not read; commands are found by listing theirs.
        shutil.copytree(ROOT / "jaxobs", Path(folder) / "jaxobs", ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, cache], cwd=folder,  # which `-c` imports from
            env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        [0, []], [1, ["unreadable_entries"]], [1, ["unreadable_entries", "not_writable"]], [1, ["unreadable"]]
    ]  # fmt: skip


def test_several_writers_and_another_place_are_information(
    cache: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, body = inspected(capsys, cache)
    moved = [each for each in body["findings"] if each["kind"] == "stored_under_another_name"]
    assert (code, kinds(body, "info")) == (0, ["stored_under_another_name"])
    assert str(made / "jax-1.2") in moved[0]["summary"]
    bare = cache.parent / "cache"
    cache.rename(bare)
    assert "no_namespace" in kinds(inspected(capsys, bare)[1], "info")
    layouts = {each["layout"] for each in body["entries"]}
    name, contents = handmade("older")
    if "pjrt" not in layouts:
        (bare / name).write_bytes(contents)
        assert "mixed_writers" in kinds(inspected(capsys, bare)[1], "info")


def test_what_is_no_cache_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line, said in (("gs://bucket/cache", "gsutil"), ("{}/nowhere", "nowhere"), ("{} --event-log {}/no.jsonl", "")):
        assert cli.main(["cache", "inspect", *line.replace("{}", str(tmp_path)).split()]) == 2
        assert said in capsys.readouterr().err
    code, body = inspected(capsys, tmp_path)
    assert (code, kinds(body, "info")) == (0, ["empty"])
    file = tmp_path / "file"
    file.write_text("x")
    assert (inspected(capsys, file)[0], kinds(inspected(capsys, file)[1])) == (1, ["not_a_directory"])
    code, body = inspected(capsys, f"file://{tmp_path}")
    assert (code, kinds(body)) == (1, ["not_a_cache"])
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / handmade("f")[0]).write_bytes(handmade("f")[1])
    assert kinds(inspected(capsys, tmp_path)[1], "info") == ["nested"]


def test_the_text_is_bounded_and_lists_the_largest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        name, contents = handmade(f"f{number:02}", seconds=7)
        (tmp_path / name).write_bytes(contents + bytes(number))
    assert cli.main(["cache", "inspect", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines() if line.startswith("f") and line[1:3].isdigit()] == [
        f"f{number:02}" for number in range(29, 9, -1)
    ]
    assert "and 10 more functions" in printed
    assert "3m30s" in printed
    cli.main(["cache", "inspect", "--all", str(tmp_path)])
    assert "f00" in capsys.readouterr().out


def test_a_large_entry_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "entry"
    path.write_bytes(zlib.compress((9).to_bytes(4, "big") + bytes(100_000_000)))
    tracemalloc.start()
    try:
        reading = entries.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (reading.state, reading.executable_bytes, reading.compile_seconds) == ("sound", 100_000_000, 9)
    assert peak < 30_000_000
    monkeypatch.setattr(entries, "MOST_EXECUTABLE", 10_000_000)
    reading = entries.read(path)
    assert (reading.state, reading.problem) == ("broken", "It decompresses to more than 10,000,000 bytes.")


def test_names_of_functions() -> None:
    names = (f"jit_train_step-{HEX}", f"jit__reduce_sum-{HEX}", f"pmap_f-{HEX}", "something-else")
    assert [entries.function_name(name) for name in names] == ["train_step", "_reduce_sum", "f", "something-else"]
