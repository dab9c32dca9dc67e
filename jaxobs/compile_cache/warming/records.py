"""Recorded signatures, read from an event log: each distinct one once, however many processes compiled it."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base import json_lines
from jaxobs.base.errors import SettingError
from jaxobs.base.files import rotated
from jaxobs.base.json_lines import Damage
from jaxobs.reasons.naming import unwrapped


@dataclass(slots=True)
class Recorded:
    """A signature of a function, and what the processes paid that compiled it."""

    function: str
    signature: Mapping[str, Any]
    times: int = 0
    seconds: float = 0.0
    """The longest that a compile of it took, without loads from a cache."""


@dataclass(slots=True)
class Log:
    """The compilations of an event log."""

    recorded: list[Recorded] = field(default_factory=list)
    without: Counter[str] = field(default_factory=Counter)
    """Compilations without a signature, by function."""
    damage: Damage = field(default_factory=Damage)
    """Lines that cannot be read."""


def read(path: str | os.PathLike[str]) -> Log:
    """Returns the log's recorded signatures by first appearance; raises `SettingError` if it can't be read."""
    log, known = Log(), dict[str, Recorded]()
    try:
        with rotated.opened(path) as file:
            for number, body in json_lines.objects(file, log.damage):
                if body.get("event") != "compilation":
                    continue
                try:
                    _take(body, log, known)
                except (TypeError, ValueError, AttributeError):
                    log.damage.add(number, "is a compilation that this version of jaxobs does not understand")
    except OSError as error:
        raise SettingError(
            f"The event log {os.fspath(path)!r} cannot be read: {error.strerror or error}. "
            "Name the file from the setting `event_log`."
        ) from None
    log.recorded = list(known.values())
    return log


def _take(event: Mapping[str, Any], log: Log, known: dict[str, Recorded]) -> None:
    if event.get("eager") or event.get("transform"):
        return  # of JAX's own making; its functions bring it along
    function, signature = event.get("function"), event.get("signature")
    phases = event.get("phases") or {}
    seconds = float(sum(phases.values()))
    if not isinstance(function, str):
        raise TypeError("no function")
    if not isinstance(signature, dict):
        log.without[function] += 1
        return
    # One function may be used by several programs; of `__main__` each has its own.
    main = signature.get("module") == "__main__"
    alike = signature if main else {name: value for name, value in signature.items() if name != "started"}
    key = json.dumps([function, alike], sort_keys=True)
    entry = known.setdefault(key, Recorded(function, signature))
    entry.times += 1
    if "cache_load" not in phases:
        entry.seconds = max(entry.seconds, seconds)


def is_of(recorded: Recorded, fun: Any) -> bool:
    """Returns whether a signature was recorded for `fun`; the main module may be imported by now."""
    fun = unwrapped(fun)
    module, name = getattr(fun, "__module__", None), getattr(fun, "__qualname__", None)
    signature = recorded.signature
    if signature.get("qualname") != name:
        return False
    return signature.get("module") == module or "__main__" in (signature.get("module"), module)
