"""The observer's notes of one run of a command: every program that was compiled or loaded, by any process."""

import contextlib
import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxobs.base import json_lines
from jaxobs.base.json_lines import Damage
from jaxobs.compile_cache.observer import DIRECTORY, MINIMUM


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that a process compiled, or loaded from the cache."""

    function: str
    eager: bool = False
    cache: str
    """`miss`, `hit` or `disabled`."""
    seconds: float = 0.0
    """Time to compile; on a hit, to load."""
    key: str | None = None
    fingerprint: str | None = None
    uncached_because: str | None = None
    uncached_detail: str | None = None
    differs: tuple[str, ...] = ()
    """Parts of the key that differ from what an earlier process had compiled."""
    reason: str | None = None
    """A sentence about the parts that differ."""
    directory: str | None = None
    """Directory in which JAX looked for entries when it was compiled."""
    minimum_seconds: float | None = None
    """Threshold: a program that compiled faster was not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Observations of one run."""

    programs: tuple[Program, ...] = ()
    processes: int = 0
    """Processes that imported JAX."""
    first_step: float | None = None
    """Time at which each process had its first step behind it, in seconds since the epoch; None if no step is
    marked."""
    last_program: float | None = None
    """Time at which the last program was compiled or loaded."""
    errors: tuple[str, ...] = ()
    """Why processes could not be observed."""


def read(folder: Path) -> Observation:
    """Returns the observation that the files of one run hold. A line that was cut off is skipped."""
    programs: list[Program] = []
    first_steps: list[float] = []
    times: list[float] = []
    errors = {_beginning(path) for path in folder.glob("*.error")}
    files = sorted(folder.glob("*.jsonl"))
    for path in files:
        first_step: float | None = None
        lookups: dict[str, list[Mapping[str, Any]]] = {}
        with path.open("rb") as file:
            damage = Damage()
            for number, body in json_lines.objects(file, damage):
                if (kind := body.get("event")) is None:
                    damage.add(number, "is not an event")
                # A line that is damaged otherwise costs that line as well.
                with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
                    if kind == "step":
                        first_step = first_step or _seconds(body)
                    elif kind == "cache_lookup":
                        lookups.setdefault(str(body.get("function")), []).append(body)
                    elif kind == "compilation":
                        moment = _seconds(body)
                        programs.append(_program(body, lookups))
                        times.append(moment)
        errors |= {f"its notes are too long. {damage.sentence()[:-1]}"} if damage.left_out else set()
        if first_step is not None:
            first_steps.append(first_step)
    return Observation(
        programs=tuple(programs),
        processes=len(files),
        first_step=max(first_steps, default=None),
        last_program=max(times, default=None),
        errors=tuple(sorted(errors)),
    )


def _program(body: Mapping[str, Any], lookups: Mapping[str, list[Mapping[str, Any]]]) -> Program:
    function, cache = str(body.get("function")), str(body.get("cache"))
    waiting = lookups.get(function, [])
    # A process records the lookup right before the compilation, on the thread that compiled.
    lookup = waiting.pop() if cache != "disabled" and waiting else {}
    return Program(
        function=function,
        eager=bool(body.get("eager")),
        cache=cache,
        seconds=_number(body.get("phases", {}).get("cache_load" if cache == "hit" else "compile")) or 0.0,
        key=_text(lookup.get("key")),
        fingerprint=_text(body.get("fingerprint")),
        uncached_because=_text(body.get("uncached_because")),
        uncached_detail=_text(body.get("uncached_detail")),
        differs=tuple(map(str, lookup.get("differs") or ())),
        reason=_text(lookup.get("reason")),
        directory=_text(body.get(DIRECTORY)),
        minimum_seconds=_number(body.get(MINIMUM)),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _beginning(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(300)


def _seconds(body: Mapping[str, Any]) -> float:
    return datetime.datetime.fromisoformat(str(body["time"])).timestamp()
