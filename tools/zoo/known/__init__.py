"""Entries of the zoo by kind of program, a module for each kind: whose a program is, and what to expect of it.

To add a program, put it into `tools/zoo/programs`, or into `examples/systems` if `docs/systems` shows it, and an entry
of the same name into a module here. Write what you expect before you look at what jaxobs says.
"""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from tools.zoo.entry import Entry


class EntriesModule(discovery.Module, Protocol):
    """Declares programs of one kind."""

    ENTRIES: dict[str, Entry]
    """By the name of the program's file."""
