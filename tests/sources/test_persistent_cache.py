"""The truth about the persistent cache: what hit, what was not stored and why, which part of a key differs."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import paths
from helpers.run_programs import environment

from jaxobs.facts.compilations import KEY_PARTS
from jaxobs.internals import cache_lookups
from jaxobs.internals.cache_lookups import Lookup
from jaxobs.reasons import cache_records
from tools.ports import free_port
from tools.quick_xla import quick

TESTS = str(paths.TESTS)


def start(program: str, *arguments: object, flags: str = "") -> subprocess.Popen[str]:
    """Starts a program between `begin` and `end` of cache_program.py."""
    whole = "import sys\nfrom helpers.cache_program import *\n" + textwrap.dedent(program) + "\nend()\n"
    variables = environment(PYTHONPATH=TESTS, JAXOBS_RAISE_INTERNAL_ERRORS="1", XLA_FLAGS=quick(*flags.split()))
    command = [sys.executable, "-c", whole, *map(str, arguments)]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The report that it printed."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-3000:]
    report: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert report["internal_errors"] == {}
    return report


def run(program: str, *arguments: object, flags: str = "") -> dict[str, Any]:
    """Runs it to its end."""
    return finish(start(program, *arguments, flags=flags))


def entries(directory: Path) -> list[str]:
    """Keys of the entries on disk."""
    return sorted(path.name.removesuffix("-cache") for path in directory.glob("*-cache"))


# ------------------------------------------------------------------------------------- why it was not stored


def test_every_compile_that_was_not_stored_has_its_reason(tmp_path: Path) -> None:
    """Stored, too fast, too small, host callbacks: as JAX's own log lines say, with the margin."""
    report = run(
        """
        begin(sys.argv[1])
        step(4)
        step(5, say=True)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 10**9)
        step(6)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1000.0)
        step(7)
        """,
        tmp_path,
    )
    stored, calling, small, fast = report["compilations"]
    assert [each["cache"] for each in report["compilations"]] == ["miss"] * 4
    assert (stored["uncached_because"], stored["uncached_detail"]) == (None, None)
    refused = "callbacks" in report["true_reasons"]  # from JAX 0.11 on it is stored
    assert calling["uncached_because"] == ("callbacks" if refused else None)
    assert not refused or "1 host callback," in calling["uncached_detail"]
    assert small["uncached_because"] == "too_small" and "is 1,000,000,000" in small["uncached_detail"]
    (size,) = report["true_sizes"]
    about = int(small["uncached_detail"].split(" bytes")[0].rpartition(" ")[2].replace(",", ""))
    assert about == pytest.approx(size, rel=0.05), "serialising twice gives nearly the same"
    assert fast["uncached_because"] == "too_fast"
    assert fast["uncached_detail"].startswith("Compiled in ")
    assert fast["uncached_detail"].endswith("s; jax_persistent_cache_min_compile_time_secs is 1000 s.")
    assert report["unsaved"] == report["true_reasons"] and len(report["unsaved"]) == 2 + refused
    assert report["true_compiles"] == 4
    assert entries(tmp_path) == sorted(each["key"] for each in report["lookups"][: 2 - refused])
    assert all(each["reason"] is None for each in report["lookups"]), "there is no event log"


def test_an_entry_that_another_process_stored_meanwhile_is_no_error(tmp_path: Path) -> None:
    """An entry is a little larger or smaller than ours would have been; a much smaller one is a part."""
    file = tmp_path / "jit_f-key-cache"
    file.write_bytes(b"x" * 10_000)
    for ours, wanted in ((10_000, None), (10_020, None), (9_980, None), (50_000, "error")):
        lookup = Lookup()
        lookup.file, lookup.before, lookup.writing_bytes = str(file), None, ours
        found = cache_lookups._why_unsaved(lookup, None)
        assert (found and found[0]) == wanted, ours


def test_a_write_that_fails_is_no_write(tmp_path: Path) -> None:
    """A partial entry, an entry that cannot be read, a directory that is gone: told with JAX's own error."""
    report = run(
        """
        import resource, shutil
        begin(sys.argv[1])
        step(4)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        step(5)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        step(5)
        shutil.rmtree(sys.argv[1])
        step(6)
        """,
        tmp_path / "cache",
    )
    stored, partial, unreadable, gone = report["compilations"]
    assert stored["uncached_because"] is None
    assert [each["uncached_because"] for each in (partial, unreadable, gone)] == ["error"] * 3
    assert report["unsaved"] == {"error": 3}
    assert len(report["warnings"]) == 3, report["warnings"]
    assert "Only 1,000 of " in partial["uncached_detail"] and "OSError: [Errno 27]" in partial["uncached_detail"]
    assert "could not be used: " in unreadable["uncached_detail"]
    for each in (partial, unreadable):
        assert f"delete {tmp_path}/cache/{report['lookups'][1]['key']}-cache." in each["uncached_detail"]
    assert gone["uncached_detail"].startswith("It could not be written: FileNotFoundError: ")
    for detail, warning in zip((partial, unreadable, gone), report["warnings"], strict=True):
        assert " ".join(warning.split("': ", 1)[1].split())[:60] in detail["uncached_detail"]


