"""Actions that a process offers on request: one file for each, such as a profile or a memory dump, found by folder."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from jaxobs.base import discovery

if TYPE_CHECKING:
    from jaxobs.actions.capturing.action_types import Job, Outcome, Parameter
    from jaxobs.state.store import Store


class ActionModule(discovery.Module, Protocol):
    """Does one action."""

    NAME: str
    ABOUT: str
    WAITED_FOR: bool

    @property
    def PARAMETERS(self) -> tuple[Parameter, ...]: ...  # noqa: N802 - a constant of the module

    def run(self, job: Job, /) -> Outcome: ...


@runtime_checkable
class CheckingModule(ActionModule, Protocol):
    """Refuses parameters that make no sense in this process."""

    def check(self, store: Store, values: Mapping[str, Any], /) -> None: ...


@functools.cache
def known() -> dict[str, ActionModule]:
    """Returns the modules of all actions by name."""
    return {each.NAME: each for each in discovery.modules(ActionModule)}
