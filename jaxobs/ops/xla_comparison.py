"""Two folders that `--xla_dump_to` wrote, by what XLA made of each program: operations by name, and layouts."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from jaxobs.facts.events import plain as as_plain
from jaxobs.internals.hlo import text
from jaxobs.ops.doctor import xla_dumps
from jaxobs.views.terminal.lines import Column, Line, Surface, plain, row, sentence, titled

MOST_BYTES, MOST_READ = xla_dumps.MOST_BYTES, 2**30
"""Bytes of one file, and of all of them, that are read."""
MOST_PROGRAMS, MOST_CHANGES = 20, 12
"""Programs and changes of each that are printed; `--json` has all."""
GROUPS = ("layout", "collective", "custom call", "fusion", "operation")
_ARRAY = re.compile(r"\b[a-z]+[0-9]*[a-z0-9]*\[[0-9,<=?]*\](?:\{[^{}]*\})?")
_LAYOUT = re.compile(r"\bentry_computation_layout=\{\((?P<arguments>.*?)\)->(?P<results>.*?)\}(?:, \w+=|$)")


@dataclass(frozen=True, slots=True)
class Change:
    """A count, or the layout of an argument or a result, that differs."""

    group: str
    """Group, one of `GROUPS`, or `flag`."""
    name: str
    a: int | str | None
    b: int | str | None


@dataclass(frozen=True, slots=True)
class Program:
    """A program that both folders have."""

    program: str
    number: int
    """Place among those of its name, in the order in which they were compiled."""
    same: bool | None
    """Whether nothing differs; None if it could not be read whole."""
    lowered_alike: bool | None
    """Whether JAX gave XLA the same operations in both; None if one folder does not have them."""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two folders: A before and B after."""

    programs: tuple[Program, ...]
    """The most changes first."""
    only: dict[str, list[str]]
    """Programs that one folder alone has, by `a` and `b`."""
    flags: tuple[Change, ...]
    notes: tuple[str, ...]

    @property
    def groups(self) -> set[str]:
        """The groups of `--same` that differ."""
        unlike = any(self.only.values()) or any(not each.same for each in self.programs)
        return {name for name, differs in (("programs", unlike), ("flags", bool(self.flags))) if differs}


def compare(before: str, after: str) -> Comparison:
    """Returns what differs; raises `JaxobsError` if a folder has no programs or cannot be read."""
    a, b = xla_dumps.programs(Path(before)), xla_dumps.programs(Path(after))
    reader = _Reader()
    found = [
        reader.compared(name, number, a[name, number], b[name, number]) for name, number in a if (name, number) in b
    ]
    only = {
        side: [name for name, number in here if (name, number) not in there]
        for side, here, there in (("a", a, b), ("b", b, a))
    }
    flags = [xla_dumps.flags(Path(each)) for each in (before, after)]
    changed = [Change("flag", name, flags[0].get(name), flags[1].get(name)) for name in sorted({*flags[0], *flags[1]})]
    return Comparison(
        tuple(sorted(found, key=lambda each: -len(each.changes))), only,
        tuple(each for each in changed if each.a != each.b), tuple(reader.notes),
    )  # fmt: skip


