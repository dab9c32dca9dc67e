"""`eager_recompiles`: operations outside any jitted function keep recompiling at a line of code, or at many."""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxobs.facts.compilations import EAGER, Change, Compilation
from jaxobs.findings.compilations import flip_flop
from jaxobs.findings.compilations.support import sizes
from jaxobs.findings.compilations.support.case import Case, Telling, duration, plural
from jaxobs.findings.compilations.support.programs import Repetitions

NAME = "eager_recompiles"
FOLLOWS = ("unjitted_operations",)

SAME = 3
"""Compilations of a known program at one line: the body of an eager scan or cond is created again each time."""

MOST_CROWDED = 8
"""Sizes of an operation that may lie closer than buckets do: a network that is tried out without jit has layers of
as many widths."""

PROGRAMS = 32
"""Programs of one operation at one line, of whatever kind: `model.init` of a large network, run without jit,
stays below."""

_SIZES = re.compile(r"shape|size|limit|start|stop|pad|length|dim|num|count|repeat|^[nmk]$", re.IGNORECASE)
"""Names of parameters, static in operations outside any jitted function, on which the size of a result depends."""

MANY = 3
"""Lines with one reason that are one fault: code that ought to be one jitted function."""
MOST_SITES = 128
MOST_OPERATIONS = 16
MOST_DIMENSIONS = 2
MOST_CHANGES = 4


@dataclass(slots=True)
class _Operation:
    compiled: int = 0
    same: int = 0
    repetitions: Repetitions = field(default_factory=lambda: Repetitions(most=4))
    sizes: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    why: str = ""
    """Which of those in `_WHY` it is; empty while it is not one."""
    parameter: str = ""
    """The latest parameter whose value is new, if `why` is `values`."""

    def take(self, event: Compilation) -> None:
        self.compiled += 1
        self.same += self.repetitions.take(event) is not None
        new = [change for change in event.changes[:MOST_CHANGES] if self._takes(change)]
        if self.same >= SAME:
            self.why = "functions" if event.function in TAKE_FUNCTIONS else "same"
        elif new:
            self.why, self.parameter = "sizes" if any(map(_is_of_a_size, new)) else "values", new[0].path
        elif not self.why and self.compiled >= PROGRAMS:
            self.why = "programs"

    def _takes(self, change: Change) -> bool:
        """Returns whether a change in one dimension alone shows that the dimension has no end."""
        if change.what not in ("shape", "static_argument"):
            return False
        varied = sizes.varied(change)
        # The layers of a network differ in several dimensions, what a loop slices in one.
        if len(varied) != 1:
            return False
        (only,) = varied
        key = (only.path, only.number)
        if len(self.sizes) >= MOST_DIMENSIONS and key not in self.sizes:
            return False
        seen = self.sizes.setdefault(key, set())
        if len(seen) < 2 * sizes.MOST_ALIGNED:
            seen.update((only.before, only.after))
        return not sizes.bucket_like(seen, MOST_CROWDED)


def _is_of_a_size(change: Change) -> bool:
    return change.what != "static_argument" or _SIZES.search(change.path) is not None


@dataclass(slots=True)
class _Site:
    case: Case = field(init=False)
    """Made when an operation compiles for the second time, which it does at few lines."""
    operations: dict[str, _Operation] = field(default_factory=dict)
    again: Counter[str] = field(default_factory=Counter)
    why: str = ""
    """The first reason of its operations, of those in `_WHY`; empty while there is none."""


