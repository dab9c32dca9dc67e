"""The command line: each module in this folder is a command, found by its name.

A command has `HELP` (one line), `configure(parser)` and `run(args)`, which returns the exit code, or a function that
is called for it once the command line is out of the way. It may have `parse(parser, arguments)`, in place of
argparse's own, and `SUBCOMMANDS`, the package of its subcommands.
"""

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Never, Protocol

from jaxobs.base import config, discovery
from jaxobs.base.config import Settings
from jaxobs.base.errors import JaxobsError, SettingError, did_you_mean
from jaxobs.base.version import __version__

FINE, FINDINGS, USAGE, INTERRUPTED = 0, 1, 2, 130
_MOST_TOKEN = 4096

_SECTIONS = {
    "commands": ("run", "top", "explain", "report", "profile", "doctor", "diagnose", "compare", "demo"),
    "for operators": ("agent", "bundle", "gameday", "mcp", "generate"),
}
"""Commands in the order of `jaxobs --help`; those of no section are listed last, as upkeep."""

_GROUPS = {
    "settings that most people need": (
        "port", "addr", "event_log", "metrics_file", "instrument", "run_id", "flight_recorder", "peak_flops",
        "profile_interval", "transfers", "otlp", "actions",
    ),
    "protection of the endpoint": config.PROTECTION,
    "event log and metrics file": ("event_log_max_bytes", "event_log_files", "event_log_fsync", "metrics_interval"),
    "other destinations": ("pushgateway", "pushgateway_token", "tensorboard", "wandb", "mlflow"),
    "captures": (
        "action_token", "capture_directory", "capture_max_bytes", "capture_interval", "capture_signal",
    ),
}  # fmt: skip
"""Settings in the order of a command's help; those of no group come last."""

_EXAMPLES = """\
examples:
  jaxobs demo                            a training run to look at, on this machine
  jaxobs run train.py --steps 1000       your own, unchanged; then open http://127.0.0.1:9464/
  jaxobs run --port 0 --event-log events.jsonl -m mypackage.train
  jaxobs top http://127.0.0.1:9464/      the same in a terminal
  jaxobs explain events.jsonl            what compiled and why, with findings and advice
  jaxobs report events.jsonl             the same and memory over time, as one HTML file

Run `jaxobs COMMAND --help` for details. Exit codes: 0 fine, 1 findings, 2 usage."""


class Command(discovery.Module, Protocol):
    """Runs one command."""

    HELP: str

    def configure(self, parser: argparse.ArgumentParser, /) -> None: ...
    def run(self, args: argparse.Namespace, /) -> int | Callable[[], int]: ...


class ParsingCommand(Command, Protocol):
    """Reads its arguments in a way of its own."""

    def parse(self, parser: argparse.ArgumentParser, arguments: Sequence[str], /) -> argparse.Namespace: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: what follows `jaxobs`; that of this process when absent.

    Returns:
      0 fine, 1 findings, 2 usage, 130 interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        outcome = _run_command(arguments)
        if not callable(outcome):
            sys.stdout.flush()
    except JaxobsError as error:
        print(f"jaxobs: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # Nobody reads on: let the flush at exit write to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    return outcome() if callable(outcome) else outcome


def _run_command(arguments: list[str]) -> int | Callable[[], int]:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview())
        return FINE if arguments else USAGE
    if arguments[0] in ("-V", "--version"):
        print(f"jaxobs {__version__}")
        return FINE
    command, args = parse(arguments)
    return command.run(args)


