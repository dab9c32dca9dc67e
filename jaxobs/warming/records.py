"""Recorded signatures, read from an event log: each distinct one once, however many processes compiled it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxobs.errors import SettingError
from jaxobs.naming import unwrapped


@dataclass(slots=True)
class Recorded:
    """One signature of one function, and what the processes paid that compiled it."""

    function: str
    signature: Mapping[str, Any]
    times: int = 0
    seconds: float = 0.0
    """The longest that a compile of it took, without loads from a cache."""


@dataclass(slots=True)
class Log:
    """What an event log tells of compilations."""

    recorded: list[Recorded] = field(default_factory=list)
    without: Counter[str] = field(default_factory=Counter)
    """Compilations without a signature, by function."""
    damaged: int = 0
    """Lines that are no JSON."""


def read(path: str | os.PathLike[str]) -> Log:
    """The recorded signatures of an event log, in the order of their first appearance.

    Raises:
      SettingError: the file cannot be read.
    """
    log, known = Log(), dict[str, Recorded]()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if '"compilation"' in line:
                    _take(line, log, known)
    except OSError as error:
        raise SettingError(
            f"The event log {os.fspath(path)!r} cannot be read: {error.strerror or error}. "
            "Name the file that the setting `event_log` named."
        ) from None
    log.recorded = list(known.values())
    return log


def _take(line: str, log: Log, known: dict[str, Recorded]) -> None:
    try:
        event = json.loads(line)
    except ValueError:
        log.damaged += 1
        return
    if not isinstance(event, dict) or event.get("event") != "compilation":
        return
    if event.get("eager") or event.get("transform"):
        return  # of JAX's own making; its functions bring it along
    function, signature = str(event.get("function")), event.get("signature")
    if not isinstance(signature, dict):
        log.without[function] += 1
        return
    # One function may be used by several programs; of `__main__` each has its own.
    main = signature.get("module") == "__main__"
    alike = signature if main else {name: value for name, value in signature.items() if name != "started"}
    key = json.dumps([function, alike], sort_keys=True)
    entry = known.setdefault(key, Recorded(function, signature))
    entry.times += 1
    phases = event.get("phases") or {}
    if "cache_load" not in phases:
        entry.seconds = max(entry.seconds, float(sum(phases.values())))


def is_of(recorded: Recorded, fun: Any) -> bool:
    """Whether it was recorded for `fun`: by module and name, where the main module may be imported by now, or main."""
    fun = unwrapped(fun)
    module, name = getattr(fun, "__module__", None), getattr(fun, "__qualname__", None)
    signature = recorded.signature
    if signature.get("qualname") != name:
        return False
    return signature.get("module") == module or "__main__" in (signature.get("module"), module)
