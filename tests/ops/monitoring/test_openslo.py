"""Objectives in files: what is written is read back, and what each mistake is told as."""

import dataclasses
import subprocess
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from helpers import rule_checks

from jaxobs.base.errors import SettingError
from jaxobs.ops.monitoring import alerting, generate, openslo, site
from jaxobs.ops.monitoring.objectives import objectives
from jaxobs.ops.monitoring.site import ObjectiveChoice, Site

OWN = (Path(__file__).parent / "objective.yaml").read_text(encoding="utf-8")

_TABLE = tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text(encoding="utf-8"))["objectives"]
MISTAKES = {(each["text"], each["instead"]): each["said"] for each in _TABLE}


def written(folder: Path, text: str, name: str = "slos.yaml") -> Path:
    """The file with that text."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """All built-in objectives come back, with everything that the rules are made of."""
    brought = objectives()
    path = written(tmp_path, openslo.text(brought, "alerts"))
    own = {"guide": None, "example": None, "denominator": "", "absent": "", "pages": True, "extended": False,
           "culprit": ("", ""), "inhibits": ()}  # fmt: skip
    bare = [dataclasses.replace(each, **own, description=each.text()) for each in brought]  # type: ignore[arg-type]
    assert list(openslo.read(path)) == bare
    assert all(isinstance(each.target, Decimal) for each in openslo.read(path))


def test_a_copy_of_the_built_in_objectives_changes_nothing(tmp_path: Path) -> None:
    """A site with the generated file has the same rules, tests and runbooks until something is changed in it."""
    path = written(tmp_path, generate.files("alerts")["alerts/jaxobs.slos.yaml"])
    own = Site(slos=openslo.read(path))
    assert generate.files("alerts", own) == generate.files("alerts")
    assert generate.files("runbooks", own) == generate.files("runbooks")


def test_an_objective_of_ones_own_has_rules_alerts_and_a_runbook(tmp_path: Path) -> None:
    """The site's file names it from its own folder; promtool takes the rules."""
    written(tmp_path, OWN)
    path = written(tmp_path, 'slos = "slos.yaml"\n[objectives.train-steps]\nperiod = "30d"\n', "site.toml")
    arguments = ["generate", "all", "--site", str(path), "--job", "train", "--out", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "jaxobs", *arguments], check=True, capture_output=True)
    checked = rule_checks.promtool(
        "check", "rules", "--lint=all", "--lint-fatal", "jaxobs.rules.yaml", folder=tmp_path / "alerts"
    )
    assert "SUCCESS" in checked and "FAILED" not in checked, checked
    groups = yaml.safe_load((tmp_path / "alerts/jaxobs.rules.yaml").read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    alerts = [rule for rule in rules if rule.get("alert") == "JaxSloTrainStepsBurn"]
    assert [rule["labels"]["long"] for rule in alerts] == ["1h", "6h", "1d", "3d"]
    assert {rule["labels"]["team"] for rule in alerts} == {"research"}
    assert "> 0.072\n" in alerts[0]["expr"]  # 14.4 times 0.5 %
    [bad] = [
        r["expr"] for r in rules if r.get("labels", {}).get("slo") == "train-steps" and "jax_slo_bad" in r["record"]
    ]
    assert 'jax_step_seconds_bucket{job=~"train", le="1.0"}' in bad
    page = (tmp_path / "runbooks/JaxSloTrainStepsBurn.md").read_text(encoding="utf-8")
    assert "Steps take less than a second. The objective is 99.5 % over 30d" in page
    assert "name: train-steps" in (tmp_path / "alerts/jaxobs.slos.yaml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_all_is_bad_where_nothing_good_is_counted(tmp_path: Path) -> None:
    """All that is not counted as good is bad, whether the good have a series or not."""
    [own] = openslo.read(written(tmp_path, OWN))
    groups = [group for group in alerting.recording_groups(Site(slos=(own,))) if group["name"] == "jaxobs-slo"]

    def test(name: str, bucket: str | None, share: float | None) -> dict[str, object]:
        one = '{job="train", instance="a:9464", loop="l"'
        given = {f"jax_step_seconds_count{one}}}": "0+60x30"}
        if bucket is not None:
            given[f'jax_step_seconds_bucket{one}, le="1.0"}}'] = bucket
        chosen = '{instance="all", job="train", slo="train-steps"}'
        expr = 'job_instance_slo:jax_slo_errors:ratio_rate5m{slo="train-steps"}'
        samples = [{"labels": "job_instance_slo:jax_slo_errors:ratio_rate5m" + chosen, "value": share}]
        asked = {"expr": expr, "eval_time": "20m", "exp_samples": samples}
        series = [{"series": each, "values": values} for each, values in given.items()]
        return {"name": name, "interval": "1m", "input_series": series, "promql_expr_test": [asked]}

    tests = [test("half", "0+30x30", 0.5), test("none", None, 1.0), test("all", "0+60x30", 0.0)]
    output = rule_checks.tested(groups, tests, tmp_path)
    assert "SUCCESS" in output and "FAILED" not in output, output


@pytest.mark.parametrize(("change", "told"), MISTAKES.items(), ids=[new for _, new in MISTAKES])
def test_mistakes_are_told_with_their_place(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    """The file, which of its objectives, the place in it, and the value."""
    assert change[0] in OWN
    path = written(tmp_path, OWN.replace(*change))
    with pytest.raises(SettingError) as caught:
        openslo.read(path)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


def test_mistakes_across_a_file_and_in_the_site(tmp_path: Path) -> None:
    """A name twice, a list in the place of a document, a missing file, and a path that is none are refused."""
    with pytest.raises(
        SettingError, match=r"document 2 \(train-steps\): `metadata.name` is 'train-steps', which results"
    ):
        openslo.read(written(tmp_path, f"{OWN}---\n{OWN}"))
    with pytest.raises(SettingError, match=r"document 1: `it` is \['a'\]"):
        openslo.read(written(tmp_path, "- a\n"))
    assert openslo.read(written(tmp_path, "---\n")) == ()
    with pytest.raises(SettingError, match=r"Cannot read .*none\.yaml: No such file"):
        site.read(written(tmp_path, 'slos = "none.yaml"', "site.toml"))
    with pytest.raises(SettingError, match="`slos` is 3: it must be the path"):
        site.read(written(tmp_path, "slos = 3", "site.toml"))
    unknown = Site(slos=openslo.read(written(tmp_path, OWN)), objectives={"steps": ObjectiveChoice()})
    with pytest.raises(
        SettingError, match=r"objectives\.steps: there is no such objective. Did you mean `train-steps`\? Known: .*"
    ):
        alerting.check(unknown)