def test_a_cache_that_is_off_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = run(
        """
        from jax.experimental.compilation_cache import compilation_cache
        begin(None)
        step(4)
        compilation_cache.reset_cache()
        jax.config.update("jax_enable_compilation_cache", False)
        jax.config.update("jax_compilation_cache_dir", sys.argv[1])
        step(5)
        jax.config.update("jax_enable_compilation_cache", True)
        step(6)
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", sys.argv[1] + "/file/inside")
        step(7)
        step(8)
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", sys.argv[1] + "/good")
        step(9)
        jax.config.update("jax_enable_compilation_cache", False)
        step(10)
        """,
        tmp_path,
    )
    told = report["compilations"]
    assert [each["cache"] for each in told] == ["disabled"] * 5 + ["miss"] * 2
    assert [each["uncached_because"] for each in told] == ["disabled"] * 5 + [None] * 2
    details = [each["uncached_detail"] for each in told]
    assert "has no directory" in details[0]
    assert "jax_enable_compilation_cache is False" in details[1]
    assert "reset_cache()" in details[2]
    assert f"{tmp_path}/file/inside could not be opened: NotADirectoryError" in details[3]
    assert details[4] == details[3], "JAX warns once; the second knows it too"
    assert report["unsaved"] == {}, "the metric counts only while the cache is on"
    assert report["true_reasons"]["disabled"] >= 3
    assert len(entries(tmp_path / "good")) == 2, "JAX decided once, so that switching off later changes nothing"


@pytest.mark.slow
def test_only_the_first_process_writes(tmp_path: Path) -> None:
    """Two processes of a job: the second one's compiles are not stored, and it says so."""
    port = free_port()
    program = """
        jax.distributed.initialize(f"127.0.0.1:{sys.argv[3]}", 2, int(sys.argv[4]))
        begin(sys.argv[1], sys.argv[2])
        step(4)
        """
    directories = tmp_path / "cache", tmp_path / "events.jsonl"
    for round in range(2):
        both = [start(program, *directories, port + round, index) for index in range(2)]
        first, second = (finish(process) for process in both)
        result = "miss" if round == 0 else "hit"
        assert [each["result"] for each in first["lookups"]] == [result]
        (compilation,) = second["compilations"]
        assert (compilation["cache"], compilation["uncached_because"]) == ("miss", "not_writer")
        assert compilation["uncached_detail"] == "This is process 1 of 2; in JAX only process 0 writes."
        assert second["unsaved"] == second["true_reasons"] == {"not_writer": 1}
        assert first["unsaved"] == {}
    (lookup,) = second["lookups"]
    assert "compiled the same program" in lookup["reason"] and "but did not store it" in lookup["reason"]
    assert len(entries(tmp_path / "cache")) == 1


# ------------------------------------------------------------------------------------------ what differs


COLD = """
    begin(sys.argv[1], sys.argv[2])
    for size in (4, 5):
        step(size)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1000.0)
    step(6)
    """


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A directory with a cache and an event log that a first process left, and its report."""
    directory = tmp_path_factory.mktemp("cold")
    return directory, run(COLD, directory / "cache", directory / "events.jsonl")


@pytest.fixture
def left(cold: tuple[Path, dict[str, Any]], tmp_path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The cache as the first process left it, put back; the path stays, as JAX may hash it."""
    directory, report = cold
    shutil.copytree(directory, tmp_path / "kept")
    yield directory, report
    shutil.rmtree(directory)
    shutil.copytree(tmp_path / "kept", directory)


def test_the_sidecar_holds_the_parts_that_jax_hashes(cold: tuple[Path, dict[str, Any]]) -> None:
    """Each digest is the beginning of the one that JAX logs; no value of an array is in the file."""
    directory, report = cold
    records = cache_records.read(directory)
    assert [each.key for each in records] == [each["key"] for each in report["lookups"]]
    assert [each.stored for each in records] == [True, True, False]
    logged = [report["digests"][at : at + 8] for at in range(0, 24, 8)]
    for record, digests in zip(records, logged, strict=True):
        mine = [record.parts[part] for part in KEY_PARTS]
        assert mine == [digest[: len(own)] for digest, own in zip(digests, mine, strict=True)]
        assert (record.pid, record.directory) == (report["pid"], str(directory / "cache"))
    assert records[0].arguments == "(tensor<4x4xf32>) -> tensor<4x4xf32>"
    assert records[0].values["devices"] == "1 x cpu, of 1"
    assert records[0].compile_seconds is not None and 0 < records[0].compile_seconds < 30
    assert entries(directory / "cache") == sorted(each.key for each in records[:2])


