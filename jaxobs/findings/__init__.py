"""Findings: one registry of their kinds, with a folder for each subject, and the verdict that they add up to.

A kind is one file in the folder of its subject, named as the finding's type. It finds its cases in one of three ways:

* `find(evidence)` yields the cases that the evidence shows, and remembers nothing. `NEEDS` says which evidence: a
  `Scene` (how a process is) or a `View` (what it knows of its job). `standing` reports them.
* `watch()` makes a watcher that sees the compilations of one function. `patterns` reports its cases.
* `leak()` makes what names series of memory that may grow. `leaks` reports those that do.

A kind may have `FOLLOWS`, see `all_kinds`. What kinds of one subject share lies in the folder's `support`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from jaxobs.base import discovery

if TYPE_CHECKING:
    from jaxobs.findings.cases import Case
    from jaxobs.findings.compilations.support.case import Watcher
    from jaxobs.findings.leaks import Leak

BY_SUBJECT = True

Evidence = TypeVar("Evidence")


class Kind(Protocol):
    """The module of a kind of finding, as far as all have it."""

    __name__: str
    NAME: str
    """The finding's type. `kinds.toml` has a row for it: what it is, and when it is reported."""


class LookingKind(Kind, discovery.Module, Protocol[Evidence]):
    """Finds cases in evidence."""

    NEEDS: type[Evidence]

    def find(self, evidence: Evidence, /) -> Iterable[Case]: ...


class WatchingKind(Kind, discovery.Module, Protocol):
    """Watches the compilations of one function."""

    def watch(self) -> Watcher: ...


class LeakKind(Kind, discovery.Module, Protocol):
    """Names series that may grow."""

    def leak(self) -> Leak: ...
