"""`jaxobs cache`: looks at a persistent compilation cache, tries it, fills it.

Each module in `jaxobs.cli.caching` is a subcommand, found by its name, with the `HELP`,
`configure` and `run` that a command has.
"""

import argparse
from collections.abc import Callable, Sequence

from jaxobs.base import discovery
from jaxobs.cli import Parser
from jaxobs.cli.caching import Subcommand

SUBCOMMANDS = Subcommand
HELP = "inspect, verify or warm a persistent cache"

_EXAMPLES = """\
examples:
  jaxobs cache inspect /data/jax-cache
  jaxobs cache verify -- python train.py --steps 3
  jaxobs cache SUBCOMMAND --help"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Says which subcommands there are; their own options are declared once one is chosen."""
    names = _names()
    parser.usage = "jaxobs cache SUBCOMMAND [options]"
    parser.add_argument("subcommand", choices=names, metavar="SUBCOMMAND", help=" | ".join(names))


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Finds the subcommand, which comes first, and leaves the rest to its own parser."""
    names = _names()
    if not arguments or arguments[0] not in names:
        # Only now: no subcommand is to be in the way of another.
        lines = [f"  {name:<{max(map(len, names))}}  {_module(name).HELP}" for name in names]
        parser.epilog = "\n".join(("subcommands:", *lines, "", _EXAMPLES))
    chosen = parser.parse_args(list(arguments[:1]))
    command = _module(chosen.subcommand)
    own = Parser(f"{parser.prog} {chosen.subcommand}", command.HELP)
    command.configure(own)
    own_parse = getattr(command, "parse", Parser.parse_args)
    args: argparse.Namespace = own_parse(own, list(arguments[1:]))
    args.subcommand = chosen.subcommand
    return args


def run(args: argparse.Namespace) -> int | Callable[[], int]:
    """Runs the subcommand: 0 fine, 1 findings, 2 usage."""
    return _module(args.subcommand).run(args)


def _names() -> list[str]:
    return [name.replace("_", "-") for name in discovery.names(SUBCOMMANDS.__module__)]


def _module(name: str) -> Subcommand:
    return discovery.module(SUBCOMMANDS, name.replace("-", "_"))
