"""The committed baseline: earlier figures, and which of today's are slower.

Ratios, shares, counts and bytes are of one run, so they compare across machines. Seconds compare only where the
processor is of the same model.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import Figure

PATH = Path(__file__).parent / "baseline.json"
SECONDS = ("ns", "µs", "ms", "s")
"""Units that another processor changes."""
COUNTS = ("", "calls")
"""Units that no other work on the machine moves: one wrong count of several is wrong."""
TOLERANCE = 0.25
"""A figure is slower when it is larger than the baseline by more than this share and by more than its floor."""
TOLERANCE_OF_SECONDS = 0.5
"""Share for seconds, which what else the machine does makes longer."""
FLOORS = {"ns": 100.0, "µs": 10.0, "ms": 0.5, "s": 0.1, "%": 0.2, "times": 0.1, "MB": 0.5}
"""Differences below these are noise, whatever share of the figure they are."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The figures of an earlier run by benchmark, and the machine that it ran on."""

    machine: Mapping[str, str]
    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)

    def of(self, benchmark: str, name: str) -> Figure | None:
        """The earlier figure of that name; None where there is none."""
        return self.figures.get(benchmark, {}).get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Today's figure beside the baseline's."""

    benchmark: str
    figure: Figure
    before: Figure | None
    """None where the baseline has no such figure."""
    comparable: bool
    """False for seconds on another processor."""

    @property
    def slower(self) -> bool:
        """Whether the figure is worse than the baseline by more than the tolerance."""
        return self.before is not None and self.comparable and self.figure.value > most(self.before)


def most(before: Figure) -> float:
    """The largest value that is not slower than `before`."""
    share = TOLERANCE_OF_SECONDS if before.unit in SECONDS else TOLERANCE
    return before.value + max(abs(before.value) * share, FLOORS.get(before.unit, 0.0))


def read(path: Path = PATH) -> Baseline | None:
    """The baseline of a file; None where there is no file.

    Raises:
      ValueError: the file is no baseline.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    try:
        figures = {name: {each["name"]: Figure(**each) for each in found} for name, found in content["figures"].items()}
        return Baseline(dict(content["machine"]), figures)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no baseline. Write one with `python -m benchmarks --update-baseline`.") from error


def text(found: Mapping[str, Iterable[Figure]], machine: Mapping[str, str]) -> str:
    """Figures as the content of a file that `read` takes."""
    figures = {name: [dataclasses.asdict(each) for each in each_of] for name, each_of in found.items()}
    return json.dumps({"machine": machine, "figures": figures}, indent=1, ensure_ascii=False) + "\n"


def updated(old: Baseline | None, found: Mapping[str, list[Figure]], machine: Mapping[str, str]) -> str:
    """The baseline with these figures, and those of the benchmarks that did not run.

    Raises:
      ValueError: figures would be kept that are of another machine or of other versions.
    """
    kept = {} if old is None else {name: [*each.values()] for name, each in old.figures.items() if name not in found}
    if kept and old is not None and (differing := differences(old.machine, machine)):
        raise ValueError(f"The baseline is of another {' and '.join(differing)}: update it with all benchmarks.")
    return text(dict(sorted({**kept, **found}.items())), machine)


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Returns what two machines do not have in common, but for the date and the system."""
    return [what for what in ("processor", "python", "jax") if one.get(what) != other.get(what)]


def compare(
    found: Mapping[str, Iterable[Figure]], baseline: Baseline | None, machine: Mapping[str, str]
) -> list[Comparison]:
    """Each figure beside that of the baseline."""
    same = baseline is not None and baseline.machine.get("processor") == machine.get("processor")
    return [
        Comparison(
            benchmark=benchmark,
            figure=each,
            before=None if baseline is None else baseline.of(benchmark, each.name),
            comparable=same or each.unit not in SECONDS,
        )
        for benchmark, figures in found.items()
        for each in figures
    ]


def verdict(compared: list[Comparison], baseline: Baseline | None, machine: Mapping[str, str]) -> Iterator[str]:
    """The sentences that follow the figures: what is over its bound, what got slower, and what was not compared."""
    bounded = [each for each in compared if each.figure.verdict]
    for comparison in bounded:
        figure = comparison.figure
        told = f"{_named(comparison)} is {_value(figure)}"
        limit = f"at most {amount(figure.limit or 0.0, figure.unit)}"
        if figure.verdict == "over":
            yield f"Over its bound: {told}, {limit}."
        elif figure.verdict == "unsure":
            yield (
                f"Not sure: {told}, {within(figure)}; {limit}. Measure it on a machine with less to do: "
                f"python -m benchmarks {comparison.benchmark} --thorough"
            )
    if all(each.figure.verdict == "holds" for each in bounded):
        yield f"All {len(bounded)} bounds hold." if bounded else "None of these figures has a bound."
    if baseline is None:
        yield "Nothing to compare with: there is no baseline. `--update-baseline` writes one."
        return
    when = f"the baseline of {baseline.machine.get('date', 'an unknown date')}"
    held = [each for each in compared if each.figure.compared]
    for slow in slower(compared):
        assert slow.before is not None
        yield f"Slower than {when}: {_named(slow)} is {_value(slow.figure)}, was {_value(slow.before)}."
    if not slower(compared):
        known = sum(each.before is not None and each.comparable for each in held)
        yield f"Nothing is slower than {when} ({known} figures compared)."
    for what in differences(baseline.machine, machine):
        yield f"The baseline's {what} is {baseline.machine.get(what)}, this one {machine.get(what)}."
    if skipped := sum(each.before is not None and not each.comparable for each in held):
        yield f"Not compared: {skipped} figures in seconds, which are of another processor."
    if new := [_named(each) for each in compared if each.before is None]:
        yield f"Not in the baseline: {', '.join(new)}."
    measured = {(each.benchmark, each.figure.name) for each in compared}
    ran = {each.benchmark for each in compared}
    if gone := [
        f"{name} ({benchmark})"
        for benchmark in sorted(ran & baseline.figures.keys())
        for name, figure in baseline.figures[benchmark].items()
        if figure.compared and (benchmark, name) not in measured
    ]:
        yield f"In the baseline, but not measured: {', '.join(gone)}."


def slower(compared: Iterable[Comparison]) -> list[Comparison]:
    """Returns the figures that are slower, of those held against the baseline."""
    return [each for each in compared if each.figure.compared and each.slower]


def within(figure: Figure) -> str:
    """The interval of confidence of a figure, or nothing if it has none."""
    if figure.low is None or figure.high is None:
        return ""
    return f"between {amount(figure.low, '')} and {amount(figure.high, figure.unit)} with 95 % confidence"


def _named(each: Comparison) -> str:
    return f"{each.figure.name} ({each.benchmark})"


def _value(figure: Figure) -> str:
    return amount(figure.value, figure.unit)


def amount(value: float, unit: str) -> str:
    """A value with three digits or so, and its unit."""
    digits = 0 if value == int(value) or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    value = round(value, digits) + 0.0  # no minus before a zero
    return f"{value:.{digits}f} {unit}".strip()
