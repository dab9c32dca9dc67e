"""A short run of `tools.fuzz_readers`: every reader, with valid files and answers in which one thing is changed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from helpers.paths import ROOT

from tools import fuzz_readers
from tools.fuzzing import attacked, opening, originals, readers, worst
from tools.fuzzing.changes import Changer
from tools.fuzzing.guided import GuidedChanger
from tools.fuzzing.originals import Originals
from tools.trust import page

CASES = 10


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    yield originals.make(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.slow
def test_no_reader_fails(made: Originals) -> None:
    result = fuzz_readers.fuzz(made, CASES, seed=1)
    assert result.failures == []
    assert result.cases == CASES * len(readers.Readers(made).all()) == 280


def test_the_originals_are_of_a_real_run(made: Originals) -> None:
    kinds = {json.loads(line)["event"] for line in made.files["events.jsonl"].splitlines()}
    wanted = "manifest compilation cache_lookup step memory nonfinite finding error exit"
    assert kinds >= {*wanted.split()}
    assert set(made.files) >= {
        "events.jsonl", "jaxobs-cache-keys.jsonl", "run.json", "digest.json", "listed.json", "snapshot.json",
        "events.json", "trace.xplane.pb",
    }  # fmt: skip
    assert made.entries


def test_a_reader_that_fails_is_found(made: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool sees what it looks for; the same seed makes the same changes."""

    def fails(text: str) -> None:
        raise OverflowError(len(text))

    monkeypatch.setattr(readers, "decode", fails)
    first = fuzz_readers.fuzz(made, 3, only=["digest"])
    assert (first.cases, len(first.failures)) == (3, 3)
    assert first.failures == fuzz_readers.fuzz(made, 3, only=["digest"]).failures
    log = made.files["events.jsonl"]
    assert Changer("1").lines(log) == Changer("1").lines(log) != Changer("2").lines(log)


def test_bytes_decide_on_several_changes(made: Originals) -> None:
    """Equal bytes make equal changes; each reader takes the changes that no byte at all makes."""
    log, seen = made.files["events.jsonl"], set()
    for number in range(64):
        data = Random(number).randbytes(300)
        told, changed = GuidedChanger(data).lines(log)
        assert GuidedChanger(data).lines(log) == (told, changed)
        seen.add(told.count("; ") + 1)
    assert seen == {1, 2, 3, 4}
    for case in readers.Readers(made).all().values():
        case(GuidedChanger(b""))


def test_every_kind_of_change_is_made(made: Originals) -> None:
    log = made.files["events.jsonl"]
    told = [Changer(f"kinds {number}").lines(log)[0] for number in range(300)]
    words = {what.split()[2] if what.startswith("line ") else what for what in told}
    assert words >= {"delete", "type", "number", "text", "deep", "nul_block", "truncated", "foreign", "crlf", "bom"}


def test_a_reader_beyond_its_bounds_is_found(made: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the memory of the process that reads; what stays within them is not named."""
    only = {"blank lines": attacked.ANY["blank lines"]}
    monkeypatch.setattr(attacked, "ANY", only)
    monkeypatch.setattr(attacked.shapes, "LOGS", {})
    monkeypatch.setattr(worst, "MOST_SECONDS", float("inf"))
    assert list(worst.problems(made, 2**20, ["diagnose --log"])) == []
    monkeypatch.setattr(worst, "MOST_MEMORY", -(2**40))
    valid, found = worst.problems(made, 2**20, ["diagnose --log"])
    assert valid.startswith("diagnose --log, valid: ")
    assert found.startswith("diagnose --log, blank lines: ") and found.endswith(" MiB")
    refused = worst.Measured(0.0, 0, 1, "Traceback (most recent call last)")
    assert refused.problem(0).startswith("exit code 1: Traceback")


def test_the_page_has_every_reader_and_every_module_that_opens_something(made: Originals, tmp_path: Path) -> None:
    """A module is attacked, as the row of a reader that ran says, or it stands with what it opens of its own."""
    table = page.get(ROOT / "docs" / "trust.md", worst.PART)
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]
    assert {*rows} <= {each.name for each in attacked.every(tmp_path, made)}
    opened = {f"jaxobs/{name}" for name in re.findall(r"`([\w/]+\.py)`", table)}
    assert opened.isdisjoint(opening.OWN)
    assert {call.module for call in opening.calls()} - opening.OWN.keys() <= opened
