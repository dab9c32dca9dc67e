"""Figures of a run that a tolerance can be set for, and whether the second run keeps it. One object for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jaxobs.comparing.runs import Run
from jaxobs.errors import JaxobsError
from jaxobs.oom_texts import human
from jaxobs.terminal.text import duration

_UNITS = {
    "s": {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0},
    "B": {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9},
    "": {"": 1.0},
}


class ToleranceError(JaxobsError, ValueError):
    """A tolerance that is none."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By how much a figure may be larger in the second run."""

    text: str
    """As it was given."""
    share: float | None = None
    amount: float | None = None

    def most(self, before: float) -> float:
        """The largest figure that keeps it."""
        return before * (1 + self.share) if self.share is not None else before + (self.amount or 0.0)


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run: smaller is better."""

    name: str
    """Of the flag: `--max-<name>`."""
    about: str
    unit: str
    """`s`, `B`, or empty for a number of things."""
    of: Callable[[Run, str | None], float | None]
    """By run and loop; None where the run does not tell it."""
    missing: str = ""
    """What a run has to do to tell it."""

    def write(self, value: float | None) -> str:
        """The figure for a person."""
        if value is None:
            return "not told"
        return duration(value) if self.unit == "s" else human(value) if self.unit == "B" else f"{value:,.0f}"


def _step_time(run: Run, loop: str | None) -> float | None:
    found = run.loops.get(loop) if loop is not None else None
    return None if found is None else found.median


def _mean_step_time(run: Run, loop: str | None) -> float | None:
    found = run.loops.get(loop) if loop is not None else None
    return None if found is None else found.mean


def _temporaries(run: Run, _: str | None) -> float | None:
    sizes = [each.memory["temp"] for each in run.functions.values() if "temp" in each.memory]
    return max(sizes, default=None)


_STEPS = "Mark the steps with `jaxobs.step` or `jaxobs.steps`."

MEASURES = (
    Measure("step-time", "the usual (median) time of a step of the loop", "s", _step_time, _STEPS),
    Measure("mean-step-time", "the mean time of a step, pauses and all", "s", _mean_step_time, _STEPS),
    Measure(
        "compile-time", "the time of tracing, lowering, compiling and loading, all functions", "s",
        lambda run, _: sum(each.seconds for each in run.functions.values()),
    ),
    Measure(
        "programs", "the number of programs compiled or loaded", "",
        lambda run, _: sum(each.programs for each in run.functions.values()),
    ),
    Measure(
        "recompilations", "the number of compilations whose cause is not a first call", "",
        lambda run, _: sum(each.programs - each.causes["first_call"] for each in run.functions.values()),
    ),
    Measure(
        "cache-misses", "the number of programs that the persistent cache did not have", "",
        lambda run, _: sum(each.cache["miss"] for each in run.functions.values()),
    ),
    Measure(
        "memory", "the peak of memory on the fullest device", "B",
        lambda run, _: max(run.memory_peak.values(), default=None),
        "A device is sampled every `sample_interval`, and at the end.",
    ),
    Measure(
        "temporaries", "the temporaries of the largest program", "B", _temporaries,
        "Programs tell their memory where they took a second to compile, and on accelerators.",
    ),
    Measure("findings", "the number of findings", "", lambda run, _: len(run.findings)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure in both runs."""

    measure: Measure
    before: float | None
    after: float | None
    tolerance: Tolerance | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the tolerance is kept; None without one. What was not told cannot be within it."""
        if self.tolerance is None:
            return None
        if self.before is None or self.after is None:
            return False
        return self.after <= self.tolerance.most(self.before) * (1 + 1e-12)

    @property
    def change(self) -> float | None:
        """Share by which it grew."""
        return None if not self.before or self.after is None else self.after / self.before - 1


def measured(before: Run, after: Run, tolerances: dict[str, Tolerance], loop: str | None) -> tuple[Measured, ...]:
    """Every measure that one of the runs tells, or a tolerance asks for."""
    rows = (Measured(each, each.of(before, loop), each.of(after, loop), tolerances.get(each.name)) for each in MEASURES)
    return tuple(row for row in rows if row.tolerance or (row.before, row.after) != (None, None))


def parse(measure: Measure, text: str) -> Tolerance:
    """`5%`, or an amount in the measure's unit: `2s`, `500MiB`, `3`.

    Raises:
      ToleranceError: it is neither.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%|[A-Za-z]*)\s*", text)
    units = _UNITS[measure.unit]
    if match is not None and match[2] == "%":
        return Tolerance(text.strip(), share=float(match[1]) / 100)
    if match is not None and match[2] in units:
        return Tolerance(text.strip(), amount=float(match[1]) * units[match[2]])
    kinds = _either([f"a number with {_either([each for each in units if each])}"] if measure.unit else ["a number"])
    raise ToleranceError(
        f"`--max-{measure.name} {text}` is no tolerance. Give a share by which it may grow, such as 5%, or {kinds}."
    )


def _either(words: Iterable[str]) -> str:
    *first, last = list(words)
    return f"{', '.join(first)} or {last}" if first else last
