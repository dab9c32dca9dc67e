"""Facts as they leave the process: plain data under the names of the contract."""

import json

import pytest
from helpers.condition_scenes import snapshot
from helpers.made_by_hand import compilation

from jaxobs.facts import events, kinds, renamed
from jaxobs.facts.compilations import Change, Compilation
from jaxobs.facts.steps import Step
from jaxobs.facts.verdicts import Verdict
from jaxobs.findings import all_kinds
from jaxobs.views import client


def test_an_event_is_a_line_of_the_log() -> None:
    event = Compilation(
        time=1_770_000_000.25, function="f", cause="shape", reason="Why.", pid=7, sequence=3, process_index=1,
        changes=(Change(path="x", what="shape", before="(2,)", after="(3,)"),),
    )  # fmt: skip
    line = events.as_event(event)
    assert line == json.loads(json.dumps(line))
    assert list(line)[:2] == ["time", "event"]
    assert (line["time"], line["event"]) == ("2026-02-02T02:40:00.250000Z", "compilation")
    assert (line["pid"], line["sequence"], line["process_index"]) == (7, 3, 1)
    assert line["changes"] == [{"path": "x", "what": "shape", "before": "(2,)", "after": "(3,)"}]


@pytest.mark.parametrize("name", kinds.classes())
def test_every_fact_is_frozen_and_says_what_it_is(name: str) -> None:
    """A sentence in each class, from which the reference is made."""
    kind = kinds.classes()[name]
    assert kind.__dataclass_params__.frozen, f"{name} is not frozen"  # type: ignore[attr-defined]
    assert (kind.__doc__ or "").partition("\n\n")[0].rstrip().endswith("."), f"{name} has no sentence"


def test_a_field_that_has_a_better_name_now() -> None:
    """A slow step of the log of an earlier version keeps what was typical."""
    slow = Step(
        time=1.0, loop="train", count=1, last=7, seconds=0.5, least_seconds=0.5, most_seconds=0.5, median_seconds=0.5,
        slow=True, typical_seconds=0.01,
    )  # fmt: skip
    old = {{"typical_seconds": "usual_seconds"}.get(name, name): value for name, value in events.as_event(slow).items()}
    assert "usual_seconds" in old and client.decode_event(old) == slow


def test_a_finding_that_has_a_better_name_now() -> None:
    known = {each.NAME for each in all_kinds.every()}
    for before, now in renamed.FINDINGS.items():
        assert renamed.current({"event": "finding", "finding": before})["finding"] == now
        assert now in known and before not in known


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (("mend", "It is slow."), ("fix", "It is slow.")),
        (("fine", "Nothing to mend: 7 requests answered."), ("ok", "Nothing to fix: 7 requests answered.")),
        (("watch", "It pauses."), ("watch", "It pauses.")),
    ],
)
def test_a_verdict_of_an_older_process(before: tuple[str, str], now: tuple[str, str]) -> None:
    """A client of this version reads what a server of the version before it answers."""
    body = events.plain(snapshot(verdict=Verdict(verdict=before[0], headline=before[1])))
    read = client.fetch_snapshot("http://host:9464", get=lambda address, timeout: json.dumps(body).encode())
    assert read.verdict == Verdict(verdict=now[0], headline=now[1])


def test_other_events_are_left_alone() -> None:
    body = events.as_event(compilation("train.step"))
    assert renamed.current(body) == body
    for kind, names in renamed.FIELDS.items():
        assert set(names.values()) <= set(kinds.event_types()[kind].__dataclass_fields__)
