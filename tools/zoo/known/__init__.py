"""Entries of the zoo, one file for each program: whose it is, and what to expect of it.

To add a program, put it into `tools/zoo/programs` and a file of the same name here. Write what you expect before you
look at what jaxobs says.
"""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from tools.zoo.entry import Entry


class EntryModule(discovery.Module, Protocol):
    """Declares one program of the zoo."""

    ENTRY: Entry
