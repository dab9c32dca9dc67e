"""Facts as they leave the process: plain data under the names of the contract."""

from __future__ import annotations

import dataclasses
import json

import pytest

from jaxobs.facts import events, kinds
from jaxobs.facts.compilations import Change, Compilation
from jaxobs.facts.process import Exit


def test_an_event_is_a_line_of_the_log() -> None:
    """A line begins with time and event; then come the fields, with tuples as lists and times as RFC 3339 in UTC."""
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


def test_facts_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Exit(time=1.0, reason="normal").reason = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", kinds.classes())
def test_every_fact_is_frozen_and_says_what_it_is(name: str) -> None:
    """A sentence in each class, from which the reference is made."""
    kind = kinds.classes()[name]
    assert kind.__dataclass_params__.frozen, f"{name} is not frozen"  # type: ignore[attr-defined]
    assert (kind.__doc__ or "").partition("\n\n")[0].rstrip().endswith("."), f"{name} has no sentence"
