"""`identity_hashed_static`: a static argument is created again as an object that looks alike and compares unequal."""

import re
from collections.abc import Iterator

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, plural
from jaxobs.findings.compilations.support.static_arguments import looks_alike

NAME = "identity_hashed_static"

MANY = 3
"""Objects that look like an earlier one: two or three models in one script may well share a function."""

_FUNCTION = re.compile(r"\w+(\.[\w<>]+)+|<function .*>")

MOST_ARGUMENTS = 4
MOST_CHANGES = 16


class IdentityHashedStatic:
    """Counts objects that look alike, by argument."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}
        self._texts: dict[str, str] = {}

    def see(self, event: Compilation) -> Iterator[Case]:
        """The arguments that come as new objects again and again."""
        if event.eager:
            return
        for change in event.changes[:MOST_CHANGES]:
            text = looks_alike(change) if change.what in ("static_argument", "structure") else None
            if text is None or (change.path not in self._cases and len(self._cases) >= MOST_ARGUMENTS):
                continue
            case = self._cases.setdefault(change.path, Case.of(NAME, event, change.path))
            self._texts[change.path] = text
            if case.add(event, change).count >= MANY:
                yield case

    def tell(self, case: Case) -> Telling:
        """Tells how the objects look, and how to make them equal."""
        text = self._texts[case.subject]
        objects = plural(case.count + 1, "object")
        what = f"The static argument `{case.subject}`" if case.subject else "The metadata of the arguments"
        return Telling(
            summary=(
                f"{what} of `{case.function}` has been {objects} that all print as {text}"
                f"{at_sites(case)}; no two are equal, so each new one recompiled it ({duration(case.seconds)})."
            ),
            advice=_advice(case.subject, text, case.caller),
            data={"argument": case.subject, "prints_as": text},
        )


def _advice(path: str, text: str, caller: str | None) -> str:
    if text == "nan":
        return f"NaN never equals NaN: pass None for `{path}` if it has no value, or pass it as an array."
    if caller is not None:
        return (
            f"{caller} creates it and calls its own function with it: keep the {caller} object that you call and "
            "reuse it, instead of creating one for each call."
        )
    of = f" for `{path}`" if path else ""
    if _FUNCTION.fullmatch(text):
        return (
            f"Define the function{of} once, before the loop, and pass the same one. Pass what it closes over and what "
            "differs between calls as arguments."
        )
    return (
        f"Create the object{of} once, before the loop, and pass the same one; or give its class `__eq__` and "
        f"`__hash__` by value (@dataclass(frozen=True)); or make it a pytree and pass it as an ordinary argument."
    )


watch = IdentityHashedStatic
