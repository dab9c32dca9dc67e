"""The subcommands of `jaxobs cache`, one module each, found by name.

A module has `HELP` (one line), `configure(parser)` and `run(args)`, which returns the exit code: 0 fine, 1 findings,
2 usage. It may have `parse(parser, arguments)`, in place of argparse's own. What is not a subcommand lives elsewhere.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Protocol

from jaxobs.base import discovery


class Subcommand(discovery.Module, Protocol):
    """Runs one subcommand of `jaxobs cache`."""

    HELP: str

    def configure(self, parser: argparse.ArgumentParser, /) -> None: ...
    def run(self, args: argparse.Namespace, /) -> int | Callable[[], int]: ...


class ParsingSubcommand(Subcommand, Protocol):
    """Reads its arguments in a way of its own."""

    def parse(self, parser: argparse.ArgumentParser, arguments: Sequence[str], /) -> argparse.Namespace: ...