def test_a_warm_start_hits_and_what_it_saves_is_known_in_fractions(left: tuple[Path, dict[str, Any]]) -> None:
    """Compile seconds of the first process, less the time to load; the file does not grow with each start."""
    directory, before = left
    records = cache_records.read(directory)
    warm = run(COLD, directory / "cache", directory / "events.jsonl")
    assert [each["result"] for each in warm["lookups"]] == ["hit", "hit", "miss"]
    assert warm["true_compiles"] == 1
    for lookup, record in zip(warm["lookups"][:2], records, strict=False):
        assert record.compile_seconds is not None
        saved = record.compile_seconds - lookup["seconds"]
        assert lookup["saved_seconds"] == pytest.approx(max(0.0, saved)) and saved < 30
    assert warm["saved_seconds"] == pytest.approx(sum(each["saved_seconds"] for each in warm["lookups"][:2]))
    again = warm["lookups"][2]
    assert (again["differs"], again["key"]) == ([], records[2].key)
    assert f"process {before['pid']} compiled the same program" in again["reason"]
    assert "but did not store it. Compiled in " in again["reason"] and "is 1000 s." in again["reason"]
    assert len(cache_records.read(directory)) == 4


def test_changed_flags_are_named(left: tuple[Path, dict[str, Any]]) -> None:
    directory, before = left
    one = run(COLD, directory / "cache", directory / "events.jsonl", flags="--xla_cpu_enable_fast_math=true")
    for lookup in one["lookups"]:
        assert lookup["result"] == "miss" and "flags" in lookup["differs"] and "program" not in lookup["differs"]
        assert f"`{lookup['function']}` missed; process {before['pid']} compiled it" in lookup["reason"]
        assert "with a different XLA flag: `--xla_cpu_enable_fast_math=true` is new." in lookup["reason"]
    other = run(
        COLD, directory / "cache", directory / "events.jsonl",
        flags="--xla_cpu_enable_fast_math=false --xla_dump_hlo_as_text=false",
    )  # fmt: skip
    assert "fast_math=" in other["lookups"][0]["reason"] and "dump" not in other["lookups"][0]["reason"]


def test_other_devices_are_named(left: tuple[Path, dict[str, Any]]) -> None:
    directory, _ = left
    report = run(
        COLD, directory / "cache", directory / "events.jsonl", flags="--xla_force_host_platform_device_count=4"
    )
    for lookup in report["lookups"]:
        assert lookup["differs"] == ["devices"]
        assert "set of devices: `1 x cpu, of 1` then, `1 x cpu, of 4` now." in lookup["reason"]


def test_program_options_and_what_became_of_the_entry_are_told_apart(left: tuple[Path, dict[str, Any]]) -> None:
    directory, before = left
    first, second = (record.key for record in cache_records.read(directory)[:2])
    (directory / "cache" / f"{first}-cache").unlink()
    with open(directory / "cache" / f"{second}-cache", "r+b") as file:
        file.truncate(100)
    report = run(
        """
        from jax.experimental.compilation_cache import compilation_cache
        begin(sys.argv[1], sys.argv[2])
        step(4)
        step(5)
        step(4, 2.0)
        step(7)
        step(4, compiler_options={"xla_cpu_enable_fast_min_max": True})
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", sys.argv[1] + "-other")
        step(5)
        """,
        directory / "cache",
        directory / "events.jsonl",
    )
    deleted, truncated, program, arguments, options, elsewhere = report["lookups"]
    assert [each["result"] for each in report["lookups"]] == ["miss"] * 6
    assert report["true_compiles"] == 6
    process = f"process {before['pid']}"
    assert deleted["differs"] == truncated["differs"] == []
    assert deleted["reason"].startswith(f"`{deleted['function']}` missed: {process} stored the same program ")
    assert deleted["reason"].endswith("its entry has since been deleted.")
    assert f"{process} compiled the same program" in truncated["reason"]
    assert "Its entry is there but could not be used" in truncated["reason"]
    assert report["unsaved"] == {"error": 1}
    assert program["differs"] == ["program"] and "for the same argument types" in program["reason"]
    assert arguments["differs"] == ["program"]
    assert "`(tensor<7x7xf32>) -> tensor<7x7xf32>` now." in arguments["reason"]
    assert options["differs"] == ["options"]
    assert "with a different compile option: `xla_cpu_enable_fast_min_max` was " in options["reason"]
    assert options["reason"].endswith(" and is `True`.")
    if elsewhere["differs"]:  # up to JAX 0.10 the directory's name is hashed
        assert elsewhere["differs"] == ["options"] and "this version of JAX hashes its name" in elsewhere["reason"]
    else:
        assert "in another directory" in elsewhere["reason"]


