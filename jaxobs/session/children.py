"""Children that `multiprocessing` starts as new interpreters, by spawn and forkserver: observed as forked ones are.

What a process keeps in its `multiprocessing` configuration goes to each child, pickled. An entry there, which is a call
when it is unpickled, begins the observation in the child. No function is replaced and no variable is set; a child that
has no jaxobs continues without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from jaxobs.base import config
from jaxobs.base.files import absolute
from jaxobs.base.guard import guard
from jaxobs.base.import_hooks import when_imported

_ENTRY = "_jaxobs"
_PARENTS = {"port", "addr", "metrics_file", "metrics_interval"}
_PATHS = ("event_log", "flight_recorder", "capture_directory")


class _Entry:
    """The entry: in a child, the call of `begin`."""

    def __init__(self, given: Mapping[str, Any], program: str | None) -> None:
        self._call = f"begin({dict(given)!r}, {program!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by reference: where that cannot be imported, the child would not start.
        code = (
            f"try:\n from jaxobs.session.children import begin\n entry = {self._call}\nexcept Exception:\n entry = None"
        )
        return eval, ("exec(code) or entry", {"code": code})


def observe(given: Mapping[str, Any], program: str | None, main_names: Iterable[str] = ()) -> None:
    """Has children of this process observed from now on, with the settings `given` and those of the environment.

    Args:
      given: as `install` takes them.
      program: what this process is called.
      main_names: what its main script is called in the setting `instrument`, which is not for children.
    """
    entry = _Entry(_for_child(given, {"__main__", *main_names}), program)

    @guard("children")
    def enter() -> None:
        sys.modules["multiprocessing.process"].current_process()._config[_ENTRY] = entry

    when_imported("multiprocessing.process", enter)


def _for_child(given: Mapping[str, Any], main_names: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in given.items() if name not in _PARENTS}
    for name in _PATHS:
        path = given.get(name) or os.environ.get(config.PREFIX + name.upper())
        if path and path.lower() != "off":
            kept[name] = absolute(path)  # a child may begin elsewhere
    if kept.get("instrument"):
        # There the main script's functions have other globals than its module: to replace them in that changes nothing.
        kept["instrument"] = [each for each in kept["instrument"] if each.partition(":")[0] not in main_names]
    return kept


def begin(given: Mapping[str, Any], program: str | None) -> _Entry:
    """Observes a child, before its work, once it has imported JAX. Returns the entry for its own children."""
    if not config.disabled():
        when_imported("jax", lambda: _start(given, program))
    return _Entry(given, program)


def _start(given: Mapping[str, Any], program: str | None) -> None:
    from jaxobs.session import lifecycle

    lifecycle.install_in_child(given, program)
