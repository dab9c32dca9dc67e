"""Names that come from the user's program and logs: a misspelt one gets the nearest that there is."""

import json
import pathlib
import re

import pytest
from helpers.answering import serving
from helpers.made_by_hand import compilation
from helpers.top_snapshots import CannedEndpoint, snapshot

import jaxobs
from jaxobs import cli
from jaxobs.base import config
from jaxobs.base.errors import JaxobsError
from jaxobs.facts.events import as_event
from jaxobs.facts.steps import Step
from jaxobs.web import endpoints
from tools.ports import free_port


@pytest.fixture
def log(tmp_path: pathlib.Path) -> str:
    step = Step(
        time=3.0, pid=41007, sequence=3, loop="train", count=9, last=9, seconds=1.0, least_seconds=0.1,
        most_seconds=0.2, median_seconds=0.1,
    )  # fmt: skip
    events = (
        compilation(pid=41007, function="__main__.train_step"), step,
        compilation(pid=41008, process_index=1, function="models.layers.attention"),
    )  # fmt: skip
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(as_event(each)) + "\n" for each in events))
    return str(path)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("explain LOG --function trian_step", "train_step"),
        ("explain LOG --function layer.attention", "layers.attention"),
        ("explain LOG --function nothing_like_it", None),
        ("report LOG --process 41017", "41007"),
        ("report LOG --process 5", None),
        ("compare LOG LOG --process 11", "1"),
        ("compare LOG LOG --loop trian", "train"),
        ("compare LOG LOG --loop zzz", None),
    ],
)
def test_names_in_a_log(line: str, meant: str | None, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line.replace("LOG", log).split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.findall(r"Did you mean `([^`]*)`\?", said.err) == ([] if meant is None else [meant])
    known = {"explain": "`__main__.train_step`, `models.layers.attention`", "report": "0 (pid 41007), 1 (pid 41008)"}
    assert known.get(line.partition(" ")[0], "`train`" if "--loop" in line else "It has: 0, 1.") in said.err


def test_names_of_settings_variables_and_actions() -> None:
    with pytest.raises(JaxobsError, match=r"Did you mean `sample_interval`\?"):
        config.resolve({"sample_intervall": 1.0}, {})
    (said,) = config.unknown_variables({"JAXOBS_EVNT_LOG": "x"})
    assert "Did you mean `JAXOBS_EVENT_LOG`?" in said
    with pytest.raises(JaxobsError, match=r"Did you mean `profile`\?"):
        jaxobs.capture("profil")


def test_an_address_that_does_not_answer_gets_those_that_are_served(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    port = str(free_port())
    assert cli.main(["top", port]) == 2
    assert "Served on this machine" not in capsys.readouterr().err
    with serving(CannedEndpoint(snapshot()).answer) as url:
        withdraw = endpoints.announce(f"{url}/", int(url.rpartition(":")[2]), "train.py")
        assert cli.main(["top", port]) == 2
        assert f"Served on this machine: {url}/ (train.py, pid " in capsys.readouterr().err
        withdraw()
