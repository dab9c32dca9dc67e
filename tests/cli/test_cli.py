"""The command line: commands found by folder, exit codes, and flags that come from the settings."""

import argparse
import contextlib
import dataclasses
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import jaxobs
from jaxobs import cli
from jaxobs.base import config, discovery
from jaxobs.base.config import Settings
from jaxobs.base.errors import JaxobsError, MissingExtraError, install
from jaxobs.base.version import __version__

ROOT = Path(jaxobs.__file__).parents[1]
COMMANDS = {discovery.short_name(module): module for module in discovery.modules(cli.Command)}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_module_is_a_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[name]
    assert command.HELP.strip() and "\n" not in command.HELP
    with pytest.raises(SystemExit) as exit:
        cli.main([name.replace("_", "-"), "--help"])
    assert exit.value.code == 0
    printed = capsys.readouterr().out
    assert f"jaxobs {name.replace('_', '-')}" in printed
    assert command.HELP[1:].rstrip(".") in " ".join(printed.split())


def test_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    printed = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name.replace('_', '-')} " in printed
        assert command.HELP in printed
    assert max(map(len, printed.splitlines())) <= 110
    assert cli.main([]) == 2
    assert capsys.readouterr().out == printed
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"jaxobs {__version__}\n"


def test_help_begins_with_what_people_need_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands for one's own runs, then those for operators, then upkeep; settings of `run` in groups."""
    cli.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("commands:") + 1
    seven = ["run", "top", "explain", "report", "profile", "doctor", "diagnose"]
    assert [line.split()[0] for line in lines[first : first + 7]] == seven
    assert first < lines.index("for operators:") < lines.index("upkeep:") < lines.index("options:")
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    printed = capsys.readouterr().out
    titles = re.findall(r"^(\w.*):$", printed, re.MULTILINE)
    assert titles[:3] == ["options", "settings that most people need", "protection of the endpoint"]
    assert titles[-2:] == ["observation", "examples"]
    assert [name for name in config.names() if printed.count(f"\n  --{name.replace('_', '-')}") < 1] == []


def test_an_unknown_command_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rnu", "script.py"]) == 2
    known = ", ".join(sorted(name.replace("_", "-") for name in COMMANDS))
    assert capsys.readouterr().err == (
        f"jaxobs: Unknown command `rnu`. Did you mean `run`? Known commands: {known}. Try: jaxobs --help\n"
    )
    assert cli.main(["--port", "0", "run", "train.py"]) == 2
    assert "Options of a command come after it: jaxobs COMMAND [options]" in capsys.readouterr().err


def helps() -> Iterator[tuple[str, str]]:
    for line in [[name] for name in COMMANDS] + [["cache", name] for name in ("inspect", "verify", "warm")]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), pytest.raises(SystemExit):
            cli.main([*line, "--help"])
        yield " ".join(line), " ".join(printed.getvalue().split())


def test_helps_name_only_what_there_is() -> None:
    """`serve` was named as a command; no help sends a user to a command, an option or a name that does not exist."""
    options = {f"--{name.replace('_', '-')}" for name in config.names()}
    choices = {choice for each in dataclasses.fields(Settings) for choice in each.metadata["choices"]}
    others = {
        "python -m", "-", "module.qualname", "programs", "__main__", 'if __name__ == "__main__":', "python -", "job",
        "POST /api/v1/actions/<name>", "OTEL_EXPORTER_OTLP_ENDPOINT", "off", "{pid}", "{host}", "{process_index}",
    }  # fmt: skip
    for name, text in helps():
        assert "%%" not in text and "%(" not in text, "a per cent sign is doubled for an argument, not for a group"
        for quoted in re.findall(r"`([^`]+)`", text):
            word, _, rest = quoted.partition(" ")
            known = (word == "jaxobs" and rest in COMMANDS) or quoted in others | choices | options | {*config.names()}
            assert known or (word.startswith("jaxobs.") and hasattr(jaxobs, word.removeprefix("jaxobs."))), (
                f"`jaxobs {name} --help` says `{quoted}`"
            )
        assert not re.search(r"\b(docs|runbooks)/", text), f"`jaxobs {name} --help` names a file that pip leaves out"