class EagerRecompiles:
    """Watches the operations of each call site; the site that compiled longest ago is forgotten first."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._many: dict[str, Case] = {}
        """Cases of many lines, by reason."""

    def see(self, event: Compilation) -> Iterator[Case]:
        """The call site, once one of its operations compiles without end."""
        if not event.eager:
            return
        where = event.call_site or f"`{event.function}`"
        site = self._sites.get(where)
        if site is None:
            site = self._sites[where] = _Site()
            if len(self._sites) > MOST_SITES:
                self._sites.popitem(last=False)
        self._sites.move_to_end(where)
        operation = site.operations.get(event.function)
        if operation is None:
            if len(site.operations) >= MOST_OPERATIONS:
                return
            operation = site.operations[event.function] = _Operation()
        operation.take(event)
        if operation.compiled == 1:
            return
        if not site.again:
            site.case = Case.of(NAME, event, where)
            site.case.about = site
        site.again[event.function] += 1
        site.case.add(event)
        if site.case.refuted:  # the line is one of many, for the reason that it had when it joined them
            yield self._many[site.why].add(event)
            return
        whys = {each.why for each in site.operations.values()}
        site.why = next((each for each in _WHY if each in whys), "")
        if site.why:
            yield from self._cases(site)

    def _cases(self, site: _Site) -> Iterator[Case]:
        """Yields the case of a line, or that of all lines with its reason where they are many; the line joins them."""
        many = self._many.get(site.why)
        own = [site] if many else [each for each in self._sites.values() if each.why == site.why]
        if many is None and len(own) < MANY:
            yield site.case
            return
        if many is None:
            many = self._many[site.why] = Case(NAME, EAGER, f"many lines, {site.why}", about=(site.why, []))
        for each in own:
            each.case.refuted = "This line is one of many, which are reported together."
        lines: list[_Site] = many.about[1]
        if len(lines) + len(own) <= MOST_SITES:
            lines += own
            many.sum_up([each.case for each in lines])
        yield many

    def tell(self, case: Case) -> Telling:
        """Which operations at which lines, and why they compile."""
        why, lines = (case.about.why, [case.about]) if isinstance(case.about, _Site) else case.about
        again: Counter[str] = sum((line.again for line in lines), Counter())
        joins = why == "sizes" and {"append", "concatenate"} & again.keys()
        cut = why == "programs" and again.keys() <= SLICES
        advice, what = _ADVICE["joined" if joins else "sizes" if cut else why], "operation"
        advice = flip_flop.advice(case) if case.by_cleared_caches else advice
        if len(lines) == 1:
            at, named = (
                f"{case.subject}{case.within(case.subject)}",
                [f"`{n}` {count}" for n, count in again.most_common()],
            )
        else:
            costs = Counter({line.case.subject: line.case.seconds for line in lines}).most_common()
            at, named, what = f"{len(lines)} lines", [f"{line} {duration(seconds)}" for line, seconds in costs], "line"
            advice = advice.replace("what this line does", "what these lines do")
        more = f" and {plural(len(named) - 4, f'other {what}')}" if len(named) > 4 else ""
        changing = {each.parameter for line in lines for each in line.operations.values() if each.why == "values"}
        reason = _WHY[why].replace("a parameter", f"`{changing.pop()}`") if len(changing) == 1 else _WHY[why]
        verb = "compiled" if why == "programs" else "recompiled"
        return Telling(
            summary=(
                f"{plural(case.count, 'operation')} outside any jitted function {verb} at {at}, which took "
                f"{duration(case.seconds)}: {', '.join(named[:4])}{more}; {reason}."
            ),
            advice=advice,
            data={
                "call_site": case.where if len(lines) > 1 else case.subject,
                "operations": dict(again.most_common(8)),
                "why": why,
            },
        )


TAKE_FUNCTIONS = frozenset({"scan", "while", "cond", "while_loop", "fori_loop", "switch", "map", "associative_scan"})
"""Operations that are given functions: a new function object is another program."""

SLICES = frozenset({"dynamic_slice", "slice"})
"""Operations whose parameters, which no change names, are sizes."""

_WHY = {
    "functions": "the same programs each time, because the functions passed to them are new objects",
    "same": "the same programs each time",
    "sizes": "for new sizes each time",
    "values": "for a new value of a parameter each time",
    "programs": "a different program each time",
}
_ADVICE = {
    "functions": (
        "Put the loop into a jitted function, or define the function that you pass to lax.scan, cond, while_loop or "
        "map once, outside the loop. To JAX, a lambda or closure that is created again is a different function."
    ),
    "same": "Put what this line does into one jitted function that is defined once: JAX keeps its program.",
    "sizes": (
        "Put what this line does into one jitted function on arrays of a fixed size: pad to a few sizes, and use masks "
        "instead of x[:n]. Or do it in NumPy."
    ),
    "values": (
        "Put what this line does into one jitted function, and pass the value that changes as an argument: its values "
        "then share one program. Or do it in NumPy."
    ),
    "joined": (
        "Collect the parts in a list, and join them once after the loop. If each turn needs the whole, allocate it "
        "before the loop, and write into it in a jitted function: x.at[n].set(part)."
    ),
    "programs": (
        "Put what this line does into one jitted function, such as jax.jit(model.init), to get one program instead of "
        "many."
    ),
}

watch = EagerRecompiles
