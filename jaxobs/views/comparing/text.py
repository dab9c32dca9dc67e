"""A comparison as lines for a person: the verdict first, then figures, what differs, and function by function."""

from collections.abc import Iterator, Sequence

from jaxobs.recorder.oom_texts import human
from jaxobs.views.comparing.differences import Comparison, FunctionDifference
from jaxobs.views.comparing.measures import MEASURES
from jaxobs.views.comparing.runs import FunctionFigures, Run
from jaxobs.views.comparing.tolerances import Loops, Measured
from jaxobs.views.comparing.verdict import Verdict
from jaxobs.views.terminal.lines import ALL, Column, Line, Surface, plain, row, sentence, titled, wrapped
from jaxobs.views.terminal.text import duration, short

MOST_FUNCTIONS = 20
ALWAYS = frozenset({"step-time", "memory"})
"""Figures whose absence is explained although no tolerance asks for them."""


def lay_out(
    comparison: Comparison, rows: Sequence[Measured], unlike: Sequence[str], loops: Loops, verdict: Verdict,
    surface: Surface,
) -> list[Line]:  # fmt: skip
    """The whole comparison; `unlike` are groups that had to be the same, and `loops` those whose steps count."""
    before, after = comparison.before, comparison.after
    lines: list[Line] = [[(" jaxobs compare", "program")]]
    for name, run in (("A", before), ("B", after)):
        lines += sentence(f"{name}  {_who(run)}", surface, "summary")
    for note in (*before.notes, *after.notes):
        lines += sentence(note, surface, "warn")
    lines += _verdict(verdict, surface)
    lines += _figures(rows, loops, surface)
    lines += _time(before, after, surface)
    lines += _differences(comparison, unlike, surface)
    lines += _functions(comparison.functions, surface)
    return lines


def _who(run: Run) -> str:
    manifest = run.manifest
    parts = [run.source]
    if manifest is not None:
        parts += [manifest.program or "", f"on {manifest.hostname}" if manifest.hostname else ""]
        parts.append(f"jax {manifest.versions['jax']}" if "jax" in manifest.versions else "")
        parts.append(", ".join(f"{count} {kind}" for kind, count in manifest.devices.items()))
    end = run.exit
    parts.append("" if end is None else f"ended: {end.reason}{f' {end.detail}' if end.detail else ''}")
    return ", ".join(each for each in parts if each)


def _verdict(verdict: Verdict, surface: Surface) -> Iterator[Line]:
    yield plain("")
    yield from sentence(verdict.headline, surface, "bad" if verdict.worse else "good")
    if verdict.cause is not None:
        yield from sentence(verdict.cause, surface)
    if verdict.also is not None:
        yield from sentence(verdict.also, surface, "warn")


def _figures(rows: Sequence[Measured], loops: Loops, surface: Surface) -> Iterator[Line]:
    failed = sum(each.passed is False for each in rows)
    asked = sum(each.passed is not None for each in rows)
    told = f"{failed} of {asked} tolerances exceeded" if failed else f"{asked} tolerances kept" if asked else ""
    columns = [
        Column("figure", 16), Column("A", 10, right=True), Column("B", 10, right=True), Column("change", 9, right=True),
        Column("", 6), Column("tolerance", 9, right=True), Column("", 4),
    ]  # fmt: skip
    yield from titled(f"Figures{_steps_of(loops)}", told, surface, columns)
    for measured in rows:
        verdict = {None: "", True: "kept", False: "OVER"}[measured.passed]
        style = {None: "", True: "good", False: "bad"}[measured.passed]
        judged = "" if measured.judged in (None, "same") else measured.judged or ""
        yield row(columns, [
            plain(measured.measure.name, "name"), plain(measured.measure.write(measured.before), "number"),
            plain(measured.measure.write(measured.after), "number"),
            plain(measured.change_text, "number"), plain(judged, {"worse": "bad", "better": "good"}.get(judged, "")),
            plain(measured.tolerance.text if measured.tolerance else "", "dim"), plain(verdict, style),
        ])  # fmt: skip
    yield from _missing(rows, surface)


def _missing(rows: Sequence[Measured], surface: Surface) -> Iterator[Line]:
    """Names figures that a log lacks, and how a run gets them; in red if a tolerance asks for them."""
    lacking: dict[tuple[str, str], list[Measured]] = {}
    shown = {each.measure.name for each in rows}
    absent = [Measured(each, None, None) for each in MEASURES if each.name in ALWAYS and each.name not in shown]
    for measured in (*rows, *absent):
        if measured.measure.missing and None in (measured.before, measured.after):
            which = "either log" if measured.before is measured.after else f"{'AB'[measured.after is None]}'s log"
            lacking.setdefault((which, measured.measure.missing), []).append(measured)
    for (which, missing), those in lacking.items():
        names = ", ".join(each.measure.name for each in those)
        style = "bad" if any(each.tolerance is not None for each in those) else "dim"
        yield from sentence(f"Not in {which}: {names}. {missing}", surface, style)


