"""What the observer wrote down in one run of a command: every program that was compiled or loaded, by any process."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxobs.compile_cache.observer import DIRECTORY, MINIMUM, OBSERVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program that a process compiled, or loaded from the cache."""

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
    """The same as a sentence."""
    directory: str | None = None
    """Where JAX looked for entries when it was compiled."""
    minimum_seconds: float | None = None
    """What compiled faster was not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What was seen of one run."""

    programs: tuple[Program, ...] = ()
    processes: int = 0
    """Processes that imported JAX."""
    first_step: float | None = None
    """When each process had its first step behind it, in seconds since the epoch; None where no step is marked."""
    last_program: float | None = None
    """When the last program was compiled or loaded."""
    errors: tuple[str, ...] = ()
    """Why processes could not be observed."""


def read(folder: Path) -> Observation:
    """The observation that the files of one run hold. A line that was cut off is skipped."""
    programs: list[Program] = []
    first_steps: list[float] = []
    times: list[float] = []
    files = sorted(folder.glob("*.jsonl"))
    for path in files:
        first_step: float | None = None
        lookups: dict[str, list[Mapping[str, Any]]] = {}
        for body in _lines(path):
            kind = body.get("event")
            if kind == OBSERVED:
                continue
            if kind == "step":
                first_step = first_step or _seconds(body)
            elif kind == "cache_lookup":
                lookups.setdefault(str(body.get("function")), []).append(body)
            elif kind == "compilation":
                programs.append(_program(body, lookups))
                times.append(_seconds(body))
        if first_step is not None:
            first_steps.append(first_step)
    return Observation(
        programs=tuple(programs),
        processes=len(files),
        first_step=max(first_steps, default=None),
        last_program=max(times, default=None),
        errors=tuple(sorted({path.read_text(errors="replace")[:300] for path in folder.glob("*.error")})),
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
        seconds=float(body.get("phases", {}).get("cache_load" if cache == "hit" else "compile") or 0.0),
        key=lookup.get("key"),
        fingerprint=body.get("fingerprint"),
        uncached_because=body.get("uncached_because"),
        uncached_detail=body.get("uncached_detail"),
        differs=tuple(lookup.get("differs") or ()),
        reason=lookup.get("reason"),
        directory=body.get(DIRECTORY),
        minimum_seconds=body.get(MINIMUM),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                body = json.loads(line)
            except ValueError:
                continue
            if isinstance(body, dict):
                yield body


def _seconds(body: Mapping[str, Any]) -> float:
    return datetime.datetime.fromisoformat(str(body["time"])).timestamp()
