"""Costs of a test's compilations, to hold a later run against, and the differences that exceed a tolerance."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxobs.base.errors import SettingError
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.functions import MEMORY_SECTIONS
from jaxobs.testing.compiles import place_and_reason

QUANTITIES = ("compilations", "flops", "memory", "compile_seconds")
MUCH_SLOWER = 2.0
"""Factor by which a compile must take longer to be reported if compile seconds have no tolerance."""
SLOWER_SECONDS = 1.0
"""Seconds by which a function must take longer to count as slower."""
MOST_REASONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Costs of a function in a test, its programs taken together."""

    compilations: int
    """Executables, compiled or loaded."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """Compilations by cause."""
    flops: float | None = None
    """Floating-point operations of one execution of each; None where the backend does not tell."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes on one device by section, of all together."""
    compile_seconds: float | None = None
    """Tracing, lowering and compiling; None where one was loaded from the persistent cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """How far each quantity may be from the baseline."""

    compilations: float = 0
    """In compilations."""
    flops: float = 0.01
    """As a part of the baseline: 0.01 is 1 %."""
    memory: float = 0.05
    """As a part of the baseline, for each section."""
    compile_seconds: float | None = None
    """As a part of the baseline, upwards; None never fails, for machines differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A quantity of a function that is not what the baseline has."""

    function: str
    quantity: str
    """`compilations`, `flops`, `memory (temp)`, ..."""
    before: float
    now: float
    fails: bool = True
    """False for what is worth a line and no more."""
    reasons: tuple[str, ...] = ()
    """Call site and reason of each compilation that the baseline does not have."""

    @property
    def change(self) -> str:
        """Signed, in per cent; for compilations in compilations."""
        if self.quantity == "compilations":
            return f"{self.now - self.before:+g}"
        if not self.before:
            return "from nothing"
        return f"{(self.now - self.before) / self.before * 100:+,.1f} %"


def measured(compilations: Iterable[Compilation]) -> dict[str, Cost]:
    """Returns the cost of each function in the compilations; what JAX dispatches by itself is left out."""
    by_function: dict[str, list[Compilation]] = {}
    for compilation in compilations:
        if not compilation.eager:
            by_function.setdefault(compilation.function, []).append(compilation)
    return {name: _cost(found) for name, found in sorted(by_function.items())}


def _cost(found: Sequence[Compilation]) -> Cost:
    flops = [each.flops for each in found if each.flops is not None]
    loaded = any(each.cache == "hit" for each in found)
    return Cost(
        compilations=len(found),
        causes=dict(sorted(Counter(each.cause for each in found).items())),
        flops=math.fsum(flops) if len(flops) == len(found) else None,
        memory={
            section: sum(each.memory[section] for each in found)
            for section in MEMORY_SECTIONS
            if all(section in each.memory for each in found)
        },
        compile_seconds=None if loaded else round(sum(sum(each.phases.values()) for each in found), 3),
    )


def differences(
    before: Mapping[str, Cost],
    now: Mapping[str, Cost],
    tolerances: Tolerances,
    compilations: Sequence[Compilation] = (),
) -> list[Difference]:
    """Returns what differs by more than is tolerated, and what is much slower."""
    nothing = Cost(compilations=0)
    found: list[Difference] = []
    for name in sorted({*before, *now}):
        old, new = before.get(name, nothing), now.get(name, nothing)
        if abs(new.compilations - old.compilations) > tolerances.compilations:
            found.append(
                Difference(
                    function=name,
                    quantity="compilations",
                    before=old.compilations,
                    now=new.compilations,
                    reasons=_additional(old, name, compilations) if new.compilations > old.compilations else (),
                )
            )
        elif new.compilations == old.compilations:
            found += _same_programs(name, old, new, tolerances)
    return found


def _same_programs(name: str, old: Cost, new: Cost, tolerances: Tolerances) -> Iterator[Difference]:
    """Returns the differences of as many programs; sums over more or fewer cannot be compared."""
    if old.flops is not None and new.flops is not None and _differs(old.flops, new.flops, tolerances.flops):
        yield Difference(function=name, quantity="flops", before=old.flops, now=new.flops)
    for section in MEMORY_SECTIONS:
        if section in old.memory and section in new.memory:
            before, now = old.memory[section], new.memory[section]
            if _differs(before, now, tolerances.memory):
                yield Difference(function=name, quantity=f"memory ({section})", before=before, now=now)
    if old.compile_seconds is not None and new.compile_seconds is not None:
        before_seconds, seconds = old.compile_seconds, new.compile_seconds
        allowed = tolerances.compile_seconds
        if allowed is not None:
            slower = seconds > before_seconds * (1 + allowed)
        else:
            slower = _much_slower(before_seconds, seconds)
        if slower:
            yield Difference(
                function=name, quantity="compile seconds", before=before_seconds, now=seconds, fails=allowed is not None
            )


def _differs(before: float, now: float, tolerance: float) -> bool:
    return abs(now - before) > abs(before) * tolerance


def _additional(old: Cost, name: str, compilations: Sequence[Compilation]) -> tuple[str, ...]:
    """Returns the compilations whose cause the baseline does not have, or not so often."""
    known = Counter(old.causes)
    reasons: list[str] = []
    for compilation in compilations:
        if compilation.function != name or compilation.eager:
            continue
        if known[compilation.cause] > 0:
            known[compilation.cause] -= 1
        else:
            reasons.append(place_and_reason(compilation))
    more = [f"and {len(reasons) - MOST_REASONS} more"] if len(reasons) > MOST_REASONS else []
    return (*reasons[:MOST_REASONS], *more)


def settled(before: Cost | None, now: Cost) -> Cost:
    """Returns the cost to write down, with the old seconds if nothing else changed and they are about right."""
    if before is None or before.compile_seconds is None:
        return now
    old, new = before.compile_seconds, now.compile_seconds
    same = dataclasses.replace(before, compile_seconds=new) == now
    if same and (new is None or not (_much_slower(old, new) or _much_slower(new, old))):
        return before
    return now


def _much_slower(before: float, now: float) -> bool:
    return now > max(before * MUCH_SLOWER, before + SLOWER_SECONDS)


def tolerances(given: Iterable[tuple[str, object]], source: str, base: Tolerances | None = None) -> Tolerances:
    """`base` with these instead of its own; later ones win.

    Args:
      given: quantity and value: a number, `"2%"`, or None for no limit on compile seconds.
      source: where they were written, for the error.

    Raises:
      SettingError: there is no such quantity, or the value is not a tolerance.
    """
    values = {name: getattr(base or Tolerances(), name) for name in QUANTITIES}
    for name, value in given:
        if name not in QUANTITIES:
            raise SettingError(f"{source} has no quantity `{name}`. Quantities: {', '.join(QUANTITIES)}.")
        values[name] = None if value is None and name == "compile_seconds" else _number(name, value, source)
    return Tolerances(**values)


def _number(name: str, value: object, source: str) -> float:
    text = value.strip() if isinstance(value, str) else value
    percent = isinstance(text, str) and text.endswith("%")
    try:
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            raise ValueError
        number = float(text.removesuffix("%") if isinstance(text, str) else text) / (100 if percent else 1)
        if not 0 <= number < float("inf") or (percent and name == "compilations"):
            raise ValueError
    except ValueError:
        wanted = "a number of compilations" if name == "compilations" else "a part of the baseline: `0.02` or `2%`"
        raise SettingError(f"{source} gives `{name}` the tolerance {value!r:.100}, but it must be {wanted}.") from None
    return number
