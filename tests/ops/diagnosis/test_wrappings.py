"""Wrappings of log shippers change no answer; `python -m benchmarks.incidents.wrappings` tries all logs."""

import datetime

import pytest

from benchmarks.incidents.scenarios import Scenario, scenarios
from benchmarks.incidents.wrappings import WRAPPINGS, changed
from jaxobs.ops.diagnosis.gathering.instances import column
from jaxobs.ops.diagnosis.gathering.log_lines import parse

AT = datetime.datetime(2026, 1, 31, 8, 50, tzinfo=datetime.timezone.utc)
LOGS = [each for each in scenarios() if {kind for kind, _, _ in each.sections} == {"log"}][::40]


@pytest.mark.parametrize("scenario", LOGS, ids=lambda each: each.name)
def test_no_wrapping_changes_an_answer(scenario: Scenario) -> None:
    assert changed(scenario, [*WRAPPINGS]) == []


@pytest.mark.parametrize("outer", WRAPPINGS)
@pytest.mark.parametrize("inner", WRAPPINGS)
def test_two_wrappings_are_taken_off(outer: str, inner: str) -> None:
    """In whatever order; the indentation of a traceback stays. Of stern the log as a whole shows what it is."""
    for line in ('    raise ValueError("no")', "ValueError: no", '  File "/app/train.py", line 3, in <module>'):
        text = WRAPPINGS[outer](WRAPPINGS[inner](line, AT), AT)
        found = parse(text, 2026)
        if "stern" not in (outer, inner):
            assert found.message == line
            is_dated = not {outer, inner} <= {"docker compose", "CRLF", "colours"}
            assert found.time == (pytest.approx(AT.timestamp(), abs=1) if is_dated else None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train-0-x7k2p trainer ValueError: no", "ValueError: no"),
        ("train-0-x7k2p trainer Epoch 3 of 4", "train-0-x7k2p trainer Epoch 3 of 4"),
        ("train-0 trainer ValueError: no", "train-0 trainer ValueError: no"),
    ],
)
def test_a_line_alone_shows_that_stern_wrote_it(text: str, message: str) -> None:
    """By the name of a pod with the suffix of Kubernetes, and an exception behind the container."""
    found = column([text], 2026)
    assert (text if found is None else (found.split(text) or ("", text))[1]) == message


def test_a_programs_own_time_counts_more_than_the_shippers() -> None:
    line = parse("2026-01-31T08:50:00.123456789Z 2026-01-31 08:49:58,000 INFO train: step 3", 2026)
    assert (line.message, line.level, line.time) == ("train: step 3", "I", AT.timestamp() - 2)
    assert parse("2026-01-31T08:50:00Z I0131 08:49:59.000000 12 a.cc:3] x", 2026).time == AT.timestamp()
