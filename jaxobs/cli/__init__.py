"""The command line: each module in this folder is a command, found by its name.

A command has `HELP` (one line), `configure(parser)` and `run(args)`, which returns the exit code, or a function that
is called for it once the command line is out of the way. It may have `parse(parser, arguments)`, in place of
argparse's own.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from jaxobs import config, discovery
from jaxobs.config import Settings
from jaxobs.errors import JaxobsError
from jaxobs.version import __version__

FINE, FINDINGS, USAGE, INTERRUPTED = 0, 1, 2, 130

_EXAMPLES = """\
examples:
  jaxobs demo                            a training run to look at, on this machine
  jaxobs run train.py --steps 1000       your own, unchanged; then open http://127.0.0.1:9464/
  jaxobs run --port 0 --event-log events.jsonl -m mypackage.train
  jaxobs top http://127.0.0.1:9464/      the same in a terminal
  jaxobs explain events.jsonl            what compiled and why, with findings and advice
  jaxobs report events.jsonl             the same and memory over time, as one HTML file

`jaxobs COMMAND --help` tells more. Exit codes: 0 fine, 1 findings, 2 usage."""


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
    command = _command(arguments[0])
    parser = argparse.ArgumentParser(
        prog=f"jaxobs {arguments[0]}",
        description=_sentence(command.HELP),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    parse = getattr(command, "parse", argparse.ArgumentParser.parse_args)
    outcome: int | Callable[[], int] = command.run(parse(parser, arguments[1:]))
    return outcome


def _command(name: str) -> ModuleType:
    """The module of one command; others are not imported, so that none can be in the way of it."""
    if name not in (names := _names()):
        raise JaxobsError(f"Unknown command `{name}`. Known commands: {', '.join(names)}. Try: jaxobs --help")
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")


def _names() -> list[str]:
    return sorted(info.name.replace("_", "-") for info in pkgutil.iter_modules(__path__))


def _overview() -> str:
    helps = {_name(module): module.HELP for module in discovery.modules(__name__)}
    width = max(map(len, helps), default=0)
    return "\n".join(
        (
            "usage: jaxobs COMMAND [options]\n",
            "See what JAX does between your Python and the chip.\n",
            "commands:",
            *(f"  {name:<{width}}  {text}" for name, text in helps.items()),
            "",
            "options:",
            "  -h, --help     print this",
            "  -V, --version  print the version\n",
            _EXAMPLES,
        )
    )


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2].replace("_", "-")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


# ---------------------------------------------------------------------------------------------- settings as flags


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Adds a flag for each named setting, with the type, the default and the sentence it has in `jaxobs.config`."""
    group = parser.add_argument_group("settings", "Each has an environment variable too; the flag wins.")
    fields = {each.name: each for each in dataclasses.fields(Settings)}
    for name in names:
        each = fields[name]
        group.add_argument(f"--{name.replace('_', '-')}", dest=name, default=None, **_flag(each))


def given_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings among the arguments that were given, as keywords for `jaxobs.session.install`."""
    named = {name: getattr(args, name, None) for name in config.names()}
    return {name: value for name, value in named.items() if value is not None}


def _flag(each: dataclasses.Field[Any]) -> dict[str, Any]:
    flag: dict[str, Any] = {"help": _flag_help(each)}
    if each.type == "bool":
        return {**flag, "action": argparse.BooleanOptionalAction}
    if each.metadata["choices"]:
        return {**flag, "choices": each.metadata["choices"]}
    if each.type == "tuple[str, ...]":
        flag["action"] = "append"
    # The first word of a setting's sentence says what its value is: File, Seconds, MODULE:FUNCTION.
    word = each.metadata["help"].split()[0]
    return {**flag, "metavar": "N" if each.type == "int" else word.upper()}


def _flag_help(each: dataclasses.Field[Any]) -> str:
    value = getattr(Settings(), each.name)
    shown = ("off", "on")[value] if isinstance(value, bool) else value
    default = "" if value in (None, ()) else f"default: {shown}; "
    return f"{each.metadata['help']} ({default}{config.PREFIX}{each.name.upper()})".replace("%", "%%")
