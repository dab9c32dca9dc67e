"""A comparison as lines for a person: what was asked for first, then what differs, then function by function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxobs.comparing.differences import Comparison, FunctionDifference
from jaxobs.comparing.runs import FunctionFigures, Run
from jaxobs.comparing.tolerances import Measured
from jaxobs.oom_texts import human
from jaxobs.terminal.lines import Column, Line, Surface, heading, plain, row, section, wrapped
from jaxobs.terminal.text import duration, middle, safe, short

MOST_FUNCTIONS = 20
_ALL = 1_000


def lay_out(
    comparison: Comparison, rows: Sequence[Measured], unlike: Sequence[str], loop: str | None, surface: Surface
) -> list[Line]:
    """The whole comparison.

    Args:
      rows: the measures, with their tolerances.
      unlike: groups that were to be the same, and are not.
      loop: whose steps are compared.
    """
    before, after = comparison.before, comparison.after
    lines: list[Line] = [[(" jaxobs compare", "program")]]
    for name, run in (("A", before), ("B", after)):
        lines += _sentence(f"{name}  {_who(run)}", surface, " ", "summary")
    for note in (*before.notes, *after.notes):
        lines += _sentence(note, surface, " ", "warn")
    lines += _figures(rows, loop, surface)
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


def _figures(rows: Sequence[Measured], loop: str | None, surface: Surface) -> Iterator[Line]:
    failed = sum(each.passed is False for each in rows)
    asked = sum(each.passed is not None for each in rows)
    told = f"{failed} of {asked} tolerances passed over" if failed else f"{asked} tolerances kept" if asked else ""
    yield plain("")
    yield section(f"Figures{f' (steps of {loop})' if loop else ''}", told, surface.width, surface.glyphs)
    columns = [
        Column("figure", 16), Column("A", 10, right=True), Column("B", 10, right=True), Column("change", 9, right=True),
        Column("tolerance", 9, right=True), Column("", 4),
    ]  # fmt: skip
    yield heading(columns)
    for each in rows:
        verdict = {None: "", True: "kept", False: "OVER"}[each.passed]
        style = {None: "", True: "good", False: "bad"}[each.passed]
        yield row(columns, [
            plain(each.measure.name, "name"), plain(each.measure.write(each.before), "number"),
            plain(each.measure.write(each.after), "number"),
            plain("" if each.change is None else f"{each.change:+.1%}", "number"),
            plain(each.tolerance.text if each.tolerance else "", "dim"), plain(verdict, style),
        ])  # fmt: skip
    for each in rows:
        if each.tolerance is not None and None in (each.before, each.after):
            which = "Neither run tells" if each.before is each.after else f"{'AB'[each.after is None]} does not tell"
            yield from _sentence(f"{which} {each.measure.about}. {each.measure.missing}", surface, " ", "bad")


def _differences(comparison: Comparison, unlike: Sequence[str], surface: Surface) -> Iterator[Line]:
    rows = comparison.differences
    yield plain("")
    yield section("What differs", f"{len(rows)} of versions, flags, devices", surface.width, surface.glyphs)
    if None in (comparison.before.manifest, comparison.after.manifest):
        yield from _sentence(
            "One of the logs has lost its manifest: nothing is known of versions.", surface, " ", "warn"
        )
    elif not rows:
        yield plain(" Nothing: versions, flags, options, devices and commit are the same.", "good")
    for each in rows:
        told = f"{each.group}: {each.name}" if each.group != each.name else each.name
        yield from _sentence(f"{told}: {each.before or '(empty)'} -> {each.after or '(empty)'}", surface, " ", "")
    for group in unlike:
        yield from _sentence(f"`{group}` was to be the same, and is not.", surface, " ", "bad")


def _functions(rows: Sequence[FunctionDifference], surface: Surface) -> Iterator[Line]:
    yield plain("")
    count = f"{len(rows):,} function{'s' * (len(rows) != 1)}"
    yield section("Functions by cost", count, surface.width, surface.glyphs)
    columns = [
        Column("function", max(20, surface.width - 62)), Column("programs", 9, right=True),
        Column("seconds A", 9, right=True), Column("seconds B", 9, right=True), Column("what changed", 26),
    ]  # fmt: skip
    yield heading(columns)
    shown = sorted(rows[:MOST_FUNCTIONS], key=lambda each: (-each.cost, each.name))
    for each in shown:
        a, b = each.before, each.after
        changed, *more = wrapped(_changed(each), columns[-1].width, _ALL, surface.glyphs) or [""]
        name = middle(safe(short(each.name), surface.encoding), columns[0].width, surface.glyphs.ellipsis)
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
    parts = ["other program" if each.same_programs is False else ""]
    for one, other in ((a.causes, b.causes), (a.cache, b.cache)):
        for name in sorted({*one, *other}):
            if one[name] != other[name]:
                parts.append(f"{name} {one[name]} -> {other[name]}")
    before, after = a.memory.get("temp"), b.memory.get("temp")
    if before is not None and after is not None and before != after:
        parts.append(f"temp {human(before)} -> {human(after)}")
    return ", ".join(part for part in parts if part)


def _sentence(text: str, surface: Surface, indent: str, style: str) -> Iterator[Line]:
    parts = wrapped(safe(text, surface.encoding), surface.width - len(indent), _ALL, surface.glyphs)
    return ([(indent, ""), (part, style)] for part in parts)
