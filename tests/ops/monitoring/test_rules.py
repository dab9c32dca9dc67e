"""Every alert and recording rule: complete, right in promtool's eyes, and guarded by cases that notice every change."""

import dataclasses
import re
import subprocess
import sys
from collections import Counter
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest
from helpers import rule_checks

from jaxobs.base.errors import MissingExtraError
from jaxobs.ops.monitoring import alerting, generate, objectives, rule_texts, rules, shipped_tests
from jaxobs.ops.monitoring.rule_types import Given
from jaxobs.ops.monitoring.site import Site

ALERTS = {rule_checks.key(alert): alert for alert in alerting.declared(Site())}

pytestmark = pytest.mark.timeout(1200)  # promtool runs a thousand times


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[rule_checks.Outcome]:
    """Runs promtool on every alert and its mutants."""
    return rule_checks.tried_all(list(ALERTS.values()), tmp_path_factory.mktemp("rules"))


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_lacks_nothing(name: str) -> None:
    """Texts, thresholds with reasons, known series and labels, cases of each kind, and a runbook that says enough."""
    assert list(rule_checks.mistakes(ALERTS[name])) == []


@pytest.mark.parametrize(
    ("package", "names", "endings"),
    [
        (rules, [*rules.declared()], (".toml", ".md", ".tests.yaml")),
        (objectives, [each.name.replace("-", "_") for each in objectives.objectives()], (".toml", ".md")),
    ],
    ids=["rules", "objectives"],
)
def test_texts_lie_beside_each_declaration(package: ModuleType, names: list[str], endings: tuple[str, ...]) -> None:
    """A rule has a runbook and cases, an objective a guide; no file is left over."""
    files = {path.name for path in resources.files(package).iterdir() if path.is_file()}
    assert files == {"__init__.py", *(f"{name}{ending}" for name in names for ending in endings)}


def test_nothing_in_a_runbook_is_skipped() -> None:
    """Each block and each row of the Markdown is in the runbook that is read from it."""
    for name in rules.declared():
        text = (resources.files(rules) / f"{name}.md").read_text(encoding="utf-8")
        book = rule_texts.Beside(f"{rules.__name__}.{name}").runbook()
        blocks = [block for step in book.diagnosis for block in (step.command, step.query) if block]
        rows = [*book.look_alikes, *(answer for step in book.diagnosis for answer in step.answers)]
        assert text.count("\n```") == 2 * len(blocks), name
        assert text.count("\n|") == len(rows) + 2 * text.count("|---|\n"), name


def test_a_section_that_is_missing_or_unknown_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file and the section."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    whole = ("Impact", "Diagnosis", "Mitigation", "What this is not")
    for headings, message in (
        (whole[:2], r"beside\.rule\.md lacks the sections: Mitigation, What this is not\."),
        ((*whole, "Advice"), r"beside\.rule\.md has unknown sections: Advice\."),
    ):
        (tmp_path / "beside/rule.md").write_text("".join(f"## {each}\n\nText.\n" for each in headings))
        with pytest.raises(ValueError, match=message):
            rule_texts.guide("beside.rule")


