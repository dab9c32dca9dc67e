"""Knowledge of faults hangs together: names, pages, patterns."""

import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from helpers.paths import ROOT

from jaxobs.metrics import catalogue
from jaxobs.ops.diagnosis import kinds
from jaxobs.ops.diagnosis.evidence import LINE, RAISED, Observation
from jaxobs.ops.diagnosis.knowledge import ANY_END, IMPACTS, SYMPTOM, Alert, Knowledge, Line, Metric
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.site import Site

ALERTS = {path.stem for path in (ROOT / "runbooks").glob("Jax*.md")}
EXAMPLES = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))
METRICS = {metric.name for metric in catalogue.METRICS}
METRICS |= {rule["record"] for group in alerting.recording_groups(Site()) for rule in group["rules"]}


@pytest.mark.parametrize(("name", "each"), known().items(), ids=list(known()))
def test_a_diagnosis_is_whole(name: str, each: Knowledge) -> None:
    assert set(each.follows) | set(each.rivals) <= {*known(), ANY_END} - {name}
    assert not each.runbook or each.runbook in ALERTS
    assert each.impact in IMPACTS
    assert re.fullmatch(r"[A-Zj].*[^.]", each.title)
    assert each.fix.endswith((".", ")", "?"))
    if each.role == SYMPTOM or any(sign.weak for sign in each.signs if isinstance(sign, Line)):
        assert each.collect, "it can be inconclusive, and does not say what to collect"


@pytest.mark.parametrize(("name", "each"), known().items(), ids=list(known()))
def test_its_signs_can_appear(name: str, each: Knowledge) -> None:
    """Patterns compile and match nothing in an empty line; alerts and metrics are ours, or Kubernetes'."""
    for sign in (*each.signs, *each.refuted_by):
        if isinstance(sign, Line):
            assert re.compile(sign.pattern).search("") is None
        elif isinstance(sign, Alert):
            assert sign.name in ALERTS
        elif isinstance(sign, Metric):
            family = re.sub(r"_(?:sum|count)$", "", sign.name)
            assert {sign.name, family} & METRICS or sign.name.startswith(("kube_pod_", "kube_node_"))


def test_every_diagnosis_is_on_the_page() -> None:
    """In the table of docs/diagnose.md, with its title."""
    page = (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8")
    assert [name for name, each in known().items() if f"`{name}` | {each.title}" not in page] == []


@pytest.mark.parametrize(("fault", "ways"), kinds.kinds().items(), ids=list(kinds.kinds()))
def test_each_kind_is_found_for_a_line_of_its_own(fault: str, ways: tuple[kinds.Kind, ...]) -> None:
    """In the table of kinds.toml beside this file, with the words that its action then has."""
    assert fault in known()
    unfound = list(ways)
    for example in EXAMPLES[fault]:
        data = {name: example[name] for name in ("calls", "frames") if name in example}
        line = Observation(kind=LINE, source="log", name=RAISED, text=example["line"], data=data)
        kind, action = kinds.found(fault, [line]) or pytest.fail(f"no kind of {fault} is found for {example['line']}")
        assert example["says"] in action
        unfound = [other for other in unfound if other is not kind]
    assert unfound == []


@pytest.mark.parametrize(("fault", "ways"), kinds.kinds().items(), ids=list(kinds.kinds()))
def test_an_action_names_what_its_expression_captures(fault: str, ways: tuple[kinds.Kind, ...]) -> None:
    """Fields of an action are groups of its expression, or what is known of each observation."""
    for kind in ways:
        captured = set(re.compile(kind.about).groupindex)
        known_of_each = {"at", "owner", "owner_of", "caller"} | ({"name", "gone", "came"} if kind.knows else set())
        fields = re.findall(r"\{([^{}]*)\}", kind.action)
        named = {name.removesuffix("_said") for field in fields for name in field.split("|")[:-1] or [field]}
        assert named <= captured | known_of_each, kind.about
        assert captured <= {name.removesuffix("_said") for field in fields for name in field.split("|")}, kind.about
        re.compile(kind.frames)
        assert re.search(kind.about, "") is None, kind.about
        assert '"' not in kind.action and kind.action.endswith((".", "?")), kind.action


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("titel = 'x'", "`fault` in wrong.toml: .*titel"),
        ("[[fault.signs]]\nlien = 'x'", "`fault` in wrong.toml: .*begins with `lien`"),
        ("[[fault.signs]]\nline = 'x'\nweek = true", "`fault` in wrong.toml: .*week"),
        ("[[fault.signs]]\nline = 'x${part}'", "`fault` in wrong.toml: there is no part `part`"),
        ("functions = true", "`fault` in wrong.toml: .*`FUNCTIONS` of wrong.py has none"),
        ("", "`compile_failed` in `FUNCTIONS` of compilations.py: no table"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    table: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong.toml").write_text(f"[fault]\ntitle = 'T'\nimpact = 'ended'\nfix = 'F'\n{table}\n")
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=named):
        known.__wrapped__()
