"""The command line around the reports: summary, postmortem, schema, and what it refuses."""

import json
import pathlib
import time

import jsonschema
import pytest
from helpers.written_reports import HERE, NOW, made

from jaxobs import cli
from jaxobs.ops.agent import rendering, summaries
from jaxobs.ops.agent import report as reports
from jaxobs.ops.agent.store import Store


def test_a_week_is_summed_up() -> None:
    open_one = made(
        2, verdict="inconclusive", causes=[], verification=None, resolved_at=None, headline="# evil\nheading"
    )
    assert summaries.summary([made(1), open_one, made(9), made(40)], NOW) == (HERE / "week.md").read_text()
    known = {"thread": "https://github.com/a/b/issues/1", "what": "The disk was full.", "cure": "Free `/tmp`."}
    assert f"- {known['what']} {known['cure']} ([thread]({known['thread']}))" in rendering.markdown(
        made(1, known=[known])
    )


def test_a_week_without_incidents() -> None:
    assert "0 incidents; 0 in as many days before." in summaries.summary([], NOW)


def test_a_postmortem_is_drafted() -> None:
    assert summaries.postmortem(made(1)) == (HERE / "postmortem.md").read_text()


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
