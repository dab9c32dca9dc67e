"""The command line: commands found by folder, exit codes, and flags that come from the settings."""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import jaxobs
from jaxobs import cli, config, discovery
from jaxobs.config import Settings
from jaxobs.errors import JaxobsError, MissingExtraError
from jaxobs.version import __version__

ROOT = Path(jaxobs.__file__).parents[1]
COMMANDS = {module.__name__.rpartition(".")[2]: module for module in discovery.modules("jaxobs.cli")}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_module_is_a_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every module in the folder says what it does in a line, and has a help of its own."""
    command = COMMANDS[name]
    assert command.HELP.strip() and "\n" not in command.HELP
    with pytest.raises(SystemExit) as exit:
        cli.main([name.replace("_", "-"), "--help"])
    assert exit.value.code == 0
    printed = capsys.readouterr().out
    assert f"jaxobs {name.replace('_', '-')}" in printed
    assert command.HELP[1:].rstrip(".") in " ".join(printed.split())


def test_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """With its line each; the same without arguments, but for the exit code."""
    assert cli.main(["--help"]) == 0
    printed = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name.replace('_', '-')} " in printed
        assert command.HELP in printed
    assert max(map(len, printed.splitlines())) <= 110
    assert cli.main([]) == 2
    assert capsys.readouterr().out == printed


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Name and version."""
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"jaxobs {__version__}\n"


def test_an_unknown_command_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """And is a usage error."""
    assert cli.main(["rnu", "script.py"]) == 2
    known = ", ".join(sorted(name.replace("_", "-") for name in COMMANDS))
    assert capsys.readouterr().err == f"jaxobs: Unknown command `rnu`. Known commands: {known}. Try: jaxobs --help\n"


def test_an_unknown_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """As argparse has it, with no abbreviation taken for the whole."""
    for option in ("--no-such-option", "--sample-inter"):
        with pytest.raises(SystemExit) as exit:
            cli.main(["run", option, "1", "script.py"])
        assert exit.value.code == 2
        assert f"unrecognized arguments: {option}" in capsys.readouterr().err


def test_run_wants_something_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Options alone are a usage error."""
    for arguments in (["run"], ["run", "--port", "0"], ["run", "--"], ["run", "-m"], ["run", "--port"]):
        with pytest.raises(SystemExit) as exit:
            cli.main(arguments)
        assert exit.value.code == 2
    assert "name a SCRIPT, or -m MODULE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "settings", "module", "script", "rest"),
    [
        ("a.py", {}, None, "a.py", []),
        ("a.py --port 5 -m b -- c", {}, None, "a.py", ["--port", "5", "-m", "b", "--", "c"]),
        ("--port 0 a.py --port 5", {"port": "0"}, None, "a.py", ["--port", "5"]),
        ("--port=0 --no-static-values a.py x", {"port": "0", "static_values": False}, None, "a.py", ["x"]),
        ("-m b.c --port 5 -- d", {}, "b.c", None, ["--port", "5", "--", "d"]),
        ("--addr :: -m b", {"addr": "::"}, "b", None, []),
        ("-mb -x", {}, "b", None, ["-x"]),
        ("--event-log run a.py", {"event_log": "run"}, None, "a.py", []),
        ("-- -odd.py -x", {}, None, "-odd.py", ["-x"]),
        ("--instrument a:b --instrument c:d e.py", {"instrument": ["a:b", "c:d"]}, None, "e.py", []),
    ],
)
def test_options_of_run_end_where_the_script_begins(
    arguments: str, settings: dict[str, object], module: str | None, script: str | None, rest: list[str]
) -> None:
    """What follows SCRIPT or `-m MODULE` is untouched, whatever it looks like."""
    run = COMMANDS["run"]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    run.configure(parser)
    args = run.parse(parser, arguments.split())
    assert (cli.given_settings(args), args.module, args.script, args.rest) == (settings, module, script, rest)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A command named `made-up` that does what its `run` is set to."""
    module = ModuleType("jaxobs.cli.made_up")
    module.HELP = "do what it is told"  # type: ignore[attr-defined]
    module.configure = lambda parser: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(cli, "_names", lambda: ["made-up"])
    yield module


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (JaxobsError("`x` is 1. Say 2."), "jaxobs: `x` is 1. Say 2.\n"),
        (
            MissingExtraError("jaxobs top", "rich", "cli"),
            "jaxobs: `jaxobs top` needs `rich`. Install it with: pip install 'jaxobs[cli]'\n",
        ),
    ],
)
def test_an_error_of_ours_is_a_line_on_stderr(
    error: Exception, message: str, command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, and exit code 2."""
    command.run = lambda args: (_ for _ in ()).throw(error)  # type: ignore[attr-defined]
    assert cli.main(["made-up"]) == 2
    assert capsys.readouterr() == ("", message)


def test_exit_codes_are_the_commands(command: ModuleType) -> None:
    """What `run` returns, or what the function that it returns does."""
    command.run = lambda args: 1  # type: ignore[attr-defined]
    assert cli.main(["made-up"]) == 1
    command.run = lambda args: lambda: 3  # type: ignore[attr-defined]
    assert cli.main(["made-up"]) == 3


def test_an_interrupt_ends_quietly(command: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """With 130, as a shell has it."""

    def interrupted(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    command.run = interrupted  # type: ignore[attr-defined]
    assert cli.main(["made-up"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_left_ends_it_quietly() -> None:
    """`jaxobs --help | head -0` prints no traceback."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "jaxobs", "--help"], stdout=write_end, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60,
    )  # fmt: skip
    os.close(write_end)
    assert (done.stderr, done.returncode) == ("", 130)


def test_every_setting_can_be_a_flag() -> None:
    """Flags have what `jaxobs.config` says: sentence, default, variable, choices; and give it back as keywords."""
    parser = argparse.ArgumentParser()
    cli.add_settings(parser, config.names())
    printed = " ".join(parser.format_help().split())
    for each in dataclasses.fields(Settings):
        flag = f"--{each.name.replace('_', '-')}"
        assert flag in printed
        assert " ".join(each.metadata["help"].split()) in printed
        assert f"JAXOBS_{each.name.upper()})" in printed
    assert "(default: 9464; JAXOBS_PORT)" in printed
    assert "(default: on; JAXOBS_STATIC_VALUES)" in printed
    assert cli.given_settings(parser.parse_args([])) == {}


def test_only_the_named_settings_are_flags() -> None:
    """A command takes the settings that mean something to it."""
    parser = argparse.ArgumentParser()
    cli.add_settings(parser, ["port"])
    assert cli.given_settings(parser.parse_args(["--port", "1"])) == {"port": "1"}
    with pytest.raises(SystemExit):
        parser.parse_args(["--addr", "::"])


def test_run_imports_no_other_command_and_not_jax(tmp_path: Path) -> None:
    """The script finds in the process little that it did not bring."""
    (tmp_path / "script.py").write_text(
        "import sys\n"
        "print(sorted(name for name in sys.modules if name.startswith('jaxobs.cli')))\n"
        "print([name for name in ('jax', 'numpy', 'rich', 'prometheus_client') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "jaxobs", "run", "--port", "0", "script.py"], cwd=tmp_path, text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("['jaxobs.cli', 'jaxobs.cli.run']\n[]\n", "")
