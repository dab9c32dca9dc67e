"""The scenarios of `benchmarks/incidents`, replayed: the gates of the evaluation, and what each diagnosis rests on."""

import dataclasses
import functools
import gzip
import json
import re
from collections import Counter

import pytest

from benchmarks.incidents import __main__ as command
from benchmarks.incidents import nearest, weights
from benchmarks.incidents.evaluation import Outcome, families, judged, replay, replay_all
from benchmarks.incidents.metrics import metrics, rows
from benchmarks.incidents.scenarios import scenarios
from jaxobs.ops.diagnosis import diagnose
from jaxobs.ops.diagnosis.evidence import Evidence
from jaxobs.ops.diagnosis.knowledge import CAUSE
from jaxobs.ops.diagnosis.known import known

LEAST_RIGHT, LEAST_OF_A_FAMILY = 0.95, 0.70
SCENARIOS = {f"{each.family}/{each.name}": each for each in scenarios()}
FAMILIES = sorted({each.family for each in SCENARIOS.values()})


@functools.cache
def outcomes() -> tuple[Outcome, ...]:
    """All scenarios, replayed once."""
    return tuple(replay_all())


def outcome(name: str) -> Outcome:
    return next(each for each in outcomes() if f"{each.scenario.family}/{each.scenario.name}" == name)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_diagnosis_is_right(family: str) -> None:
    assert {each.scenario.name: each.wrong for each in families(outcomes())[family] if each.wrong is not None} == {}


def test_the_gates() -> None:
    found = outcomes()
    assert len(found) >= 40
    assert len(families(found)) >= 12
    assert sum(each.wrong is None for each in found) >= LEAST_RIGHT * len(found)
    for family, each in families(found).items():
        assert sum(one.wrong is None for one in each) >= LEAST_OF_A_FAMILY * len(each), family


def test_what_the_scenarios_are() -> None:
    """Many after what people had, a quarter of them healthy, and of each kind some."""
    assert len({each.after for each in SCENARIOS.values() if each.after}) >= 25
    assert sum(each.is_control for each in SCENARIOS.values()) >= 0.25 * len(SCENARIOS)
    assert min(Counter(each.kind for each in SCENARIOS.values()).values()) >= 2
    assert sum(each.held_out for each in SCENARIOS.values()) >= 10


def test_no_healthy_job_is_blamed() -> None:
    """Nor is anything named that is no cause of a scenario."""
    for each in outcomes():
        assert each.extra == [], each.scenario.name


def test_the_metrics() -> None:
    right, missed = outcome("numerics/nan_at_step_21"), outcome("programs/branch_on_a_traced_value")
    control = next(each for each in outcomes() if each.scenario.is_control)
    swapped = [
        right,
        dataclasses.replace(missed, diagnosis=control.diagnosis),
        dataclasses.replace(control, diagnosis=missed.diagnosis),
    ]
    found = {name: value for name, (value, _) in metrics(swapped).items()}
    assert found["faults detected"] == 0.5
    assert found["controls doubted"] == 1.0
    assert found["first cause right (AC@1)"] == 0.5
    assert found["macro-F1 over causes"] == 0.5
    assert [each.wrong is None for each in swapped] == [True, False, False]


def test_a_cause_too_many_is_wrong() -> None:
    """Even if the right one comes first."""
    one = outcome("programs/branch_on_a_traced_value")
    other = outcome("host_memory/one_host_out_of_memory").diagnosis.causes
    both = dataclasses.replace(one.diagnosis, causes=(*one.diagnosis.causes, *other))
    assert dataclasses.replace(one, diagnosis=both).wrong == "host_out_of_memory named as well"


def test_a_wrong_place_or_time_is_wrong() -> None:
    """Even if the cause is right; up to a minute is near enough."""
    one = outcome("host_memory/one_host_out_of_memory")
    (cause,) = one.diagnosis.causes

    def said(**changed: str | None) -> Outcome:
        found = dataclasses.replace(cause, **changed)
        return dataclasses.replace(one, diagnosis=dataclasses.replace(one.diagnosis, causes=(found,)))

    assert said(onset="2026-01-31T11:01:00Z").wrong is None
    assert (
        said(onset="2026-01-31T11:01:09Z").wrong == "onset 2026-01-31T11:01:09Z instead of 2026-01-31T11:00:08.400000Z"
    )
    assert said(onset=None).wrong == "onset unknown instead of 2026-01-31T11:00:08.400000Z"
    assert said(component="process 0").wrong == "process 0 instead of process 2"
    found = metrics([one, said(onset=None), said(component="process 0")])
    assert found["component right"] == (2 / 3, 3)
    assert found["onset within 60 s"] == (2 / 3, 3)
    assert found["onset error, median in s"][0] < 1.0
    assert "| host memory | 3 of 3 | 3 of 3 | 2 of 3 | 2 of 3 |  |" in rows([one, said(onset=None), said(component="")])


