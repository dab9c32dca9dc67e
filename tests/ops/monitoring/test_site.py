"""A site's choices: what is read, and what each mistake is told as."""

import dataclasses
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jaxobs.base.errors import MissingExtraError, SettingError
from jaxobs.ops.monitoring import alerting, generate, promql, site
from jaxobs.ops.monitoring.site import Site
from tools.monitoring_checks import label_flow

WHOLE = (Path(__file__).parent / "site.toml").read_text()

MISTAKES = tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text())["sites"]


def written(folder: Path, text: str, name: str = "site.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["site.toml", "site.yaml"])
def test_a_file_that_nobody_wrote_by_hand_is_not_read(name: str, tmp_path: Path) -> None:
    """Without end too: the rest is not looked at."""
    for path in (written(tmp_path, "#" * (2**20 + 1), name), Path("/dev/zero")):
        with pytest.raises(
            SettingError, match=r"has more than 1,048,576 letters\. Check whether this is the right file\."
        ):
            site.read(path)


def test_what_a_site_chooses_is_in_its_rules(tmp_path: Path) -> None:
    """Targets, functions, thresholds, times, severities and addresses; quotes in a value stay part of it."""
    chosen = site.read(written(tmp_path, WHOLE))
    alerting.check(chosen)
    rules = {rule["alert"]: rule for group in alerting.alert_groups(chosen) for rule in group["rules"]}
    storm = rules["JaxRecompilationStorm"]
    assert storm["for"] == "10m" and storm["labels"]["severity"] == "info" and storm["expr"].count("> 20\n") == 1
    assert storm["annotations"]["runbook_url"] == "https://wiki.example.org/jaxobs/JaxRecompilationStorm.md"
    for selector in promql.selectors(storm["expr"]):
        matchers = {(each.name, each.value) for each in selector.matchers.matchers}
        assert {("job", "train-.*"), ("pool", 'a"b')} <= matchers
        assert ("function", "trainer.*|evaluate") in matchers or selector.name == "jax_process_start_timestamp_seconds"
    # The cases are of series without these labels and with the declared values.
    assert "alerts/jaxobs.tests.yaml" not in generate.files("alerts", chosen)
    assert "alerts/jaxobs.tests.yaml" in generate.files("alerts", Site(runbook_url="https://wiki.example.org"))


def test_what_is_recorded_is_not_asked_for_labels_that_it_lost(tmp_path: Path) -> None:
    """The targets were chosen where it was recorded; sums over a job, and other exporters, lack labels of a cluster."""
    chosen = site.read(written(tmp_path, WHOLE))
    recorded = {rule["record"] for group in alerting.recording_groups(chosen) for rule in group["rules"]}
    exprs = [rule["expr"] for group in alerting.recording_groups(chosen) for rule in group["rules"]]
    exprs += [rule["expr"] for group in alerting.alert_groups(chosen) for rule in group["rules"]]
    asked = {True: 0, False: 0}
    for selector in (each for expr in exprs for each in promql.selectors(expr)):
        labels = {each.name for each in selector.matchers.matchers}
        without = selector.name in {*recorded, *label_flow.OTHER_EXPORTERS, "ALERTS"}
        assert ("pool" in labels) != without, selector.prettify()
        asked["pool" in labels] += 1
    assert min(asked.values()) > 50


def test_yaml_says_the_same_as_toml(tmp_path: Path) -> None:
    """The file's name says which of both it is."""
    text = "job: train\nalerts: {JaxRecompilationStorm: {for: 10m, enabled: false}}\n"
    chosen = site.read(written(tmp_path, text, "site.yaml"))
    assert chosen.job == "train" and chosen.alerts["JaxRecompilationStorm"].for_ == "10m"
    assert "JaxRecompilationStorm" not in {each.name for each in alerting.enabled(chosen)}
    assert site.read(written(tmp_path, "", "empty.yml")) == Site()
    for wrong in ("- a\n", "a: [\n"):
        with pytest.raises(SettingError, match=r"site\.yaml (contains a list|is not valid YAML)"):
            site.read(written(tmp_path, wrong, "site.yaml"))


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_value(tmp_path: Path, text: str) -> None:
    """Unknown names, wrong types, values out of bounds, no TOML."""
    with pytest.raises(SettingError) as found:
        alerting.check(site.read(written(tmp_path, text)))
    assert MISTAKES[text] in str(found.value)


def test_the_command_takes_a_file_and_flags(tmp_path: Path) -> None:
    """Flags win over the file; a mistake is one line and exit code 2."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "jaxobs", "generate", "alerts", "--out", str(tmp_path), *arguments],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    path = str(written(tmp_path, WHOLE))
    assert run("--site", path, "--job", "serve", "--matcher", "zone=b").returncode == 0
    text = (tmp_path / "alerts/jaxobs.rules.yaml").read_text(encoding="utf-8")
    assert 'job=~"serve", pool="a\\"b", zone="b"' in text and "train-" not in text
    for wrong, told in (
        (("--site", str(tmp_path / "none.toml")), "none.toml: No such file"),
        (("--matcher", "zone"), "--matcher zone: write it as LABEL=VALUE."),
        (("--job", "("), "is not a valid regular expression"),
    ):
        done = run(*wrong)
        assert done.returncode == 2 and told in done.stderr and done.stderr.count("\n") == 1


def test_the_reference_page_says_something_of_every_setting() -> None:
    """A row has values and a sentence for each; the example above the table is one that is taken."""
    page = generate.files("reference")["docs/reference/site.md"]
    rows = [row.split(" | ") for row in page.splitlines() if row.startswith("| `")]
    kinds = (Site, site.Prices, site.AlertChoice, site.ObjectiveChoice)
    wanted = [each.name.removesuffix("_") for kind in kinds for each in dataclasses.fields(kind)]
    assert [row[0].strip("| `") for row in rows] == wanted
    assert all(len(row) == 4 and row[3].endswith(". |") for row in rows)
    example = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])
    assert example.pop("slos") == "slos.yaml"
    alerting.check(site.checked(example, "the page"))


def test_without_the_parser_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runbooks ask which series a rule reads: not a traceback, but what to install."""
    monkeypatch.setitem(sys.modules, "promql_parser", None)
    with pytest.raises(MissingExtraError, match=r"needs `promql-parser`, from the extra `grafana`"):
        generate.files("runbooks")


def test_latency_is_promised_by_route() -> None:
    """An objective for each route, of a bucket that there is; none by default."""
    assert not [each.name for each in alerting.wanted_objectives(Site()) if "latency" in each.name]
    chosen = Site(latency={"/v1/chat": 10.0, "/": 0.25})
    found = {each.name: each for each in alerting.wanted_objectives(chosen) if "latency" in each.name}
    assert found.keys() == {"request-latency-v1-chat", "request-latency-root"}
    assert 'route="/v1/chat", le="10.0"' in found["request-latency-v1-chat"].bad
    assert 'outcome!="ok"' in found["request-latency-v1-chat"].total
    names = {alert.name for alert in alerting.enabled(chosen)}
    assert {"JaxSloRequestLatencyV1ChatBurn", "JaxSloRequestLatencyRootBurn"} <= names
    for wrong, told in (
        ({"/a": 1.5}, r"latency\./a: 1\.5 is not the bound of a bucket of `jax_request_seconds`\. Bounds: 0\.001"),
        ({"/a": 1.0, "/a/": 1.0}, "as that of another route"),
    ):
        with pytest.raises(SettingError, match=told):
            Site(latency=wrong)


def test_jobs_are_told_apart_by_the_labels_of_the_site() -> None:
    """The labels are in every aggregation and join of the rules, in what inhibits, and in the links of alerts."""
    address = "https://agent.example.org"
    chosen = Site(grouping=("team", "job"), grafana_url="https://grafana.example.org", reports_url=f"{address}/")
    exprs = [rule["expr"] for group in alerting.recording_groups(chosen) for rule in group["rules"]]
    rules = [rule for group in alerting.alert_groups(chosen) for rule in group["rules"]]
    lists = [
        found
        for expr in (*exprs, *(r["expr"] for r in rules))
        for found in re.findall(r"\b(?:by|on) \(([^)]*)\)", expr)
    ]
    by_job = [each for each in lists if "job" in each.split(", ")]
    assert len(by_job) > 100 and all(each.startswith("team, job") for each in by_job)
    assert {each for each in lists if "namespace" in each} == {"cluster, namespace, pod"}, "by which pods are joined"
    assert all("var-team={{ $labels.team | urlquery }}" in rule["annotations"]["dashboard_url"] for rule in rules)
    report = f"{address}/?team={{{{ $labels.team | urlquery }}}}&job={{{{ $labels.job | urlquery }}}}"
    assert {rule["annotations"]["report_url"] for rule in rules} == {report}
    for wrong, told in ((("namespace",), "`job` must be one"), (("job", "instance"), "'instance' is not a label")):
        with pytest.raises(SettingError, match=told):
            Site(grouping=wrong)
