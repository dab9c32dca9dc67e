"""Known incidents: what is listed for whom, whatever a log is wrapped in, and where they agree on a cause."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.incidents.evaluation import replay
from benchmarks.incidents.nearest import link
from benchmarks.incidents.scenarios import scenarios
from benchmarks.incidents.wrappings import WRAPPINGS, wrapped
from jaxobs import cli
from jaxobs.ops.diagnosis import nearest

SCENARIOS = {each.name: each for each in scenarios()}


@pytest.mark.parametrize("name", ["decoder_of_another_size", "ecc_on_a_node", "jaxlib_of_colab", "absurd_request"])
def test_a_wrapped_log_has_the_same_neighbours(name: str) -> None:
    plain = SCENARIOS[name]
    known = replay(plain).diagnosis.known
    assert known[0].what == plain.truth
    for wrap in WRAPPINGS.values():
        sections = tuple((kind, file, wrapped(text, wrap)) for kind, file, text in plain.sections)
        assert replay(replace(plain, sections=sections)).diagnosis.known == known


def test_of_a_named_cause_its_threads_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text("OSError: [Errno 28] No space left on device: '/ckpt'\nThe node's disk is full: pod evicted.\n")
    for options in (["--json"], []):
        assert cli.main(["diagnose", *options, "--log", str(log)]) == 1
    body, end = json.JSONDecoder().raw_decode(text := capsys.readouterr().out)
    known = body["known"]
    full = {link(each.after or "") for each in SCENARIOS.values() if each.causes == ("disk_full",)}
    assert len(known) == 3 and {each["thread"] for each in known} <= full
    assert all(each[field] in text[end:] for each in known for field in ("thread", "what", "cure"))
    other = nearest.chosen(nearest.shipped().near({"nan": 1, "loss": 1, "disk": 1}), ["disk_full"])
    assert [each["causes"] for each in other][:2] == [["disk_full"]] * 2


def test_only_an_error_that_ended_something_makes_a_cause_likely() -> None:
    found = nearest.likely_cause(replay(SCENARIOS["jaxlib_of_colab"]).evidence)
    assert found is not None and found[0] == "jaxlib_mismatch" and found[2]
    survived = replay(SCENARIOS["attention_falls_back"])
    assert nearest.known_incidents(survived.evidence) and nearest.likely_cause(survived.evidence) is None
    assert survived.diagnosis.known == ()