def test_most_faults_have_a_place_or_a_time() -> None:
    """As far as their sources give them."""
    faults = [each for each in SCENARIOS.values() if each.causes]
    assert sum(each.onset is not None for each in faults) >= 0.5 * len(faults)
    assert sum(each.component is not None for each in faults) >= 0.25 * len(faults)
    assert all(each.onset is None and each.component is None for each in SCENARIOS.values() if not each.causes)


def test_nothing_is_named_without_evidence() -> None:
    """Each cause quotes what a source says, and that is in the source."""
    for replayed in outcomes():
        for cause in replayed.diagnosis.causes:
            assert cause.evidence
            assert {quote.source for quote in cause.evidence} <= {source.name for source in replayed.evidence.sources}


@pytest.mark.parametrize("baseline", ["alert and first error", "loudest signal"])
def test_it_beats_the_baselines(baseline: str) -> None:
    """A look-up and the loudest signal."""
    assert sum(each.wrong is None for each in outcomes()) > sum(each.baseline_is_right(baseline) for each in outcomes())


# -------------------------------------------------------------------------------------------- each diagnosis by itself


@pytest.mark.parametrize("name", [name for name, each in known().items() if each.role == CAUSE])
def test_a_diagnosis_without_its_evidence_is_not_named(name: str) -> None:
    """In each scenario that names it: without the observations that show it, it is gone; with them, it is there."""
    rests_on = known()[name]
    found = [each for each in outcomes() if name in [one.id for one in each.diagnosis.causes]]
    assert found, f"no scenario in benchmarks/incidents/scenarios has {name} as a cause"
    for replayed in found:
        signs = [one for one in replayed.evidence.observations if any(sign.shows(one) for sign in rests_on.signs)]
        assert name not in [one.id for one in diagnose(replayed.evidence.without(signs)).causes], replayed.scenario.name


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_evidence_gives_the_same_bytes(family: str) -> None:
    """In whatever order it comes, and whatever comes twice."""
    for replayed in families(outcomes())[family]:
        evidence = replayed.evidence
        mixed = Evidence.of([*reversed(evidence.observations), *evidence.observations], reversed(evidence.sources))
        assert json.dumps(diagnose(mixed).as_json()) == json.dumps(replayed.diagnosis.as_json()), replayed.scenario.name


def test_a_replay_gives_the_same_bytes() -> None:
    """Read again from its files, in another folder."""
    for name in ("host_memory/one_host_out_of_memory", "programs/branch_on_a_traced_value"):
        again = replay(SCENARIOS[name])
        assert json.dumps(again.diagnosis.as_json()) == json.dumps(outcome(name).diagnosis.as_json())


def test_the_page_has_the_table() -> None:
    """As `python -m benchmarks.incidents --write` makes it."""
    page = command.PAGE.read_text(encoding="utf-8")
    assert command.written(page, command.results(outcomes())) == page, "python -m benchmarks.incidents --write"


def test_the_weights_are_fresh() -> None:
    """As `python -m benchmarks.incidents.weights --write` counts them."""
    assert weights.FILE.read_text(encoding="utf-8") == weights.text(weights.weights(outcomes()))


def test_pages_quote_the_judgements() -> None:
    """The pages quote the newest round, which is the last column."""
    counts = dict(re.findall(r"(?m)^\| ([^|]+) \|.* \| (\d+(?: of \d+)?) \|$", judged(outcomes())))
    right, half, fix, of, blamed = (
        counts[each]
        for each in (
            "top cause right", *[*counts][2:3], "the fix would have solved it", "judged", "healthy jobs blamed"
        )
    )  # fmt: skip
    said = f"right in {right} of {of} and half right in {half} more, and its fix would have solved {fix}: see"
    assert said in " ".join(command.PAGE.read_text(encoding="utf-8").split())
    said = f"the right cause for {right} of {of}, and half of it for {half} more, and blames {blamed} healthy jobs"
    for page in ("../README.md", "agent.md", "mcp.md"):
        assert said in " ".join((command.PAGE.parent / page).read_text(encoding="utf-8").split()), page


def test_the_known_incidents_are_fresh() -> None:
    """As `python -m benchmarks.incidents.nearest --write` makes them; no healthy job has a likely cause."""
    page, text = command.PAGE.read_text(encoding="utf-8"), nearest.figures(outcomes())
    assert gzip.decompress(nearest.DATA.read_bytes()).decode() == nearest.data(outcomes()), nearest.__doc__
    assert nearest.written(page, text) == page and "controls on which they agree | 0 of" in text, nearest.__doc__
