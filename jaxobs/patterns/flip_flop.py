"""`flip_flop`: a function goes to and fro between programs that it was compiled for before, and compiles them again.

JAX keeps every program, so two signatures in turn cost two compilations and no more. It compiles them again only when
it was made to forget: its caches were emptied, the function object was made again, or a bounded cache overflowed.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.facts import Compilation
from jaxobs.patterns.case import Case, Telling, at_sites, duration, plural
from jaxobs.patterns.programs import Repetitions

NAME = "flip_flop"
ABOUT = "A function goes to and fro between signatures and compiles each of them again and again."

REPEATED = 2
"""Each of the programs was compiled again so often: once may be a test, or a notebook's cell run anew."""

TURNS = 3
"""So often the program that is compiled again is another one than the last: A, B, A, B."""

TOLD_WHEN = (
    f"at least two programs were compiled again {REPEATED} times each, without any difference from an earlier call, "
    f"in {TURNS} turns"
)


class FlipFlop:
    """Follows which program is compiled again."""

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
        """How many programs it goes between, and what makes JAX forget them."""
        programs = self._repetitions.several(1)
        return Telling(
            summary=(
                f"`{case.function}` goes to and fro between {plural(programs, 'program')}{at_sites(case.sites)}, and "
                f"compiled them {plural(case.count, 'more time')} although it had compiled each before "
                f"({duration(case.seconds)})."
            ),
            advice=advice(case),
            data={"programs": programs, "turns": self._turns, "causes": dict(case.causes)},
        )


def advice(case: Case) -> str:
    """What to do, by the cause that most of the repetitions have."""
    cause = case.causes.most_common(1)[0][0]
    if cause == "cache_cleared":
        return "Leave jax.clear_caches() and .clear_cache() out of the loop: JAX keeps all programs until then."
    if case.causes["new_function"]:
        return "Make the function and its jit once, outside the loop: JAX keeps its programs while the function lives."
    return (
        "Keep the jitted function object, do not clear its cache, and call it with fewer signatures: JAX forgets "
        "programs when their function is gone, when a cache is cleared, and when one of its bounded caches is full."
    )


def watch() -> FlipFlop:
    """What the folder's discovery asks every pattern for."""
    return FlipFlop()
