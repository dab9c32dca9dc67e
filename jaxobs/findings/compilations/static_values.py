"""`static_values`: a static argument takes changing values, and each value is a program of its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, plural, shortened
from jaxobs.findings.compilations.support.static_arguments import fields_that_change, looks_alike, unbounded, values

NAME = "static_values"

CLOSES = True

MOST_ARGUMENTS = 4
MOST_VALUES = 64
MOST_CHANGES = 16
MOST_SHOWN = 8


@dataclass(slots=True)
class _Argument:
    case: Case
    values: dict[str, None] = field(default_factory=dict)
    unbounded: bool = False

    def take(self, *found: str) -> None:
        known = len(self.values)
        for value in found:
            if len(self.values) < MOST_VALUES:
                self.values[value] = None
        if not self.unbounded and len(self.values) > known:
            self.unbounded = unbounded(self.values)


class StaticValues:
    """Collects the values of each static argument."""

    def __init__(self) -> None:
        self._arguments: dict[str, _Argument] = {}

    def see(self, event: Compilation) -> Iterator[Case]:
        """The arguments whose values have no end."""
        if event.eager or event.cause not in ("static_argument", "new_function", "structure"):
            return
        for change in event.changes[:MOST_CHANGES]:
            if change.what != "static_argument" or looks_alike(change) is not None:
                continue
            argument = self._arguments.get(change.path)
            if argument is None:
                if len(self._arguments) >= MOST_ARGUMENTS:
                    continue
                argument = self._arguments[change.path] = _Argument(Case.of(NAME, event, change.path))
                argument.case.about = argument
            # Where values are not shown all look the same: then each compilation is a new one.
            before, after = values(change)
            argument.take(before, after if after != before else f"{after} {argument.case.count + 2}")
            argument.case.add(event, change)
            if argument.unbounded:
                yield argument.case

    def tell(self, case: Case) -> Telling:
        """The values, and what to pass instead."""
        argument: _Argument = case.about
        known = list(argument.values)
        taken = len(known) if len(known) < MOST_VALUES else case.count + 1
        some = [shortened(each, 60) for each in known[-MOST_SHOWN:]]
        changing = fields_that_change(known)
        what = (
            f"{' and '.join(f'`{each}`' for each in changing)} of `{case.subject}`" if changing else f"`{case.subject}`"
        )
        rest = ", and leave the rest static" if changing else ""
        return Telling(
            summary=(
                f"The static argument `{case.subject}` of `{case.function}` has taken {plural(taken, 'value')}"
                f"{at_sites(case)}; each new one recompiles it ({duration(case.seconds)} so far)."
            ),
            advice=(
                f"Pass {what} as an array instead of a static argument{rest}; if it must be static, as for a shape or "
                "a Python branch, round it to a few values."
            ),
            data={"argument": case.subject, "values": taken, "some": some},
        )


watch = StaticValues
