"""`flip_flop`: a function alternates between programs that it was compiled for before, and recompiles them.

JAX keeps every program, so two signatures in turn cost two compilations and no more. It recompiles them only when
it was made to forget: its caches were emptied, the function object was created again, or a bounded cache overflowed.
"""

from collections.abc import Iterator

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, plural, times
from jaxobs.findings.compilations.support.programs import Repetitions

NAME = "flip_flop"

GENERAL = 1
"""Rank among general patterns: a function object that is created again explains why programs are forgotten."""

REPEATED = 2
"""Each of the programs was recompiled so often: once may be a test, or a notebook's cell rerun."""

TURNS = 3
"""Changes between repeated programs that make it an alternation: A, B, A, B."""


class FlipFlop:
    """Follows which program is recompiled."""

    def __init__(self) -> None:
        self._repetitions = Repetitions()
        self._last: str | None = None
        self._turns = 0
        self._case: Case | None = None

    def see(self, event: Compilation) -> Iterator[Case]:
        """The alternation, once it is one."""
        if event.eager:
            return
        program = self._repetitions.take(event)
        if program is None:
            return
        self._turns += self._last is not None and program != self._last
        self._last = program
        self._case = (self._case or Case.of(NAME, event)).add(event)
        if self._turns >= TURNS and self._repetitions.several(REPEATED) >= 2:
            yield self._case

    def tell(self, case: Case) -> Telling:
        """Tells how many programs it goes between, and what makes JAX forget them."""
        programs = self._repetitions.several(1)
        return Telling(
            summary=(
                f"`{case.function}` alternates between {plural(programs, 'program')}{at_sites(case)} and recompiled "
                f"them {times(case.count)}, although it had compiled each before ({duration(case.seconds)})."
            ),
            advice=advice(case),
            data={"programs": programs, "turns": self._turns, "causes": dict(case.causes)},
        )


def advice(case: Case) -> str:
    """Returns advice by the cause that most of the repetitions have."""
    if case.by_cleared_caches:
        return (
            "Move jax.clear_caches() and .clear_cache() out of the loop: JAX keeps all programs until one of them is "
            "called."
        )
    if case.causes["new_function"]:
        return (
            "Create the function and its jit once, outside the loop: JAX keeps its programs while the function exists."
        )
    return (
        "Keep the jitted function object, do not clear its cache, and call it with fewer signatures: JAX drops "
        "programs when their function is deleted, when a cache is cleared, and when one of its bounded caches is full."
    )


watch = FlipFlop
