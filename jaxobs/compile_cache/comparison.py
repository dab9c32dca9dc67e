"""Two runs of a command next to each other: what is wrong, as text and as JSON."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.compile_cache import verdicts
from jaxobs.compile_cache.events import Observation
from jaxobs.compile_cache.trial import Run
from jaxobs.compile_cache.verdicts import Verdict
from jaxobs.facts.compilations import EAGER
from jaxobs.views.terminal.text import duration, middle, safe, short

COLD, WARM = "cold", "warm"
STEP = "time to first step"
MOST_FUNCTIONS = 40
NAME_WIDTH = 44


@dataclass(slots=True)
class Comparison:
    """The runs so far, and what came out."""

    command: Sequence[str]
    ignored: Sequence[str] = ()
    """Reasons that are not a failure."""
    runs: dict[str, Run] = field(default_factory=dict)
    seen: dict[str, Observation] = field(default_factory=dict)
    found: list[Verdict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Sentences; none where the warm start hits."""

    def add(self, name: str, run: Run, seen: Observation, failure: str | None) -> None:
        """Takes in a run; with a failure there is nothing to compare."""
        self.runs[name], self.seen[name] = run, seen
        if failure is not None:
            self.problems.append(failure)

    def judge(self, cache: str) -> None:
        """Compares the two. `cache`: the fresh directory."""
        self.found = verdicts.judge(self.seen[COLD], self.seen[WARM])
        foreign = verdicts.foreign_directories(self.seen.values(), cache)
        if foreign:
            self.problems.append(
                f"The program set jax_compilation_cache_dir itself, to {', '.join(foreign)}: the empty directory was "
                "not used, so this says nothing about a cold start. Let the program take the directory from "
                "JAX_COMPILATION_CACHE_DIR."
            )
            return
        for verdict in self.found:
            if verdict.fails(self.ignored):
                name = "Single operations (<eager>)" if verdict.function == EAGER else f"`{verdict.function}`"
                why = "; ".join(str(miss) for miss in verdict.misses)
                self.problems.append(f"{name} was recompiled in the warm run: {why}.")

    # -------------------------------------------------------------------------------------------- as text

    def as_text(self) -> Iterator[str]:
        """Yields the lines of the report."""
        if self.found:
            yield ""
            yield from self._table()
            yield ""
            yield from self._reasons()
        if WARM in self.runs:
            yield from self._times()
        for problem in self.problems:
            yield f"PROBLEM: {_shown(problem)}"
        if not self.problems:
            yield self._praise()

    def _praise(self) -> str:
        if any(verdict.fails() for verdict in self.found):
            return f"Recompilations excused by --ignore {' --ignore '.join(dict.fromkeys(self.ignored))}."
        if any(verdict.verdict == verdicts.MISSED for verdict in self.found):
            return "The warm start hits, except for single operations below the thresholds."
        return "The warm start hits."

    def _table(self) -> Iterator[str]:
        found = self.found
        shown = [*found[:MOST_FUNCTIONS], *(each for each in found[MOST_FUNCTIONS:] if each.function == EAGER)]
        rows = [("function", "cold run", "warm run", "result")]
        rows += [(_name(each), _cold(each), _warm(each), _told(each)) for each in shown]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for row in rows:
            yield "  ".join((*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[3]))
        if len(found) > len(shown):
            yield f"and {len(found) - len(shown)} more functions; --json lists them"

    def _reasons(self) -> Iterator[str]:
        """Yields a sentence for each function that failed, and what to do for each reason, once."""
        advice = {}
        failed = [verdict for verdict in self.found if verdict.fails()]
        for verdict in failed[:MOST_FUNCTIONS]:
            for miss in verdict.misses:
                if miss.detail:
                    yield f"{_name(verdict)}: {_shown(miss.detail)}"
                if miss.reason not in self.ignored:
                    advice[miss.advice] = str(miss)
        for text, why in advice.items():
            yield f"advice ({why}): {text}"
        if failed:
            yield ""

    def _times(self) -> Iterator[str]:
        what, cold, warm = self._to_first_step()
        yield f"{what}: cold {duration(cold)}, warm {duration(warm)}"
        yield (
            f"compile time: cold {duration(self._seconds(COLD, hits=False))}, "
            f"warm {duration(self._seconds(WARM, hits=False))} and {duration(self._seconds(WARM, hits=True))} to load; "
            f"whole run: cold {duration(self.runs[COLD].seconds)}, warm {duration(self.runs[WARM].seconds)}"
        )

    def _to_first_step(self) -> tuple[str, float | None, float | None]:
        """Returns the seconds from the start of the command to its first step; to the last program without a step."""
        moments = [self.seen[name].first_step for name in (COLD, WARM)]
        what = STEP
        if None in moments:
            moments = [self.seen[name].last_program for name in (COLD, WARM)]
            what = "time until the last program was ready (no step is marked)"
        cold, warm = (
            None if moment is None else moment - self.runs[name].started
            for name, moment in zip((COLD, WARM), moments, strict=True)
        )
        return what, cold, warm

    def _seconds(self, name: str, *, hits: bool) -> float:
        return sum(each.seconds for each in self.seen[name].programs if (each.cache == "hit") == hits)

    # -------------------------------------------------------------------------------------------- as JSON

    def as_json(self) -> dict[str, Any]:
        """Returns the comparison as one object."""
        body: dict[str, Any] = {"fine": not self.problems, "problems": self.problems, "command": list(self.command)}
        what, *times = self._to_first_step() if WARM in self.runs else ("", None, None)
        for name, to_first in zip((COLD, WARM), times, strict=True):
            if name in self.runs:
                body[name] = {
                    **dataclasses.asdict(self.runs[name]),
                    "processes": self.seen[name].processes,
                    "compile_seconds": self._seconds(name, hits=False),
                    "load_seconds": self._seconds(name, hits=True),
                    "first_step_seconds": to_first if what == STEP else None,
                    "last_program_seconds": None if what == STEP else to_first,
                }
        body["functions"] = [
            {
                **dataclasses.asdict(each),
                "failed": each.fails(self.ignored),
                "misses": [{**dataclasses.asdict(miss), "advice": miss.advice} for miss in each.misses],
            }
            for each in self.found
        ]
        return body


def _name(each: Verdict) -> str:
    return middle(_shown(short(each.function)), NAME_WIDTH)


def _cold(each: Verdict) -> str:
    return f"{each.cold_compiled} compiled, {duration(each.cold_seconds)}" if each.cold_compiled else "-"


def _warm(each: Verdict) -> str:
    parts = []
    if each.warm_hits:
        parts.append(f"{each.warm_hits} {'hit' if each.warm_hits == 1 else 'hits'}, {duration(each.warm_load_seconds)}")
    if each.warm_compiled:
        parts.append(f"{each.warm_compiled} compiled, {duration(each.warm_compile_seconds)}")
    return "; ".join(parts) or "-"


def _told(each: Verdict) -> str:
    if each.verdict != verdicts.MISSED:
        near = " (barely stored: compiling took hardly longer than the threshold)" if each.near_threshold else ""
        return each.verdict + near
    told = f"missed ({'; '.join(str(miss) for miss in each.misses)})"
    return told if each.fails() else f"{told}, as single operations do"


def _shown(text: str) -> str:
    return safe(text, sys.stdout.encoding or "utf-8")
