"""Checks of a machine: one file for each, found by the folder.

A check has `check(machine)`, which yields a finding for each thing that it looked at: at least one, also where all is
well. `docs/doctor.md` has a row for each.
"""

from collections.abc import Iterable
from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.doctor.machine import Finding, Machine


class Check(discovery.Module, Protocol):
    """Looks at one aspect of a machine."""

    def check(self, machine: Machine, /) -> Iterable[Finding]: ...