@pytest.mark.parametrize(
    ("line", "named"),
    [("nmae = 'JaxOdd'", "nmae"), ("severity = 'loud'", "severity 'loud'"), ("[thresholds.share]\nvalue = 1", "unit")],
)
def test_a_wrong_field_of_a_rule_is_refused_by_name(
    line: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt field, a wrong value or a field that is missing is an error that names the file."""
    whole = {
        "name": "'JaxOdd'", "severity": "'info'", "concern": "'info'", "summary": "'S'", "description": "'D'",
        "expr": "'up'", "panel": "['debug', 'x']",
    }  # fmt: skip
    whole.pop(line.partition(" =")[0], None)
    (tmp_path / "wrong.toml").write_text("".join(f"{name} = {value}\n" for name, value in whole.items()) + line)
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=rf"wrong\.toml: .*{named}"):
        rules.declared.__wrapped__()


def test_a_runbook_is_read_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent and the assistants have no PyYAML; only the cases need it, for `jaxobs generate`."""
    rule_texts._cases.cache_clear()
    monkeypatch.setitem(sys.modules, "yaml", None)
    alert = rules.alerts()[0]
    assert len(alert.runbook.meaning) > 40
    with pytest.raises(MissingExtraError, match="needs `pyyaml`, from the extra `grafana`"):
        alert.cases  # noqa: B018


def test_recording_rules_are_named_for_what_they_keep() -> None:
    """Level, order within their group, and no name twice."""
    assert list(rule_checks.mistakes_in_recordings()) == []


def test_names_are_used_once() -> None:
    """No two alerts have the same name and static labels."""
    assert len(ALERTS) == len(alerting.declared(Site()))


def test_what_is_generated_is_right_for_promtool(tmp_path: Path) -> None:
    """The rules as they are written, with every lint that promtool has."""
    generate.write(generate.files("alerts"), tmp_path)
    output = rule_checks.promtool(
        "check", "rules", "--lint=all", "--lint-fatal", "jaxobs.rules.yaml", folder=tmp_path / "alerts"
    )
    groups = alerting.groups(Site())
    count = sum(len(group["rules"]) for group in groups)
    assert f"SUCCESS: {count} rules found" in output
    assert "FAILED" not in output


@pytest.mark.slow
@pytest.mark.settled
def test_what_is_shipped_holds(tmp_path: Path) -> None:
    """The tests beside the rules, as a user runs them: every case of every alert that is shipped, those that fire and
    those that do not. So what a changed threshold does to the cases, it does to this file."""
    generate.write(generate.files("alerts"), tmp_path)
    files = sorted(path.name for path in (tmp_path / "alerts").glob("jaxobs.tests*.yaml"))
    output = rule_checks.promtool("test", "rules", *files, folder=tmp_path / "alerts")
    assert output.count("SUCCESS") == len(files) == 1 and "FAILED" not in output
    text = (tmp_path / "alerts" / files[0]).read_text(encoding="utf-8")
    asked = Counter(re.findall(r'expr: ALERTS\{alertname="(\w+)"', text))
    shipped = {alert.name: len(alert.cases) for alert in alerting.enabled(Site()) if alert.cases}
    assert asked == shipped and 15 <= len(shipped) <= 20


@pytest.mark.slow
@pytest.mark.settled
def test_an_alert_about_a_process_has_its_pod_and_node(tmp_path: Path) -> None:
    """In Kubernetes, where all that is scraped of a process has both: they get lost nowhere, and no join fails."""
    where = {"pod": "train-0", "node": "n1"}
    more = ", ".join(f'{name}="{value}"' for name, value in where.items())
    wrong = []
    for alert in {each.name: each for each in ALERTS.values() if alerting.of_process(each)}.values():
        case = next(each for each in alert.cases if each.kind == "firing")
        series = {
            re.sub(r'(, (pod|node)="[^"]*"|\})', "", name) + f", {more}}}": case.series[name] for name in case.series
        }
        expr = alerting.expression(alert, Site())
        found = [{"labels": f"{{alertname={alert.name!r}, {more}}}", "value": 1}]
        asked = f'group by (alertname, {", ".join(where)}) (ALERTS{{alertname="{alert.name}", alertstate="firing"}})'
        test = {
            "interval": case.interval,
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [{"expr": asked, "eval_time": case.at, "exp_samples": found}],
        }
        groups = [*rule_checks.needed(expr), {"name": "own", "rules": [alerting.rule(alert, Site())]}]
        output = rule_checks.tested(groups, [test], tmp_path, interval=case.interval)
        wrong += [] if "SUCCESS" in output else [f"{alert.name}: {output[-800:]}"]
    assert wrong == []


JOINS = {
    'accelerator_info{job="t", instance="a:1", device="gpu:0", uuid="GPU-1"}': "1x70",
    'accelerator_info{job="t", instance="b:1", device="gpu:0", uuid="GPU-1"}': "1x70",
    'accelerator_info{job="t", instance="a:1", device="gpu:1", uuid="MIG-2", mig_parent="GPU-1"}': "1x70",
    'accelerator_info{job="t", instance="c:1", device="tpu:0"}': "1x70",
    'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{job="dcgm", instance="d:9400", UUID="GPU-1", gpu="0"}': "0.3x70",
    'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{job="dcgm", instance="d:9400", UUID="GPU-9", gpu="1"}': "0.9x70",
    'jax_process_info{job="t", instance="a:1", namespace="n", pod="t-0", node="n1"}': "1x40 stale",
    'jax_process_info{job="t", instance="a:2", namespace="n", pod="t-0", node="n1"}': "1x70",
    'jax_process_info{job="t", instance="b:1", namespace="m", pod="t-0", node="n2"}': "1x70",
    'jax_process_info{job="t", instance="h3:1"}': "1x70",
    'jax_process_info{job="t", instance="[::1]:1"}': "1x70",
    'kube_pod_container_status_restarts_total{job="k", namespace="n", pod="t-0", container="a"}': "0x29 2x40",
    'kube_pod_container_status_restarts_total{job="k", namespace="n", pod="t-0", container="side"}': "0x70",
    'kube_pod_container_status_restarts_total{job="k", namespace="n", pod="t-1", container="a"}': "0x9 9x70",
    'kube_pod_container_status_last_terminated_reason{job="k", namespace="n", pod="t-0", container="a", '
    'reason="OOMKilled"}': "_x29 1x40",
    'kube_pod_container_status_last_terminated_reason{job="k", namespace="m", pod="t-0", container="a", '
    'reason="Error"}': "1x70",
    **{f'node_memory_Mem{name}_bytes{{job="node", {where}}}': f"{size}x70"
       for where, free in (('instance="10.0.0.1:9100", node="n1"', 25), ('instance="n2"', 50),
                           ('instance="h3:9100"', 75), ('instance="10.0.0.9:9100"', 1))
       for name, size in (("Available", free), ("Total", 100))},
}  # fmt: skip
"""Series of jaxobs and of other exporters: two processes on one GPU or in one pod, a MIG instance, hosts by name."""


@pytest.mark.parametrize("exporter", ["", "DCGM", "kube", "node_memory"])
def test_other_exporters_are_joined(exporter: str, tmp_path: Path) -> None:
    """By UUID, pod and node or host, for each process; without an exporter, its series are absent."""
    joined = {
        "job_instance_device:dcgm_tensor_active:ratio": {"a:1": 0.3, "b:1": 0.3},
        "round(job_instance_pod:kube_restarts:increase1h)": {"a:1": 2, "a:2": 2},
        "job_instance_pod:kube_oom_killed:bool": {"a:1": 1, "a:2": 1},
        "job_instance_node:node_memory_available:ratio": {"a:2": 0.25, "b:1": 0.5, "h3:1": 0.75},
    }
    test = {
        "interval": "1m",
        "input_series": [
            {"series": name, "values": values} for name, values in JOINS.items()
            if not exporter or name.startswith(("jax_", "accelerator_", exporter))
        ],
        "promql_expr_test": [
            {"expr": f"sum by (instance) ({name})", "eval_time": "60m", "exp_samples": [
                {"labels": f'{{instance="{instance}"}}', "value": value} for instance, value in found.items()
                if not exporter or exporter.lower() in name
            ]}
            for name, found in joined.items()
        ],
    }  # fmt: skip
    output = rule_checks.tested(rule_checks.needed(" or ".join(joined)), [test], tmp_path)
    assert "SUCCESS" in output, output


def test_a_label_is_never_a_command(tmp_path: Path) -> None:
    """The annotation `shell` sets each variable to a text in quotes, whatever Prometheus puts into it."""
    job = "a'; echo hostile; '$(echo hostile)"
    alert = next(each for each in alerting.enabled(Site()) if each.name == "JaxTargetDown")
    case = dataclasses.replace(alert.cases[0], series={f'up{{job="{job}"}}': "0x9"}, at="1m", fires=())
    fired = {**alerting.rule(alert, Site()), "expr": "up == 0", "for": "0s"}
    output = rule_checks.tested([{"name": "own", "rules": [fired]}], [alerting.test(alert, [case], Site())], tmp_path)
    (line,) = re.findall(r'shell="(.*?)"(?:,|\})', output)
    done = subprocess.run(["sh", "-c", f'{line}; printf %s "$JOB"'], capture_output=True, text=True, check=True)
    assert done.stdout == job.replace("'", "")


def test_samples_that_nobody_looks_at_are_cut_off() -> None:
    """In promtool's notation: `axN` are N + 1 samples, `_xN` are N."""
    for values, most, kept in (
        ("1x19 0x60", 20, "1x19"), ("1x19 0x60", 22, "1x19 0x1"), ("_x20 1x60", 21, "_x20 1x0"), ("0+2x9", 4, "0+2x3"),
        ("_x20 1", 5, "_x5"), ("1 2 3", 2, "1 2"), ("1x3", 9, "1x3"),
    ):  # fmt: skip
        assert shipped_tests._cut(values, most) == kept


@pytest.mark.slow
@pytest.mark.settled
def test_every_case_holds(outcomes: list[rule_checks.Outcome]) -> None:
    """Each alert fires, waits, keeps quiet and ends as its cases say, with its labels and annotations."""
    assert "\n".join(each.failure for each in outcomes if each.failure) == ""


@pytest.mark.slow
@pytest.mark.settled
@pytest.mark.parametrize("kind", rule_checks.REQUIRED)
def test_every_change_is_noticed(outcomes: list[rule_checks.Outcome], kind: str) -> None:
    """A case fails for each changed threshold, operator or time to wait."""
    left = [f"{each.alert}: {mutant.what}" for each in outcomes for mutant in each.survived if mutant.kind == kind]
    assert left == []


@pytest.mark.slow
@pytest.mark.settled
def test_most_changed_ranges_are_noticed(outcomes: list[rule_checks.Outcome]) -> None:
    """Halving or doubling a range changes what fires in one of the cases, but where it only bridges gaps."""
    killed = sum(mutant.kind == "window" for each in outcomes for mutant in each.killed)
    survived = [
        f"{each.alert}: {mutant.what}" for each in outcomes for mutant in each.survived if mutant.kind == "window"
    ]
    assert killed >= 0.8 * (killed + len(survived)), survived


def test_what_is_wrong_is_found() -> None:
    """The checks themselves: an alert with a mistake of each kind has each of them told."""
    some = next(iter(ALERTS.values()))
    wrong = dataclasses.replace(
        some,
        summary="no sentence",
        description="Nothing.",
        texts=Given(some.runbook, ()),
        panel=("nowhere", "none"),
        for_="10s",
        expr="jax_compilations_total{@} > 3 or rate(jax_live_arrays[5m]) > 1",
    )
    told = "\n".join(rule_checks.mistakes(wrong))
    for part in (
        "its summary is no capitalised sentence",
        "it has no template",
        "the counter jax_compilations_total is taken as it stands",
        "rate() of jax_live_arrays, which is no counter",
        "jax_live_arrays is asked for without a matcher of the job",
        "it waits for 10s",
        "there is no dashboard nowhere",
        "no case is of the kind counter_reset",
    ):
        assert part in told
    colour = dataclasses.replace(some, expr='jax_live_arrays{@, colour="red"} > 3')
    assert any("colour" in text for text in rule_checks.mistakes(colour))