def test_a_sidecar_that_cannot_be_written_costs_reasons_and_nothing_else(tmp_path: Path) -> None:
    """A directory in its place: counted, and the program and its other facts go on."""
    (tmp_path / cache_records.FILE).mkdir()
    program = """
        begin(sys.argv[1], sys.argv[2])
        step(4)
        step(4)
        """
    process = start(program, tmp_path / "cache", tmp_path / "events.jsonl")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    report = json.loads(out.splitlines()[-1])
    assert [each["result"] for each in report["lookups"]] == ["miss", "hit"]
    assert report["lookups"][1]["saved_seconds"] > 0, "this process compiled it itself"
    assert report["dropped"] == {"cache_keys": 2}
    assert report["internal_errors"] == {"cache_keys": 2}
    assert Counter(line.split()[0] for line in err.splitlines() if "jaxobs failed" in line).total() <= 1


def test_the_environment_beyond_hashed_flags_stays_here(cold: tuple[Path, dict[str, Any]]) -> None:
    """No variable and no path of the program is in the sidecar but the cache's directory."""
    text = (cold[0] / cache_records.FILE).read_text()
    assert os.environ["PATH"] not in text and TESTS not in text


# ------------------------------------------------------------------------------------------- its size


@pytest.fixture
def sampled(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The source that looks at the directory, and a way to let it look at another."""
    from jaxobs import internals
    from jaxobs.sources.persistent_cache import PersistentCache
    from jaxobs.state import store

    found: list[str | None] = [str(tmp_path)]
    monkeypatch.setattr(internals, "persistent_cache", lambda: (True, found[0]))
    source = PersistentCache(store.current())

    def sample(directory: str | None = str(tmp_path), ticks: int = 1) -> tuple[int | None, int | None, int | None]:
        found[0] = directory
        for _ in range(ticks):
            source.sample()
        cache = store.current().snapshot().cache
        return cache.bytes, cache.entries, cache.grown_bytes

    return sample


def age(directory: Path) -> None:
    """Makes its latest change an old one."""
    os.utime(directory, (1e9, 1e9 + os.stat(directory).st_ino % 1000))


def test_size_entries_and_growth_are_those_of_the_directory(sampled: Any, tmp_path: Path) -> None:
    """Entries only, whatever else lies there; what came and went is seen; a directory that is gone is out of sight."""
    assert sampled() == (0, 0, 0)
    for number in range(3):
        (tmp_path / f"jit_f-{number}-cache").write_bytes(b"x" * 100)
        (tmp_path / f"jit_f-{number}-atime").write_bytes(b"x" * 8)
    (tmp_path / "xla_gpu_per_fusion_autotune_cache_dir").mkdir()
    assert sampled() == (300, 3, 300)
    (tmp_path / "jit_f-0-cache").unlink()
    assert sampled() == (200, 2, 200)
    assert sampled(str(tmp_path / "other")) == (None, None, None)
    assert sampled() == (200, 2, 0), "growth is counted from when the directory is first looked at"
    for remote in ("gs://bucket/cache", "s3://bucket/cache", None):
        assert sampled(remote) == (None, None, None)


def test_many_files_are_looked_at_bit_by_bit(sampled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick ends after its time; the figure is told when the round is complete, and not at all above the bound."""
    from jaxobs.sources import persistent_cache

    monkeypatch.setattr(persistent_cache, "SLICE", 0.0)
    for number in range(300):
        (tmp_path / f"jit_f-{number}-cache").write_bytes(b"x")
    assert sampled() == (None, None, None)
    assert sampled(ticks=5) == (300, 300, 0)
    monkeypatch.setattr(persistent_cache, "MOST_FILES", 100)
    (tmp_path / "jit_f-new-cache").touch()
    assert sampled(ticks=6) == (None, None, None)


def test_a_directory_that_did_not_change_is_not_looked_through(sampled: Any, tmp_path: Path) -> None:
    entry = tmp_path / "jit_f-0-cache"
    entry.write_bytes(b"x" * 100)
    age(tmp_path)
    assert sampled() == (100, 1, 0)
    with open(entry, "ab") as file:
        file.write(b"x")
    assert sampled() == (100, 1, 0)
    age(tmp_path.parent)
    (tmp_path / "jit_f-1-cache").write_bytes(b"x")
    assert sampled() == (102, 2, 2)