def test_nothing_names_a_command_that_is_only_planned() -> None:
    """The page recommended `jaxobs doctor`; neither the program nor its docs name what is not there."""
    planned = "|".join({"agent", "bundle", "diagnose", "doctor", "gameday", "mcp", "profile", "serve"} - set(COMMANDS))
    files = [
        each for folder in ("jaxobs", "docs", "runbooks") for each in (ROOT / folder).rglob("*")
        if each.suffix in (".py", ".js", ".html", ".md", ".yaml", ".json")
    ]  # fmt: skip
    assert len(files) > 300
    for file in (*files, ROOT / "README.md"):
        text = file.read_text(encoding="utf-8")
        assert not (found := re.search(rf"\bjaxobs ({planned})\b[^:]", text)), f"{file} says {found and found[0]!r}"


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
    run = COMMANDS["run"]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    run.configure(parser)
    args = run.parse(parser, arguments.split())
    assert (cli.given_settings(args), args.module, args.script, args.rest) == (settings, module, script, rest)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    module = ModuleType("jaxobs.cli.made_up")
    module.HELP = "do what it is told"  # type: ignore[attr-defined]
    module.configure = lambda parser: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(cli, "_names", lambda: ["made-up"])
    yield module


@pytest.mark.parametrize(
    ("outcome", "code", "message"),
    [
        (1, 1, ""),
        (lambda: 3, 3, ""),
        (KeyboardInterrupt(), 130, ""),
        (JaxobsError("`x` is 1. Say 2."), 2, "jaxobs: `x` is 1. Say 2.\n"),
        (
            MissingExtraError("jaxobs top", "rich", "cli"), 2,
            f"jaxobs: `jaxobs top` needs `rich`, from the extra `cli`. Install it with: {install('cli')}\n",
        ),
    ],
)  # fmt: skip
def test_how_a_command_ends(
    outcome: object, code: int, message: str, command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the code of `run` or of the function that it returns; an error of ours is a line on stderr."""

    def run(args: argparse.Namespace) -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    command.run = run  # type: ignore[attr-defined]
    assert cli.main(["made-up"]) == code
    assert capsys.readouterr() == ("", message)


def test_a_reader_that_left_ends_it_quietly() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "jaxobs", "--help"], stdout=write_end, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120,
    )  # fmt: skip
    os.close(write_end)
    assert (done.stderr, done.returncode) == ("", 130)


def test_every_setting_can_be_a_flag() -> None:
    parser = argparse.ArgumentParser()
    cli.add_settings(parser, config.names())
    printed = " ".join(parser.format_help().split())
    for setting in dataclasses.fields(Settings):
        flag = f"--{setting.name.replace('_', '-')}"
        assert flag in printed
        assert " ".join(setting.metadata["help"].split()) in printed
        assert f"JAXOBS_{setting.name.upper()})" in printed
    assert "(default: 9464; JAXOBS_PORT)" in printed
    assert "(default: on; JAXOBS_STATIC_VALUES)" in printed
    assert cli.given_settings(parser.parse_args([])) == {}


def test_only_the_named_settings_are_flags() -> None:
    parser = argparse.ArgumentParser()
    cli.add_settings(parser, ["port"])
    assert cli.given_settings(parser.parse_args(["--port", "1"])) == {"port": "1"}
    with pytest.raises(SystemExit):
        parser.parse_args(["--addr", "::"])


def test_run_imports_no_other_command_and_not_jax(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys\n"
        "print(sorted(name for name in sys.modules if name.startswith('jaxobs.cli')))\n"
        "print([name for name in ('jax', 'numpy', 'rich', 'prometheus_client') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "jaxobs", "run", "--port", "0", "script.py"], cwd=tmp_path, text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("['jaxobs.cli', 'jaxobs.cli.run']\n[]\n", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ex",), ["explain"]),
        (("cache", ""), ["inspect", "verify", "warm"]),
        (("run", "--event-l"), ["--event-log", "--event-log-max-bytes", "--event-log-files", "--event-log-fsync"]),
        (("run", "--event-log", "some"), ["some.jsonl"]),
        (("run", "some"), ["some.jsonl"]),
        (("compare", "so"), ["some.jsonl"]),
    ],
)
def test_bash_completes_commands_options_and_files(
    words: tuple[str, ...], expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "completion.bash").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "some.jsonl").touch()
    typed = " ".join(f"'{word}'" for word in ("jaxobs", *words))
    program = f"source completion.bash; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _shtab_jaxobs; "
    done = subprocess.run(
        ["bash", "-c", program + 'printf "%s\\n" "${COMPREPLY[@]}"'],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == expected


def test_a_shell_that_shtab_does_not_know_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier version knows fewer shells; every one that the help names works with this version."""
    for shell in ("bash", "zsh", "fish", "tcsh"):
        assert cli.main(["completion", shell]) == 0
        assert "verify" in capsys.readouterr().out
    monkeypatch.setattr("shtab.SUPPORTED_SHELLS", ["bash", "zsh"])
    assert cli.main(["completion", "fish"]) == 2
    assert "cannot complete in fish. Update it" in capsys.readouterr().err
