"""`jaxobs completion`: the script by which a shell completes commands, options and file names."""

import argparse
from collections.abc import Mapping
from typing import Any

from jaxobs import cli
from jaxobs.base import discovery
from jaxobs.base.errors import JaxobsError, MissingExtraError
from jaxobs.cli.caching import Subcommand

HELP = "print a script that completes commands and options in your shell"

SHELLS = ("bash", "zsh", "fish", "tcsh")

_EXAMPLES = """\
examples:
  jaxobs completion bash > ~/.local/share/bash-completion/completions/jaxobs
  jaxobs completion zsh > ~/.zfunc/_jaxobs          (a folder in $fpath)
  jaxobs completion fish > ~/.config/fish/completions/jaxobs.fish"""

_FILES = {"FILE", "SCRIPT", "EVENTLOG", "A", "B"}
_FOLDERS = {"DIR", "DIRECTORY"}

_Kinds = Mapping[str, Any]
"""Objects that make shtab complete files and folders, by the names of arguments."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace) -> int:
    """Prints the script.

    Raises:
      MissingExtraError: shtab is not installed.
      JaxobsError: the version of shtab that is installed does not know the shell.
    """
    try:
        import shtab
    except ImportError:
        raise MissingExtraError("jaxobs completion", "shtab", "cli") from None
    if args.shell not in shtab.SUPPORTED_SHELLS:
        raise JaxobsError(
            f"This version of shtab cannot complete in {args.shell}. Update it with: pip install --upgrade shtab"
        )
    kinds = dict.fromkeys(_FILES, shtab.FILE) | dict.fromkeys(_FOLDERS, shtab.DIRECTORY)
    print(shtab.complete(_whole(kinds), args.shell))
    return cli.FINE


def _whole(kinds: _Kinds) -> argparse.ArgumentParser:
    """Returns one parser with every command in it; the command line itself imports one command at a time."""
    parser = argparse.ArgumentParser(prog="jaxobs")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    _add(parser, cli.Command, kinds)
    return parser


def _add(parser: argparse.ArgumentParser, form: type[cli.Command | Subcommand], kinds: _Kinds) -> None:
    commands = parser.add_subparsers()
    for module in discovery.modules(form):
        name = discovery.short_name(module).replace("_", "-")
        command = commands.add_parser(name, help=module.HELP)
        if hasattr(module, "SUBCOMMANDS"):
            _add(command, module.SUBCOMMANDS, kinds)
            continue
        module.configure(command)
        _mark_files(command, module, kinds)


def _mark_files(command: argparse.ArgumentParser, module: cli.Command | Subcommand, kinds: _Kinds) -> None:
    """Says by the names of arguments which are files and folders."""
    if hasattr(module, "parse") and not command._get_positional_actions():
        command.add_argument("script", metavar="SCRIPT", nargs="?")
    for action in command._actions:
        for word in str(action.metavar).replace("|", " ").split():
            if word in kinds:
                action.complete = kinds[word]  # type: ignore[attr-defined]