def parse(arguments: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """Returns the command that a command line names, and its arguments. Nothing is run.

    Raises:
      JaxobsError: there is no such command.
      SystemExit: the arguments do not fit it; argparse has printed why.
    """
    command = _command(arguments[0])
    parser = Parser(f"jaxobs {arguments[0]}", command.HELP)
    command.configure(parser)
    own: Callable[[Parser, Sequence[str]], argparse.Namespace] = getattr(command, "parse", Parser.parse_args)
    return command, own(parser, arguments[1:])


def _command(name: str) -> Command:
    """Returns the module of one command; others are not imported, so that none can be in the way of it."""
    if name not in (names := _names()):
        raise JaxobsError(_no_such_command(name, names))
    return discovery.module(Command, name.replace("-", "_"))


def _no_such_command(name: str, names: Sequence[str]) -> str:
    if name.startswith("-"):
        meant = did_you_mean(name, ("--help", "--version"))
        return f"Unknown option `{name}`. {meant}Options of a command come after it: jaxobs COMMAND [options]"
    meant = f"Did you mean `jaxobs run {name}`? " if name.endswith(".py") else did_you_mean(name, names)
    return f"Unknown command `{name}`. {meant}Known commands: {', '.join(names)}. Try: jaxobs --help"


def _names() -> list[str]:
    return [name.replace("_", "-") for name in discovery.names(__name__)]


def _overview() -> str:
    helps = {_name(module): module.HELP for module in discovery.modules(Command)}
    width = max(map(len, helps), default=0)
    lines = ["usage: jaxobs COMMAND [options]\n", "See what JAX does between your Python and the chip.\n"]
    for section, names in _grouped(_SECTIONS, "upkeep", helps):
        lines += [f"{section}:", *(f"  {name:<{width}}  {helps[name]}" for name in names), ""]
    options = ("options:", "  -h, --help     print this help", "  -V, --version  print the version\n")
    return "\n".join((*lines, *options, _EXAMPLES))


def _grouped(groups: Mapping[str, Iterable[str]], last: str, names: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields the names by group, those of no group at the end, and no group without a name."""
    for group, members in groups.items():
        if found := [name for name in members if name in names]:
            yield group, found
    grouped = {name for members in groups.values() for name in members}
    if rest := [name for name in names if name not in grouped]:
        yield last, rest


def _name(module: Command) -> str:
    return discovery.short_name(module).replace("_", "-")


class Parser(argparse.ArgumentParser):
    """The parser of one command, which says what a misspelt option or choice may have meant."""

    def __init__(self, prog: str, about: str) -> None:
        super().__init__(
            prog=prog,
            description=f"{about[:1].upper()}{about[1:].rstrip('.')}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse_args(self, args: Sequence[str], namespace: Any = None) -> Any:  # type: ignore[override]
        """Parses as argparse does, but names an unknown option before anything that is missing."""
        end = list(args).index("--") if "--" in args else len(args)
        known = self._option_string_actions
        unknown = [each for each in args[:end] if each.startswith("--") and each.partition("=")[0] not in known]
        if unknown:
            self._refuse(unknown)
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown)
        return found

    def _refuse(self, unknown: Sequence[str]) -> Never:
        known = self._option_string_actions
        options = (each.partition("=")[0] for each in unknown if each.startswith("-"))
        meant = "".join(did_you_mean(each, known) for each in options)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{'. ' if meant else ''}{meant.rstrip()}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = did_you_mean(str(value), map(str, action.choices or ())).rstrip()
            error.message += f". {meant}" if meant else ""
            raise


# ---------------------------------------------------------------------------------------------- settings as flags


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Adds a flag for each named setting, with the type, the default and the sentence it has in `base.config`."""
    fields = {each.name: each for each in dataclasses.fields(Settings)}
    note: str | None = "Each setting has an environment variable too; the option overrides it."
    for title, members in _grouped(_GROUPS, "observation", list(names)):
        group = parser.add_argument_group(title, note)
        note = None
        for name in members:
            group.add_argument(config.flag(name), dest=name, default=None, **_flag(fields[name]))


def given_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings among the arguments that were given, as keywords for `jaxobs.session.lifecycle.install`."""
    named = {name: getattr(args, name, None) for name in config.names()}
    given = {name: value for name, value in named.items() if value is not None}
    tokens = {name: token_in(config.flag(name), path) for name, path in given.items() if name.endswith("_token")}
    return given | tokens


def token_in(option: str, path: str) -> str:
    """Returns the token in the file that an option names.

    Raises:
      SettingError: there is none. It does not repeat the name: people who expect to give the token itself do so.
    """
    try:
        with open(path, "rb") as file:
            token = file.read(_MOST_TOKEN).decode("ascii").strip()
    except (OSError, ValueError) as error:
        reason = "is not ASCII" if isinstance(error, UnicodeDecodeError) else "cannot be read"
        why = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        raise SettingError(f"{option} takes a file with the token, and what it names {reason}{why}.") from None
    if not token or not token.isprintable():
        raise SettingError(f"{option} takes a file with the token in one line, and there is none in it.")
    return token


def _flag(each: dataclasses.Field[Any]) -> dict[str, Any]:
    flag: dict[str, Any] = {"help": _flag_help(each)}
    if each.type in ("bool", "bool | None"):
        return {**flag, "action": argparse.BooleanOptionalAction}
    if each.metadata["choices"]:
        return {**flag, "choices": each.metadata["choices"]}
    if each.type == "tuple[str, ...]":
        flag["action"] = "append"
    if each.name.endswith("_token"):
        return {**flag, "metavar": "FILE"}
    # The first word of a setting's sentence says what its value is: File, Seconds, MODULE:FUNCTION.
    word = each.metadata["help"].split()[0]
    return {**flag, "metavar": "N" if each.type == "int" else word.upper()}


def _flag_help(each: dataclasses.Field[Any]) -> str:
    value = getattr(Settings(), each.name)
    shown = ("off", "on")[value] if isinstance(value, bool) else value
    default = "" if value in (None, ()) else f"default: {shown}; "
    file = "File with the token in one line. " * each.name.endswith("_token")
    return f"{file}{each.metadata['help']} ({default}{config.PREFIX}{each.name.upper()})".replace("%", "%%")
