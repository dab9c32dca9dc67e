"""Tokens: no command line takes one, and nothing that a run prints or writes repeats it."""

import argparse
import dataclasses
import pathlib
import subprocess
import sys

import pytest
from helpers.paths import ROOT

from jaxobs import cli
from jaxobs.base import config
from jaxobs.base.errors import SettingError
from tools.ports import free_port

TOKEN = "open-sesame-0123456789"
PROGRAM = """
import json, jax, jaxobs, urllib.request
jax.jit(lambda x: x + 1)(1)
print(open("/proc/self/cmdline").read(), jaxobs.snapshot(), repr(jaxobs), flush=True)
raise RuntimeError("to see what a failure says")
"""


def test_every_option_for_a_token_names_a_file() -> None:
    for command in cli.discovery.modules(cli.Command):
        parser = argparse.ArgumentParser()
        command.configure(parser)
        options = [each for action in parser._actions for each in action.option_strings if "token" in each]
        assert all(each.endswith("-file") for each in options), options
    secrets = {each.name for each in dataclasses.fields(config.Settings) if each.metadata["secret"]}
    assert {name for name in config.names() if name.endswith("_token")} == secrets - {"pushgateway"}
    assert config.flag("read_token") == "--read-token-file" and config.flag("event_log") == "--event-log"


def test_a_run_whose_tokens_come_from_files_shows_them_nowhere(tmp_path: pathlib.Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable, "-m", "jaxobs", "run", "--port", str(free_port()), "--event-log", "log.jsonl",
            "--flight-recorder", "last.txt", "--actions", "--read-token-file", "token", "--action-token-file", "token",
            "program.py",
        ],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "", "JAX_PLATFORMS": "cpu", "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "to see what a failure says" in done.stderr and "1 compilation" in done.stdout
    assert "--read-token-file" in done.stdout and TOKEN not in done.stdout + done.stderr
    files = [each for each in tmp_path.rglob("*") if each.is_file() and each.name != "token"]
    assert len(files) >= 2 and not [each for each in files if TOKEN.encode() in each.read_bytes()]


@pytest.mark.parametrize(
    ("body", "said"),
    [(None, "cannot be read: No such file"), (b"", "none in it"), (b"a\nb", "none in it"), (b"\xff", "not ASCII")],
)
def test_a_file_without_a_token_is_refused_and_not_repeated(
    tmp_path: pathlib.Path, body: bytes | None, said: str
) -> None:
    """A token that is given in place of the file is not found in a log."""
    path = tmp_path / "hunter2"
    if body is not None:
        path.write_bytes(body)
    with pytest.raises(SettingError, match=said) as caught:
        cli.token_in("--read-token-file", str(path))
    assert "hunter2" not in str(caught.value)


def test_a_token_is_read_without_the_end_of_its_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "token").write_text(f" {TOKEN}\r\n", encoding="utf-8")
    args = argparse.Namespace(read_token=str(tmp_path / "token"), port=1)
    assert cli.given_settings(args) == {"read_token": TOKEN, "port": 1}
