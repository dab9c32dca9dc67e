"""`forgotten_programs`: one and the same program keeps being recompiled, because JAX was made to forget it."""

from collections.abc import Iterator

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.flip_flop import advice
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, times
from jaxobs.findings.compilations.support.programs import Repetitions

NAME = "forgotten_programs"

MANY = 4
"""Repetitions that count. Caches are cleared once between two experiments, rarely three times."""


class ForgottenPrograms:
    """Counts repetitions of a single program."""

    def __init__(self) -> None:
        self._repetitions = Repetitions()
        self._case: Case | None = None

    def see(self, event: Compilation) -> Iterator[Case]:
        """The repetitions, as long as they are all of one program."""
        if event.eager or event.cause == "new_function":
            return
        if self._repetitions.take(event) is None:
            return
        self._case = (self._case or Case.of(NAME, event)).add(event)
        if self._case.count >= MANY and self._repetitions.several(1) == 1:
            yield self._case

    def tell(self, case: Case) -> Telling:
        """Tells how often, and what makes JAX forget."""
        return Telling(
            summary=(
                f"`{case.function}` recompiled the same program {times(case.count)}{at_sites(case)} "
                f"({duration(case.seconds)}): something made JAX drop it each time."
            ),
            advice=advice(case),
            data={"causes": dict(case.causes)},
        )


watch = ForgottenPrograms
