"""The figures of two runs side by side: which got worse by more than chance, and which keep a given tolerance."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from jaxobs.base.errors import JaxobsError
from jaxobs.views.comparing.measures import MEASURES, RATE, SHARE, Measure
from jaxobs.views.comparing.runs import Run

Loops = tuple[str | None, str | None]
"""Names of the loops whose steps are compared, in A and in B."""

_UNITS = {
    "s": {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0},
    "B": {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9},
    RATE: {"": 1.0},
    SHARE: {"": 1.0},
    "": {"": 1.0},
}


class ToleranceError(JaxobsError, ValueError):
    """A tolerance that is not one."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By how much a figure may be worse in the second run."""

    text: str
    """As it was given."""
    share: float | None = None
    amount: float | None = None

    def most(self, before: float) -> float:
        """By how much it may differ from `before`."""
        return before * self.share if self.share is not None else self.amount or 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """A measure in both runs."""

    measure: Measure
    before: float | None
    after: float | None
    tolerance: Tolerance | None = None
    noise: float = 0.0
    """By how much two runs of the same program may differ."""

    @property
    def worse_by(self) -> float | None:
        """How much worse the second run is, in the measure's unit; None where one of them is not known."""
        if self.before is None or self.after is None:
            return None
        return self.before - self.after if self.measure.better == "more" else self.after - self.before

    @property
    def passed(self) -> bool | None:
        """Whether the tolerance is kept; None without one. What is not logged cannot be within it."""
        if self.tolerance is None:
            return None
        if self.before is None or self.after is None or self.worse_by is None:
            return False
        return self.worse_by <= self.tolerance.most(self.before) + 1e-12 * max(self.before, self.after)

    @property
    def judged(self) -> str | None:
        """`worse`, `better` or `same`: within what chance explains. None where that cannot be said."""
        worse = self.worse_by
        if worse is None or not self.measure.better:
            return None
        return "same" if abs(worse) <= self.noise else "worse" if worse > 0 else "better"

    @property
    def change(self) -> float | None:
        """Share by which it grew."""
        return None if not self.before or self.after is None else self.after / self.before - 1

    @property
    def change_text(self) -> str:
        """Change as text; in percentage points for a share."""
        if self.measure.unit == SHARE and self.before is not None and self.after is not None:
            return f"{(self.after - self.before) * 100:+.1f} pt"
        return "" if self.change is None else f"{self.change:+.1%}"


def measured(before: Run, after: Run, tolerances: dict[str, Tolerance], loops: Loops) -> tuple[Measured, ...]:
    """Every measure that one of the runs has, or a tolerance asks for."""
    rows = []
    for measure in MEASURES:
        a, b = measure.of(before, loops[0]), measure.of(after, loops[1])
        tolerance = tolerances.get(measure.name)
        if tolerance is not None or (a, b) != (None, None):
            noise = 0.0 if a is None or b is None else measure.noise(before, after, loops, a)
            rows.append(Measured(measure, a, b, tolerance, noise))
    return tuple(rows)


def parse(measure: Measure, text: str) -> Tolerance:
    """Returns the tolerance `5%`, or `2s`, `500MiB`, `3` in the measure's unit; raises `ToleranceError`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%|[A-Za-z]*)\s*", text)
    units = _UNITS[measure.unit]
    if match is not None and match[2] == "%":
        return Tolerance(text.strip(), share=float(match[1]) / 100)
    if match is not None and match[2] in units:
        return Tolerance(text.strip(), amount=float(match[1]) * units[match[2]])
    named = [each for each in units if each]
    kinds = _either([f"a number with {_either(named)}"] if named else ["a number"])
    raise ToleranceError(
        f"`--{measure.flag} {text}` is not a tolerance. Give a share by which it may be worse, such as 5%, or {kinds}."
    )


def _either(words: Iterable[str]) -> str:
    *first, last = list(words)
    return f"{', '.join(first)} or {last}" if first else last
