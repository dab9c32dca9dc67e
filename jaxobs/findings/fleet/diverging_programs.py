"""Processes that run different programs, or the same in another order: a hang or wrong numbers in the making."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxobs.findings.cases import Case
from jaxobs.findings.fleet.support.digest import Listed, Program
from jaxobs.findings.fleet.support.view import View, named

NAME = "diverging_programs"
NEEDS = View
STEADY = 1
"""Views in a row: what was compiled differently stays so."""

UNKNOWN = "<unknown>"

_ADVICE = (
    "Stop the job: it will hang, or its results are already wrong. Give every process the same code, shapes, dtypes "
    "and flags, and call the same functions in the same order in all of them: no `if jax.process_index() == 0` around "
    "a function on global arrays, and no batch of a different size on one host. "
    "To compare the event logs of two processes, run `jaxobs compare`."
)


@dataclass(frozen=True, slots=True)
class _Way:
    """Position at which another process left the way of this one; None if that is too long ago to tell."""

    position: int | None
    ours: Program | None
    """None where the other has one more."""
    theirs: Program | None
    """None where this process has one more."""


def find(view: View) -> Iterator[Case]:
    """A case for each place at which others went another way; processes that went the same way are one."""
    ways: dict[_Way, list[int]] = defaultdict(list)
    lists: dict[_Way, Listed] = {}
    for process, listed in sorted(view.differing.items()):
        way = _first_difference(view.programs, listed)
        if way is not None:
            ways[way].append(process)
            if listed is not None:
                lists[way] = listed
    for way, processes in ways.items():
        yield _case(view, way, processes, lists.get(way))


def _first_difference(own: Sequence[Program], listed: Listed | None) -> _Way | None:
    """Returns where the programs differ; None where one list is the beginning of the other, and that is not settled."""
    if listed is None:
        return _Way(None, None, None)
    theirs = dict(enumerate(listed.programs, listed.first))
    for position in range(listed.first, max(len(own), listed.first + len(theirs))):
        here, there = own[position] if position < len(own) else None, theirs.get(position)
        if here != there:
            long_ago = position == listed.first and position > 0
            return _Way(None, None, None) if long_ago else _Way(position, here, there)
    return None


def _case(view: View, way: _Way, processes: list[int], listed: Listed | None) -> Case:
    who, me = named(processes), f"process {view.own.process}"
    data = {"processes": processes[:64], "count": len(processes), "ours": way.ours, "theirs": way.theirs}
    if way.position is None:
        return Case(
            function=UNKNOWN, subject="long ago", advice=_ADVICE, data=data, count=len(processes),
            summary=f"{who} and {me} compiled different programs, too long ago to say which.",
        )  # fmt: skip
    first = way.ours or way.theirs
    assert first is not None and listed is not None
    return Case(
        function=first[0],
        subject=f"program {way.position + 1}",
        summary=f"{who} and {me} run different programs: {_what(view, way, len(processes))}",
        advice=_ADVICE,
        count=len(processes),
        evidence=(
            f"Process {view.own.process}: {_around(view.programs, 0, way.position)}",
            f"{who}{', each' if len(processes) > 1 else ''}: {_around(listed.programs, listed.first, way.position)}",
        ),
        data=data | {"position": way.position + 1},
    )


def _what(view: View, way: _Way, count: int) -> str:
    assert way.position is not None
    number, ours, theirs = _ordinal(way.position + 1), way.ours, way.theirs
    they = "they have" if count > 1 else "it has"
    if theirs is None and ours is not None:
        return (
            f"{they} not compiled the {number} program that spans processes, `{ours[0]}` ({ours[1]}), although {they} "
            "made as many steps."
        )
    if ours is None and theirs is not None:
        return (
            f"this process has not compiled the {number} program that spans processes there, `{theirs[0]}` "
            f"({theirs[1]}), although it has made as many steps."
        )
    assert ours is not None and theirs is not None
    if ours[0] == theirs[0]:
        return (
            f"the {number} program that spans processes is `{ours[0]}` in both, but lowered differently "
            f"({theirs[1]} there, {ours[1]} here): the shapes, dtypes, shardings, options or code differ."
        )
    order = " The same programs come in a different order." if theirs in view.programs else ""
    return f"the {number} program that spans processes is `{theirs[0]}` there and `{ours[0]}` here.{order}"


def _around(programs: Sequence[Program], first: int, position: int) -> str:
    """The programs around a position, as `2 train.step 1a2b, 3 train.eval 3c4d`."""
    begin = max(0, position - first - 2)
    if position - first >= len(programs):
        return f"{len(programs) + first:,} programs, no more"
    shown = list(enumerate(programs[begin : position - first + 3], first + begin + 1))
    return ", ".join(f"{number}. {name} ({fingerprint})" for number, (name, fingerprint) in shown)


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number:,}{'th' if 10 <= number % 100 <= 20 else endings.get(number % 10, 'th')}"
