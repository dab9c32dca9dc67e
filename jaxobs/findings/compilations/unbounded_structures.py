"""`unbounded_structures`: an argument's structure takes changing forms, such as a list that grows at every call."""

from collections.abc import Iterator

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, plural, shortened
from jaxobs.findings.compilations.support.static_arguments import looks_alike

NAME = "unbounded_structures"

MANY = 6
"""Structures that no earlier call had: optional arguments and a model in training and evaluation make two to four."""

MOST_CHANGES = 16


class UnboundedStructures:
    """Counts new structures; JAX keeps the old ones, so that each compilation is a new one."""

    def __init__(self) -> None:
        self._case: Case | None = None
        self._latest = Change("", "structure", "", "")

    def see(self, event: Compilation) -> Iterator[Case]:
        """The function, once its structures look endless."""
        if event.eager or event.cause != "structure":
            return
        changes = [each for each in event.changes[:MOST_CHANGES] if each.what == "structure"]
        if all(looks_alike(each) is not None for each in changes):  # `identity_hashed_static` reports these
            return
        self._latest = changes[0]
        self._case = (self._case or Case.of(NAME, event)).add(event, self._latest)
        if self._case.count >= MANY:
            yield self._case

    def tell(self, case: Case) -> Telling:
        """Tells how many structures, and the latest difference."""
        latest = self._latest
        where = f" in `{latest.path}`" if latest.path else ""
        return Telling(
            summary=(
                f"The arguments of `{case.function}` have had {plural(case.count + 1, 'structure')}"
                f"{at_sites(case)}; each new one recompiled it ({duration(case.seconds)}). The latest "
                f"difference{where}: {shortened(latest.before, 80)} -> {shortened(latest.after, 80)}."
            ),
            advice=(
                "Keep the same structure in every call: the same keys and lengths, and either None or an array. "
                "Put what grows into one array, padded to a fixed size."
            ),
            data={"structures": case.count + 1, "path": latest.path},
        )


watch = UnboundedStructures
