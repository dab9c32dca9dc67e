"""The command line around the reports: summary, postmortem, schema, and what it refuses."""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import jsonschema
import pytest

from jaxobs import cli
from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import report as reports
from jaxobs.ops.agent import summaries
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.store import Store

NOW = 1_769_850_000.0


def made(days_ago: float, **changes: Any) -> Report:
    """A report that was opened so long ago."""
    opened = NOW - days_ago * 86_400
    name = time.strftime("%Y%m%d-%H%M%S-train-abcdef", time.gmtime(opened))
    alert = {
        "name": "JaxStraggler", "labels": {}, "summary": "", "severity": "warning", "status": "resolved",
        "starts_at": None, "ends_at": None, "fingerprint": "f", "notifications": 1, "confirmed": True, "runbook": "r",
    }  # fmt: skip
    cause = {
        "id": "straggler", "title": "One | is slow", "component": "c:9464", "impact": "slow",
        "onset": timestamp(opened - 30),
        "evidence": ["e1"], "fix": "Check <b>that</b> host.", "runbook": "r", "victims": [], "consequences": [],
        "explains_alert": True,
    }  # fmt: skip
    body: dict[str, Any] = {
        "id": name, "fingerprint": "f", "revision": 1, "state": "closed", "subject": {"labels": {}, "name": "train"},
        "severity": "warning", "impact": "slow", "verdict": "cause", "headline": "train: slow", "what_happened": "It.",
        "opened_at": timestamp(opened), "investigated_at": timestamp(opened), "resolved_at": timestamp(opened + 1800),
        "seconds": 1.5, "notifications": 2, "alerts": [alert], "runbooks": ["JaxStraggler"], "causes": [cause],
        "other_faults": [], "hypotheses": [], "steps": [], "timeline": [], "do_now": [], "do_for_good": ["Check it."],
        "evidence": [{"id": "e1", "source": "s", "place": 1, "time": None, "process": None, "text": "`evil` | text"}],
        "blast_radius": {"processes": 4, "unreachable": [], "affected": [], "alerts_firing": [], "summary": "1 of 4."},
        "context": {"cache_hits": 0.25, "cache_requests": 40.0, "versions": {"jax": ["0.9", "0.10"]},
                    "version_changes": ["a: jax 0.9 -> 0.10"], "restarts": 4},
        "verify": [], "collect": [], "not_looked_at": [], "suggested_actions": [], "jaxobs": "0",
        "verification": {"at": timestamp(opened + 1900), "result": "recovered", "because": "It ended.", "steps": []},
    }  # fmt: skip
    return Report.model_validate({**body, **changes})


def test_a_week_is_summed_up() -> None:
    open_one = made(
        2, verdict="inconclusive", causes=[], verification=None, resolved_at=None, headline="# evil\nheading"
    )
    page = summaries.summary([made(1), open_one, made(9), made(40)], NOW)
    assert "2 incidents; 1 in as many days before." in page
    assert "| train | 2 | `straggler` 1 |" in page
    assert "| JaxStraggler | 2 | 1 | 0 |" in page
    assert "30 min (median)" in page and "verified: recovered 1" in page
    assert "25% of 40" in page and "`a: jax 0.9 -> 0.10`" in page and "`0.9` and `0.10`" in page
    assert "\n# evil" not in page and "\nheading" not in page


def test_a_week_without_incidents() -> None:
    assert "0 incidents; 0 in as many days before." in summaries.summary([], NOW)


def test_a_postmortem_is_drafted() -> None:
    page = summaries.postmortem(made(1))
    for each in (
        "# Postmortem (draft): train: slow", "One \\| is slow (`straggler`) at `c:9464`, evidence e1",
        "- [ ] Check it.",
        "from the first sign to the first webhook: 30 s", "hits of the persistent cache: 25% of 40", "to be filled in",
        "`a: jax 0.9 -> 0.10`", "Verified: recovered. It ended.",
    ):  # fmt: skip
        assert each in page, each


def test_the_commands_print_them(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(str(tmp_path))
    report = made((NOW - time.time()) / 86_400 + 1)
    store.write_report(report)
    (tmp_path / "20260131-090500-broken.json").write_text("{")
    (tmp_path / "notes.json").write_text("{}")
    assert cli.main(["agent", "summary", "--reports", str(tmp_path)]) == 0
    assert "1 incident;" in capsys.readouterr().out
    assert cli.main(["agent", "postmortem", report.id, "--reports", str(tmp_path)]) == 0
    assert "# Postmortem" in capsys.readouterr().out
    assert cli.main(["agent", "postmortem", "../../etc/passwd", "--reports", str(tmp_path)]) == 2
    assert report.id in capsys.readouterr().err


def test_reports_fit_their_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agent", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == reports.schema()
    jsonschema.validate(json.loads(made(1).model_dump_json()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**made(1).model_dump(mode="json"), "verdict": "blame"}, schema)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--reports DIR"),
        (["--reports", "r"], "--prometheus URL"),
        (["--reports", "r", "--prometheus", "prometheus:9090"], "http://localhost:9090"),
        (["--reports", "r", "--prometheus", "http://p", "--listen", "9465"], "127.0.0.1:9465"),
        (["--reports", "r", "--prometheus", "http://p", "--window", "1"], "from 60"),
        (["--reports", "r", "--prometheus", "http://p", "--token-file", "/nowhere"], "cannot be read"),
        (["--reports", "/proc/none", "--prometheus", "http://p"], "cannot be written"),
        (["summary", "--reports", "/nowhere"], "not a folder"),
        (["summary", "X", "--reports", "/"], "takes no incident"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agent", *arguments]) == 2
    assert said in capsys.readouterr().err
