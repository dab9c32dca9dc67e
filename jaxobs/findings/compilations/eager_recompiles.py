"""`eager_recompiles`: operations outside any jitted function keep recompiling at one line of code."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support import sizes
from jaxobs.findings.compilations.support.case import Case, Telling, duration, plural
from jaxobs.findings.compilations.support.programs import Repetitions

NAME = "eager_recompiles"
ABOUT = "Operations outside any jitted function keep compiling at one line of code."

SAME = 3
"""Compilations of a known program at one line: the body of an eager scan or cond is created again each time."""

MOST_CROWDED = 8
"""Sizes of an operation that may lie closer than buckets do: a network that is tried out without jit has layers of
as many widths."""

PROGRAMS = 32
"""Programs of one operation at one line, of whatever kind: `model.init` of a large network, run without jit,
stays below."""

TOLD_WHEN = (
    f"at one call site, an operation kept taking new sizes (as for `unbounded_shapes`, with {MOST_CROWDED} instead of "
    f"{sizes.MOST_CROWDED}), recompiled the same programs {SAME} times, or compiled {PROGRAMS} programs"
)

MOST_SITES = 64
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
    """Which of the three it is; empty while it is not one."""

    def take(self, event: Compilation) -> None:
        self.compiled += 1
        self.same += self.repetitions.take(event) is not None
        new_size = sum(self._takes(change) for change in event.changes[:MOST_CHANGES]) > 0
        if self.same >= SAME:
            self.why = "functions" if event.function in TAKE_FUNCTIONS else "same"
        elif new_size:
            self.why = "sizes"
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


@dataclass(slots=True)
class _Site:
    case: Case
    operations: dict[str, _Operation] = field(default_factory=dict)
    again: Counter[str] = field(default_factory=Counter)


class EagerRecompiles:
    """Watches the operations of each call site; the site that compiled longest ago is forgotten first."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, _Site] = OrderedDict()

    def see(self, event: Compilation) -> Iterator[Case]:
        """The call site, once one of its operations compiles without end."""
        if not event.eager:
            return
        where = event.call_site or f"`{event.function}`"
        site = self._sites.get(where)
        if site is None:
            site = self._sites[where] = _Site(Case.of(NAME, event, where))
            site.case.about = site
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
        site.again[event.function] += 1
        site.case.add(event)
        if any(each.why for each in site.operations.values()):
            yield site.case

    def tell(self, case: Case) -> Telling:
        """Which operations, and why they compile."""
        site: _Site = case.about
        whys = {each.why for each in site.operations.values()}
        named = [f"`{name}` {count}" for name, count in site.again.most_common(4)]
        more = f" and {plural(len(site.again) - 4, 'other operation')}" if len(site.again) > 4 else ""
        why = _first(whys)
        verb = "compiled" if why == "programs" else "recompiled"
        return Telling(
            summary=(
                f"{plural(case.count, 'operation')} outside any jitted function {verb} at "
                f"{case.subject}{case.within(case.subject)}, which took "
                f"{duration(case.seconds)}: {', '.join(named)}{more}; {_WHY[why]}."
            ),
            advice=_ADVICE[why],
            data={"call_site": case.subject, "operations": dict(site.again.most_common(8)), "why": why},
        )


TAKE_FUNCTIONS = frozenset({"scan", "while", "cond", "while_loop", "fori_loop", "switch", "map", "associative_scan"})
"""Operations that are given functions: a new function object is another program."""

_WHY = {
    "functions": "the same programs each time, because the functions passed to them are new objects",
    "same": "the same programs each time",
    "sizes": "for new sizes each time",
    "programs": "a different program each time",
}
_ADVICE = {
    "functions": (
        "Put the loop into a jitted function, or define the function that you pass to lax.scan, cond, while_loop or "
        "map once, outside the loop. To JAX, a lambda or closure that is created again is a different function, and "
        "jax.clear_caches() drops all programs."
    ),
    "same": (
        "Put what this line does into one jitted function that is defined once: JAX keeps its program. "
        "jax.clear_caches() drops all programs."
    ),
    "sizes": (
        "Do this in NumPy, or in a jitted function on arrays of a fixed size: pad to a few sizes, and use masks "
        "instead of x[:n]."
    ),
    "programs": (
        "Put what this line does into one jitted function, such as jax.jit(model.init), to get one program instead of "
        "many."
    ),
}


def _first(whys: set[str]) -> str:
    return next(each for each in _WHY if each in whys)


watch = EagerRecompiles
