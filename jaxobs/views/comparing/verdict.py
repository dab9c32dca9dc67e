"""Judgement of two runs: the figure that got worse, by how much, and the cause that the logs support best."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxobs.facts.compilations import EAGER
from jaxobs.recorder.oom_texts import human
from jaxobs.views.comparing.differences import ABSENT, Comparison, Difference, FunctionDifference
from jaxobs.views.comparing.measures import loop_of
from jaxobs.views.comparing.runs import Run
from jaxobs.views.comparing.tolerances import Loops, Measured
from jaxobs.views.terminal.text import duration, short

MOST_SHAPES = 2
MOST_DIFFERENCES = 3
EXPLAINS = 0.5
"""Share of a difference that a cause has to account for."""
MORE_WORK = 1.05
LEAST_RISE = 0.05
"""Share by which compile time has to rise to be explained although it may be chance."""

STEPS = ("step-time", "mean-step-time", "p95-step-time")
"""Measures of the step time: the first of them that got worse leads."""
CONSEQUENCES = frozenset({"steps-per-second", "items-per-second", "goodput"})
"""Measures that follow from others."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two runs in a few sentences."""

    headline: str
    """Sentence on the figure that got worse most, and by how much; or that nothing got worse."""
    cause: str | None = None
    """Why, as far as the logs say."""
    worse: tuple[str, ...] = ()
    """Names of all measures that got worse, the worst first."""
    better: tuple[str, ...] = ()
    also: str | None = None
    """Sentence on the other figures that got worse."""


def judge(comparison: Comparison, rows: Sequence[Measured], loops: Loops) -> Verdict:
    """Returns the sentences that a person should read first."""
    worse = {each.measure.name: each for each in rows if each.judged == "worse"}
    better = tuple(each.measure.name for each in rows if each.judged == "better")
    ordered = sorted(worse.values(), key=lambda each: -_cost(each, comparison.after, loops))
    steps = next((worse[name] for name in STEPS if name in worse), None)
    ordered = [each for each in ordered if each.measure.name not in STEPS or each is steps]
    if not ordered:
        return Verdict(_nothing(rows, better), _compiled_longer(rows, comparison, loops), better=better)
    first, *rest = ordered
    others = [each for each in rest if each.measure.name not in CONSEQUENCES]
    return Verdict(
        headline=_headline(first, comparison, loops),
        cause=_cause(first, comparison, loops),
        worse=tuple(each.measure.name for each in ordered),
        better=better,
        also=f"Also worse: {', '.join(map(_from_to, others))}." if others else None,
    )


def _cost(row: Measured, after: Run, loops: Loops) -> float:
    """Seconds of the second run, to put the worst first; what is no time comes after all that is."""
    worse = row.worse_by or 0.0
    if row.measure.name in STEPS:
        figures = loop_of(after, loops[1])
        return worse * (figures.steps if figures is not None else 1)
    if row.measure.name == "compile-time":
        return worse
    order = ("goodput", "memory", "live-arrays", "steps-per-second", "items-per-second")
    place = order.index(row.measure.name) if row.measure.name in order else len(order)
    return -1.0 - place


def _nothing(rows: Sequence[Measured], better: Sequence[str]) -> str:
    known = {each.measure.name: each for each in rows if each.judged is not None}
    if not known:
        return "Nothing can be compared: the logs have no measure in common."
    steps = known.get("step-time") or known.get("mean-step-time")
    improved = [_from_to(known[name]) for name in better if name not in CONSEQUENCES]
    end = f" Better: {', '.join(improved)}." if improved else ""
    if steps is None:
        return f"Nothing got worse by more than chance, but one of the logs has no step times: speed is unknown.{end}"
    if steps.judged == "better":
        return f"Nothing got worse by more than chance.{end}"
    return f"Nothing got worse by more than chance: a step takes {_pair(steps)}.{end}"


def _compiled_longer(rows: Sequence[Measured], comparison: Comparison, loops: Loops) -> str | None:
    """Returns a sentence on the function that compiled longer, where compile time rose by what may be chance."""
    row = next((each for each in rows if each.measure.name == "compile-time"), None)
    cause = None if row is None or (row.change or 0.0) < LEAST_RISE else _cause(row, comparison, loops)
    return None if row is None or cause is None else f"Compile time rose, {_pair(row)}, which may be chance. {cause}"


def _pair(row: Measured) -> str:
    return f"{row.measure.write(row.before)} in A and {row.measure.write(row.after)} in B"


def _from_to(row: Measured) -> str:
    write = row.measure.write
    return f"{row.measure.name} {write(row.before)} -> {write(row.after)}"