def _steps_of(loops: Loops) -> str:
    a, b = (None if each is None else short(each) for each in loops)
    if a is None and b is None:
        return ""
    return f" (steps of {a or b})" if a == b or None in (a, b) else f" (steps of {a} in A, of {b} in B)"


def _time(before: Run, after: Run, surface: Surface) -> Iterator[Line]:
    """Table of the time by category, in seconds and as a share of each run."""
    if not before.seconds and not after.seconds:
        return
    walls = [run.wall_seconds or 0.0 for run in (before, after)]
    whole = f"{duration(walls[0]) or 'not logged'} and {duration(walls[1]) or 'not logged'}"
    columns = [
        Column("category", 16), Column("A", 10, right=True), Column("share", 7, right=True),
        Column("B", 10, right=True), Column("share", 7, right=True),
    ]  # fmt: skip
    yield from titled("Where the time went", whole, surface, columns)
    for name in dict.fromkeys([*before.seconds, *after.seconds]):
        spent = [run.seconds.get(name, 0.0) for run in (before, after)]
        if any(spent):
            cells = [plain(name, "name")]
            for seconds, wall, run in zip(spent, walls, (before, after), strict=True):
                cells.append(plain(duration(seconds) if run.seconds else "not logged", "number"))
                cells.append(plain(f"{seconds / wall:.1%}" if wall else "", "dim"))
            yield row(columns, cells)


def _differences(comparison: Comparison, unlike: Sequence[str], surface: Surface) -> Iterator[Line]:
    rows = comparison.differences
    yield from titled("What differs", f"{len(rows)} in versions, flags, devices", surface)
    if None in (comparison.before.manifest, comparison.after.manifest):
        yield from sentence("One of the logs has lost its manifest: its versions are unknown.", surface, "warn")
    elif not rows:
        yield plain(" Nothing: versions, flags, options, devices and commit are the same.", "good")
    for difference in rows:
        told = f"{difference.group}: {difference.name}" if difference.group != difference.name else difference.name
        yield from sentence(f"{told}: {difference.before or '(empty)'} -> {difference.after or '(empty)'}", surface)
    for group in unlike:
        yield from sentence(f"`{group}` was expected to be the same, but differs.", surface, "bad")


def _functions(rows: Sequence[FunctionDifference], surface: Surface) -> Iterator[Line]:
    count = f"{len(rows):,} function{'s' * (len(rows) != 1)}"
    columns = [
        Column("function", max(20, surface.width - 62)), Column("programs", 9, right=True),
        Column("seconds A", 9, right=True), Column("seconds B", 9, right=True), Column("what changed", 26),
    ]  # fmt: skip
    yield from titled("Functions by cost", count, surface, columns)
    shown = sorted(rows[:MOST_FUNCTIONS], key=lambda each: (-each.cost, each.name))
    for function in shown:
        a, b = function.before, function.after
        changed, *more = wrapped(_changed(function), columns[-1].width, ALL, surface.glyphs) or [""]
        name = surface.cut(short(function.name), columns[0].width)
        yield row(columns, [
            plain(name, "name"), plain(_pair(a, b), "number"), plain(duration(a.seconds) if a else "", "number"),
            plain(duration(b.seconds) if b else "", "number"), plain(changed, "cause"),
        ])  # fmt: skip
        for part in more:
            yield row(columns, [plain("")] * 4 + [plain(part, "cause")])
    if len(rows) > len(shown):
        yield plain(f" {len(rows) - len(shown):,} cheaper ones: see --json", "dim")


def _pair(a: FunctionFigures | None, b: FunctionFigures | None) -> str:
    before, after = (0 if each is None else each.programs for each in (a, b))
    return f"{before}" if before == after else f"{before} -> {after}"


def _changed(each: FunctionDifference) -> str:
    a, b = each.before, each.after
    if a is None or b is None:
        return "only in B" if a is None else "only in A"
    longer = b.seconds - a.seconds  # more than chance explains, as of the compile time of a run
    parts = [f"{duration(longer)} longer" if longer > max(0.5, 0.2 * a.seconds) else ""]
    parts.append("other program" if each.same_programs is False else "")
    for one, other in ((a.causes, b.causes), (a.cache, b.cache)):
        for name in sorted({*one, *other}):
            if one[name] != other[name]:
                parts.append(f"{name} {one[name]} -> {other[name]}")
    before, after = a.memory.get("temp"), b.memory.get("temp")
    if before is not None and after is not None and before != after:
        parts.append(f"temp {human(before)} -> {human(after)}")
    return ", ".join(part for part in parts if part)
