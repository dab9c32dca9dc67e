"""Logs of an earlier version are read under the names that its events had."""

from __future__ import annotations

from helpers.made_by_hand import compilation

from jaxobs.facts import renamed
from jaxobs.facts.events import as_event
from jaxobs.facts.kinds import event_types
from jaxobs.facts.steps import Step
from jaxobs.findings import all_kinds
from jaxobs.views import client


def test_a_field_that_has_a_better_name_now() -> None:
    """A slow step of the log of an earlier version keeps what was typical."""
    slow = Step(
        time=1.0, loop="train", count=1, last=7, seconds=0.5, least_seconds=0.5, most_seconds=0.5, median_seconds=0.5,
        slow=True, typical_seconds=0.01,
    )  # fmt: skip
    old = {{"typical_seconds": "usual_seconds"}.get(name, name): value for name, value in as_event(slow).items()}
    assert "usual_seconds" in old and client.decode_event(old) == slow


def test_a_finding_that_has_a_better_name_now() -> None:
    known = {each.NAME for each in all_kinds.every()}
    for before, now in renamed.FINDINGS.items():
        assert renamed.current({"event": "finding", "finding": before})["finding"] == now
        assert now in known and before not in known


def test_other_events_are_left_alone() -> None:
    body = as_event(compilation("train.step"))
    assert renamed.current(body) == body
    for kind, names in renamed.FIELDS.items():
        assert set(names.values()) <= set(event_types()[kind].__dataclass_fields__)