def _headline(row: Measured, comparison: Comparison, loops: Loops) -> str:
    name, change, write = row.measure.name, row.change, row.measure.write
    more = "" if change is None else f", {abs(change):.0%} {'more' if change > 0 else 'less'}"
    if name in STEPS:
        figures = loop_of(comparison.after, loops[1])
        assert figures is not None
        steps = {
            "step-time": "A step of B takes",
            "mean-step-time": "On average, including pauses, a step of B takes",
            "p95-step-time": "The slowest 5% of B's steps take at least",
        }[name]
        total = f": {duration((row.worse_by or 0.0) * figures.steps)} over {figures.steps:,} steps"
        return f"{steps} {write(row.after)}, A's {write(row.before)}{more}{total if name != 'p95-step-time' else ''}."
    if name == "compile-time":
        return f"B spent {write(row.after)} compiling, A {write(row.before)}{more}."
    if name in ("memory", "live-arrays", "temporaries"):
        size = {"memory": "peak of device memory", "live-arrays": "largest sample of live arrays"}
        what = size.get(name, "largest size of temporaries")
        return f"The {what} is {write(row.after)} in B, {write(row.before)} in A{more}."
    if name == "goodput":
        return f"Steps took {write(row.after)} of B's time, {write(row.before)} of A's."
    return f"B has {write(row.after)} {name.replace('-', ' ')}, A {write(row.before)}."


# ------------------------------------------------------------------------------------------------ causes


def _cause(row: Measured, comparison: Comparison, loops: Loops) -> str | None:
    finders: dict[str, Callable[[Measured, Comparison, Loops], Iterator[str]]] = {
        **dict.fromkeys(STEPS, _slower_steps),
        **dict.fromkeys(("compile-time", "programs", "recompilations", "cache-misses"), _more_compiling),
        **dict.fromkeys(("memory", "live-arrays", "temporaries"), _more_memory),
        "goodput": _lost_time,
    }
    find = finders.get(row.measure.name)
    return None if find is None else next(find(row, comparison, loops), None)


def _slower_steps(row: Measured, comparison: Comparison, loops: Loops) -> Iterator[str]:
    """The best-supported first: what was measured, then what was lowered, then what merely differs."""
    slower = row.worse_by or 0.0
    waits = _input_wait(comparison.before, loops[0]), _input_wait(comparison.after, loops[1])
    if waits[0] is not None and waits[1] is not None and waits[1] - waits[0] >= EXPLAINS * slower:
        yield f"Waiting for input: {duration(waits[1])} per step in B, {duration(waits[0])} in A."
    changed = [each for each in _of_steps(comparison, loops) if each.same_programs is False]
    for function in changed:
        if (told := _other_program(function)) is not None:
            yield f"`{short(function.name)}` does different work: {told}."
    known = [each for each in _of_steps(comparison, loops) if each.same_programs]
    differing = _differing(comparison)
    if changed:
        names = ", ".join(f"`{short(each.name)}`" for each in changed[:MOST_SHAPES])
        code = "versions, flags and devices are the same, so the code must differ"
        yield f"{names} was lowered to a different program; {differing or code}."
    elif differing and known:
        yield f"The functions of a step are the same programs, but {differing}."
    elif differing:
        yield f"{differing[0].upper()}{differing[1:]}."
    new = {each.finding: each for each in comparison.after.findings.values()}
    for finding in comparison.before.findings.values():
        new.pop(finding.finding, None)
    for finding in new.values():
        yield f"B has the finding `{finding.finding}`, which A does not have: {finding.summary}"
    if known:
        yield (
            "The logs do not say why: programs, versions, flags and devices are the same. Check the host: other "
            "load, clocks, disks, the network."
        )


def _input_wait(run: Run, loop: str | None) -> float | None:
    """Seconds that a step waited for input."""
    figures = loop_of(run, loop)
    if figures is None or not figures.steps or not run.seconds:
        return None
    return run.seconds.get("input_wait", 0.0) / figures.steps


def _of_steps(comparison: Comparison, loops: Loops) -> list[FunctionDifference]:
    """The functions that a step calls, where that is logged; else all that were compiled."""
    called: set[str] = set()
    for run, name in ((comparison.before, loops[0]), (comparison.after, loops[1])):
        figures = loop_of(run, name)
        if figures is not None and figures.state is not None:
            called |= set(figures.state.calls)
    return [each for each in comparison.functions if (each.name in called if called else each.name != EAGER)]


def _other_program(each: FunctionDifference) -> str | None:
    """How its work differs: in what it was compiled for, else in the compiler's count of operations."""
    a, b = each.before, each.after
    assert a is not None and b is not None
    parts = []
    if a.arrays is not None and b.arrays is not None:
        parts = _shapes(a.arrays, b.arrays)
    if a.flops and b.flops and b.flops > MORE_WORK * a.flops:
        parts.append(f"{b.flops / a.flops:.2g} times the FLOPs")
    return ", ".join(parts) or None


