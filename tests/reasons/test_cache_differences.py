"""Why a miss differs from what an earlier process compiled, from records made by hand."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from jaxobs.facts.compilations import KEY_PARTS
from jaxobs.reasons.cache_differences import differing, nearest, sentence
from jaxobs.reasons.cache_records import KeyRecord

NOW = 1_000_000.0
VALUES = {
    "jaxlib": "0.10.1", "backend": "cpu cpu", "flags": ["--xla_a=1", "--xla_b"],
    "options": {"num_replicas": "1", "xla_x": "true"}, "devices": "8 x TPU v4 in 2 processes, of 8",
    "compression": "zlib", "custom_hook": "",
}  # fmt: skip


def record(key: str = "jit_f-1", *, hours: float = 2.0, **fields: Any) -> KeyRecord:
    """Returns a record of another process, so many hours old."""
    parts = {part: f"{part}-1" for part in KEY_PARTS}
    known: dict[str, Any] = {
        "function": "train.f", "key": key, "time": NOW - hours * 3600, "process": "other", "pid": 4711,
        "jax": "0.10.2", "arguments": "(f32) -> f32", "parts": parts, "values": dict(VALUES), "directory": "/cache",
        "compile_seconds": 12.0, "stored": True,
    }  # fmt: skip
    return KeyRecord(**{**known, **fields})


def changed(mine: KeyRecord, **values: Any) -> KeyRecord:
    """Returns the record of an earlier process that differs in these parts."""
    parts = {**mine.parts, **{part: f"{part}-0" for part in values}}
    readable = {**mine.values, **{part: value for part, value in values.items() if part != "program"}}
    return dataclasses.replace(
        mine, key=f"jit_f-{'-'.join(values)}", parts=parts, values=readable, process="other", pid=4711, time=NOW - 7200
    )


ROWS = Path(__file__).with_name("key_differences.txt").read_text().splitlines()
"""Values of an earlier process, each with what is told of them in the next line."""
MINE = record("jit_f-mine", hours=0.0, process="me", pid=1, stored=None, compile_seconds=11.0)


@pytest.mark.parametrize(("values", "told"), [*zip(map(json.loads, ROWS[::2]), ROWS[1::2], strict=True)])
def test_each_part_is_named_with_before_and_after(values: dict[str, Any], told: str) -> None:
    other = changed(MINE, **values)
    assert differing(MINE, other) == tuple(part for part in KEY_PARTS if part in values)
    text = sentence(MINE, other)
    assert text.startswith("`train.f` missed; process 4711 compiled it 2 h ago with ") and text.endswith(".")
    assert told.strip() in text


def test_another_program_is_told_with_what_made_it_another() -> None:
    other = changed(MINE, program=None)
    for mine, change, told in (
        ({}, {}, "(program-0 then, program-1 now) for the same argument types"),
        ({}, {"arguments": "(i8) -> i8"}, "for different arguments: `(i8) -> i8` then, `(f32) -> f32` now."),
        ({}, {"jax": "0.9.0"}, "which JAX 0.9.0 produced; this is JAX 0.10.2."),
        ({"fingerprint": "a"}, {"fingerprint": "a"}, "jax_remove_custom_partitioning_ptr_from_cache_key"),
    ):
        assert told in sentence(dataclasses.replace(MINE, **mine), dataclasses.replace(other, **change))


def test_the_same_key_tells_what_became_of_the_entry() -> None:
    same = dataclasses.replace(record("jit_f-mine"), pid=7)
    assert differing(MINE, same) == ()
    assert sentence(MINE, same) == (
        "`train.f` missed: process 7 stored the same program 2 h ago; its entry has since been deleted."
    )
    assert "has since been evicted (jax_compilation_cache_max_size) or deleted." in sentence(MINE, same, evicts=True)
    fast = {"stored": False, "uncached_because": "too_fast", "uncached_detail": "Compiled in 0.30 s; too fast."}
    bad = {"uncached_because": "error", "uncached_detail": "Its entry is there but could not be used: cut off."}
    for mine, change, told in (
        ({}, fast, "compiled the same program 2 h ago, but did not store it. Compiled in 0.30 s; too fast."),
        ({}, {"directory": "/old"}, "in another directory, /old; this process looks in /cache."),
        ({"process_index": 3}, {}, "or /cache is not shared between the processes"),
        (bad, {}, "2 h ago. Its entry is there but could not be used: cut off."),
    ):
        assert told in sentence(dataclasses.replace(MINE, **mine), dataclasses.replace(same, **change))


def test_the_nearest_has_the_same_program_if_there_is_one() -> None:
    """A function compiled for several signatures is not accused; then the fewest differences, then the latest."""
    same_program = dataclasses.replace(changed(MINE, flags=[], jaxlib="1", devices="d"), time=NOW - 90_000)
    other_program = dataclasses.replace(changed(MINE, program=None), time=NOW - 10)
    own = dataclasses.replace(MINE, process="me", time=NOW - 1)
    assert nearest(MINE, [own, other_program, same_program]) == same_program
    same_key = dataclasses.replace(MINE, process="x", time=NOW - 900_000)
    assert nearest(MINE, [same_program, same_key, other_program]) == same_key
    one_option = changed(MINE, options={"num_replicas": "1"})
    two_options = dataclasses.replace(changed(MINE, options={}), time=NOW - 5)
    assert nearest(MINE, [two_options, one_option]) == one_option
    later = dataclasses.replace(one_option, time=NOW - 60)
    assert nearest(MINE, [later, one_option]) == later
    same_types = dataclasses.replace(changed(MINE, program=None, flags=[]), time=NOW - 90_000)
    other_types = dataclasses.replace(other_program, arguments="(i8) -> i8")
    assert nearest(MINE, [other_types, same_types]) == same_types
    assert nearest(MINE, [own]) is None


def test_the_cache_directory_in_the_options_is_told_as_such() -> None:
    """XLA's own caches lie inside; up to JAX 0.10 their path is part of the key."""
    mine = dataclasses.replace(MINE, values={"options": {"xla_gpu_kernel_cache_file": "/cache/xla"}})
    other = changed(mine, options={"xla_gpu_kernel_cache_file": "old/xla"})
    assert "the cache's directory was `old` and is `/cache`" in sentence(mine, other)


def test_a_flag_that_shows_among_the_options_is_told_once() -> None:
    """XLA parses its flags into options; both parts differ, for one reason."""
    other = changed(MINE, flags=["--xla_a=7", "--xla_b"], options={**VALUES["options"], "xla_a": "7"})  # type: ignore[dict-item]
    assert differing(MINE, other) == ("flags", "options")
    assert sentence(MINE, other).endswith("compiled it 2 h ago with a different XLA flag: `--xla_a=7` is now `1`.")
    also = changed(MINE, flags=["--xla_b"], options={"num_replicas": "2", "xla_a": "7", "xla_x": "true"})
    assert sentence(MINE, also).endswith("; and with a different compile option: `num_replicas` was `2` and is `1`.")
