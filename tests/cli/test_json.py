"""Output of the commands for scripts: with `--json` one object on the standard output, and nothing else."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
from typing import Any

import pytest
from helpers.answering import serving
from helpers.made_by_hand import compilation
from helpers.top_snapshots import CannedEndpoint, compilations, finding, snapshot

from jaxobs import cli
from jaxobs.base import discovery
from jaxobs.cli.caching import Subcommand
from jaxobs.facts.events import as_event, plain
from jaxobs.facts.verdicts import Verdict, VerdictFinding

WITHOUT = {"agent", "cache", "completion", "demo", "generate", "mcp", "run"}
"""Commands that print a script, start a program, serve, or write files; the subcommands of `cache` have `--json`."""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.main(arguments) == 0
    said = capsys.readouterr()
    body: dict[str, Any] = json.loads(said.out)
    return body


def test_every_command_that_tells_something_has_it() -> None:
    for form, left_out in ((cli.Command, WITHOUT), (Subcommand, set[str]())):
        for module in discovery.modules(form):
            name = discovery.short_name(module)
            parser = cli.Parser(name, module.HELP)
            module.configure(parser)
            assert ("--json" in parser._option_string_actions) == (name not in left_out), name


def test_top_prints_the_snapshot_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    entry = VerdictFinding(id="a", title="It is slow.", severity="warning")
    state = snapshot(findings=(finding(1),), verdict=Verdict(verdict="fix", headline="It is slow.", findings=(entry,)))
    with serving(CannedEndpoint(state, compilations()).answer) as url:
        body = printed(capsys, "top", url, "--json")
        assert body == plain(state) == printed(capsys, "top", "--once", "--json", url)
        assert (body["verdict"]["verdict"], body["verdict"]["findings"][0]["title"]) == ("fix", "It is slow.")


def test_report_says_where_it_is_and_what_it_found(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(as_event(compilation(pid=each))) + "\n" for each in (41, 42)))
    body = printed(capsys, "report", str(log), "--json")
    out = pathlib.Path(body["report"])
    assert out == tmp_path / "events.html" and out.stat().st_size == body["bytes"] and body["notes"] == []
    told = [(each["pid"], each["compilations"], each["verdict"]) for each in body["processes"]]
    assert told == [(41, 1, "watch"), (42, 1, "watch")]
    assert all(each["headline"] for each in body["processes"])
    assert cli.main(["report", str(log), "--json", "--out", "-"]) == 2
    assert "both write to the standard output" in capsys.readouterr().err


def test_a_dumb_terminal_and_no_keyboard(tmp_path: pathlib.Path) -> None:
    """A plain snapshot has no escape code, whatever the input is."""
    command = [sys.executable, "-m", "jaxobs", "top"]
    with serving(CannedEndpoint(snapshot(), compilations()).answer) as url:
        script = f"script -qec {shlex.quote(shlex.join([*command, url]))} /dev/null < /dev/null"
        ended = subprocess.run(
            ["bash", "-c", script], env={**os.environ, "TERM": "dumb"}, capture_output=True, text=True, timeout=120
        )
    assert ended.returncode == 0 and "train_step" in ended.stdout and "q quit" not in ended.stdout
    assert "\x1b[?1049h" not in ended.stdout