def _shapes(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Arrays of its first program that have other shapes or types, where both have as many."""
    if len(before) != len(after):
        return []
    found = list(dict.fromkeys(f"{a} -> {b}" for a, b in zip(before, after, strict=True) if a != b))
    more = [f"{len(found) - MOST_SHAPES} more"] if len(found) > MOST_SHAPES else []
    return found[:MOST_SHAPES] + more


def _differing(comparison: Comparison) -> str:
    """Versions, flags, options, devices and host that are not the same."""
    groups = ("devices", "flags", "config", "versions", "host", "commit")
    if any(each.name == "jax" for each in comparison.differences):  # other options follow from it
        groups = ("devices", "versions", "flags", "config", "host", "commit")
    rows = sorted(
        (each for each in comparison.differences if each.group in groups), key=lambda d: groups.index(d.group)
    )
    shown = [_said(each) for each in rows[:MOST_DIFFERENCES]]
    more = f" and {len(rows) - len(shown)} more" if len(rows) > len(shown) else ""
    return f"what differs: {'; '.join(shown)}{more}" if rows else ""


def _said(each: Difference) -> str:
    short_hash = each.group == "commit" and ABSENT not in (each.before, each.after)
    before, after = (text[:12] if short_hash else text for text in (each.before, each.after))
    return f"{each.name} {before or '(empty)'} -> {after or '(empty)'}"


def _more_compiling(row: Measured, comparison: Comparison, loops: Loops) -> Iterator[str]:
    before, after = comparison.before, comparison.after
    hits = [sum(each.cache["hit"] for each in run.functions.values()) for run in (before, after)]
    programs = [sum(each.programs for each in run.functions.values()) for run in (before, after)]
    if programs[0] and programs[1] and hits[1] / programs[1] < hits[0] / programs[0] - 0.1:
        disabled = sum(each.cache["disabled"] for each in after.functions.values())
        off = " It is off in B." if disabled == programs[1] else ""
        yield (
            f"The persistent cache had {hits[0]:,} of {programs[0]:,} programs in A and {hits[1]:,} of "
            f"{programs[1]:,} in B.{off}"
        )
    grown = sorted(comparison.functions, key=lambda each: -_grown(each, "seconds"))
    for function in grown[:1]:
        if _grown(function, "seconds") <= 0 and _grown(function, "programs") <= 0:
            break
        a, b = function.before, function.after
        assert b is not None
        name = "Operations outside any jitted function" if function.name == EAGER else f"`{short(function.name)}`"
        if a is None:
            yield f"{name} compiled in B only: {b.programs:,} programs, {duration(b.seconds)}."
            continue
        causes = {cause: count - a.causes[cause] for cause, count in b.causes.items() if count > a.causes[cause]}
        causes.pop("first_call", None)
        if causes:
            cause = max(causes, key=lambda name: causes[name])
            example = f", as in {b.examples[cause]}" if cause in b.examples else ""
            yield (
                f"{name} compiled {b.programs:,} times in B, {a.programs:,} in A: {causes[cause]:,} more because of "
                f"`{cause}`{example}."
            )
        elif function.same_programs is False and (told := _other_program(function)) is not None:
            yield f"{name} is a different program: {told}."
        else:
            yield f"{name} took {duration(b.seconds)} in B, {duration(a.seconds)} in A."


def _grown(each: FunctionDifference, figure: str) -> float:
    a, b = (0.0 if run is None else getattr(run, figure) for run in (each.before, each.after))
    return float(b - a)


def _more_memory(row: Measured, comparison: Comparison, loops: Loops) -> Iterator[str]:
    def temporaries(each: FunctionDifference) -> int:
        a, b = (0 if figures is None else figures.memory.get("temp", 0) for figures in (each.before, each.after))
        return b - a

    most = max(comparison.functions, key=temporaries, default=None)
    worse = row.worse_by or 0.0
    live = [max(run.live_peak.values(), default=0) for run in (comparison.before, comparison.after)]
    if row.measure.name != "live-arrays" and live[1] - live[0] >= EXPLAINS * worse:
        yield f"Live arrays: {human(live[1])} in B, {human(live[0])} in A."
    if row.measure.name != "live-arrays" and most is not None and temporaries(most) >= EXPLAINS * worse:
        yield f"The temporaries of `{short(most.name)}` grew by {human(temporaries(most))}."
    for function in _of_steps(comparison, loops):
        if function.same_programs is False and (told := _other_program(function)) is not None:
            yield f"`{short(function.name)}` works on different arrays: {told}."


def _lost_time(row: Measured, comparison: Comparison, loops: Loops) -> Iterator[str]:
    shares = [_shares(run) for run in (comparison.before, comparison.after)]
    grown = {name: share - shares[0].get(name, 0.0) for name, share in shares[1].items() if name != "step"}
    most = max(grown, key=lambda name: grown[name], default=None)
    if most is not None and grown[most] > 0:
        yield f"Mostly `{most}`: {shares[1][most]:.1%} of B's time, {shares[0].get(most, 0.0):.1%} of A's."


def _shares(run: Run) -> dict[str, float]:
    wall = run.wall_seconds
    return {name: seconds / wall for name, seconds in run.seconds.items()} if wall else {}