class _Reader:
    """Reads the texts of programs, up to a bound on all of them."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._left = MOST_READ

    def compared(self, name: str, number: int, a: dict[str, Path], b: dict[str, Path]) -> Program:
        """Returns how a program differs."""
        lowered, optimised = ([self._text(files.get(stage)) for files in (a, b)] for stage in xla_dumps.STAGES)
        counts = [None if each is None else text.named(each) for each in lowered]
        alike = None if None in counts else counts[0] == counts[1]
        if None in optimised:
            return Program(name, number, None, alike)
        changes = tuple(_changes(*(each or "" for each in optimised)))
        return Program(name, number, not changes, alike, changes)

    def _text(self, path: Path | None) -> str | None:
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                data = file.read(min(MOST_BYTES, self._left) + 1)
        except OSError as error:
            self.notes.append(f"`{path}` cannot be read: {error.strerror or error}.")
            return None
        whole = len(data) <= min(MOST_BYTES, self._left)
        self._left = max(0, self._left - len(data))
        if not whole:
            self.notes.append(f"`{path}` is too large to be compared.")
        elif not data.rstrip().endswith(b"}"):
            self.notes.append(f"`{path}` ends in the middle of a program, so it is not compared.")
        return data.decode(errors="replace") if whole and data.rstrip().endswith(b"}") else None


def _changes(before: str, after: str) -> Iterator[Change]:
    for place in ("arguments", "results"):
        a, b = (_layouts(each, place) for each in (before, after))
        for number in range(max(len(a), len(b))):
            pair = [each[number] if number < len(each) else None for each in (a, b)]
            if pair[0] != pair[1]:
                yield Change("layout", f"{place[:-1]} {number}", *pair)
    counts: Sequence[Counter[tuple[str, str]]] = text.named(before), text.named(after)
    for key in sorted({*counts[0], *counts[1]}, key=lambda key: (GROUPS.index(key[0]), key[1])):
        if counts[0][key] != counts[1][key]:
            yield Change(*key, counts[0][key], counts[1][key])


def _layouts(program: str, place: str) -> list[str]:
    found = _LAYOUT.search(program[: program.find("\n")])
    return [] if found is None else _ARRAY.findall(re.sub(r"/\*.*?\*/", "", found[place]))


def headline(found: Comparison) -> str:
    """Returns how many programs differ."""
    differing = [each for each in found.programs if each.changes]
    alone = sum(map(len, found.only.values()))
    if not differing and not alone:
        return (
            "No program differs." if "programs" not in found.groups else "No program that could be read whole differs."
        )
    some = ", ".join(f"`{name}`" for name in list(dict.fromkeys(each.program for each in differing))[:3])
    told = f"{len(differing)} of {len(found.programs)} programs differ{f', most of all {some}' if some else ''}"
    return f"{told}; {alone} more {'is' if alone == 1 else 'are'} in one folder alone." if alone else f"{told}."


def cause(found: Comparison) -> str | None:
    """Returns what explains it, as far as dumps say: another lowering, flags, or neither."""
    differing = [each for each in found.programs if each.changes]
    if not differing:
        return None
    other = sum(each.lowered_alike is False for each in differing)
    flags = ", ".join(f"`{each.name}`" for each in found.flags[:3])
    told = (
        f"JAX lowered {other} of them to other operations: the code or the version of JAX differs." if other
        else "JAX lowered them to the same operations, so XLA compiled them otherwise."
        if all(each.lowered_alike for each in differing) else "The folders do not say what JAX lowered."
    )  # fmt: skip
    why = f"Flags of XLA differ: {flags}." if flags else "The flags that the folders name are the same."
    return f"{told} {why} A dump names no versions: compare the event logs of both runs for them."


def as_json(a: str, b: str, found: Comparison, unlike: Sequence[str]) -> dict[str, Any]:
    """Returns the comparison as one object."""
    return {
        "kind": "xla_dumps", "headline": headline(found), "cause": cause(found), "a": a, "b": b,
        "programs": as_plain(found.programs), "only": found.only,
        "flags": [{"name": each.name, "a": each.a, "b": each.b} for each in found.flags],
        "notes": list(found.notes), "unlike": list(unlike), "passed": not unlike,
    }  # fmt: skip


def lay_out(a: str, b: str, found: Comparison, unlike: Sequence[str], surface: Surface) -> list[Line]:
    """The whole comparison as lines for a person."""
    lines: list[Line] = [[(" jaxobs compare", "program")]]
    for side, source in (("A", a), ("B", b)):
        lines += sentence(f"{side}  {source}, XLA dumps", surface, "summary")
    for note in found.notes[:MOST_CHANGES]:
        lines += sentence(note, surface, "warn")
    lines += [plain(""), *sentence(headline(found), surface, "warn" if "programs" in found.groups else "good")]
    lines += sentence(cause(found) or "", surface) if cause(found) else []
    for group in unlike:
        lines += sentence(f"`{group}` had to be the same.", surface, "bad")
    for side, names in found.only.items():
        if names:
            lines += sentence(f"In {side.upper()} alone: {', '.join(names[:MOST_PROGRAMS])}", surface, "warn")
    columns = [Column("", 12), Column("", 40), Column("A", 24, right=True), Column("B", 24, right=True)]
    alike = Counter((each.program, each.lowered_alike, each.changes) for each in found.programs if each.changes)
    for (name, lowered, changes), count in islice(alike.items(), MOST_PROGRAMS):
        told = {None: "", True: "lowered alike", False: "lowered otherwise"}[lowered]
        lines += _table(name if count == 1 else f"{name}, {count} programs", told, changes, columns, surface)
    return [*lines, *(_table("Flags of XLA", "", found.flags, columns, surface) if found.flags else [])]


def _table(title: str, told: str, changes: Sequence[Change], columns: list[Column], surface: Surface) -> Iterator[Line]:
    yield from titled(surface.safe(title), told, surface, columns)
    for change in changes[:MOST_CHANGES]:
        sides = [plain("-" if side is None else surface.safe(str(side)), "number") for side in (change.a, change.b)]
        yield row(columns, [plain(change.group), plain(surface.safe(change.name), "name"), *sides])
    if len(changes) > MOST_CHANGES:
        yield from sentence(f"{len(changes) - MOST_CHANGES} more, which `--json` has", surface, "dim")
