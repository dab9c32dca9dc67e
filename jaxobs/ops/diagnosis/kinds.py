"""Kinds of faults: how a fault shows itself, and the first thing to do about it then. `kinds.toml` declares them."""

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources

from jaxobs.ops.diagnosis import api_changes, tracebacks
from jaxobs.ops.diagnosis.evidence import BEFORE, RAISED, Observation, clean
from jaxobs.ops.diagnosis.knowledge import Raised

MOST_CAPTURED = 120
"""Characters of a value in an action."""
_OF_JAX = ("jax", "jaxlib")
_PACKAGES = ("caller", "library_of", "owner", "package")
"""Values that name a package: pip wants the name of its distribution."""
_FIELD = re.compile(r"\{(\w+(?:\|[^{}]*)?)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Way in which a fault shows itself, and the first thing to do then."""

    about: str
    """A regular expression of the whole message; its groups can stand in `action`."""
    action: str
    """The first thing to do: one sentence, with captured values."""
    title: str = ""
    """The title of the fault in this case; that of the fault if empty."""
    frames: str = ""
    """A regular expression of the files of the innermost calls; any if empty."""
    phase: str = ""
    """The phase of the program, as in `tracebacks`; any if empty."""
    knows: str = ""
    """A value that has to be known, such as the release of JAX without a name; any if empty."""
    replaces: bool = False
    """Whether the general fix of the fault is of no use here: the action stands alone."""
    sign: bool = False
    """Whether an exception of this kind is itself a sign of the fault."""

    def raised(self) -> Raised:
        """Returns the sign that shows this kind."""
        return Raised(about=self.about, frames=self.frames, phase=self.phase)

    def captured(self, observation: Observation) -> dict[str, str] | None:
        """Returns the values of an observation for the action; None if it is of another kind."""
        if self.phase and tracebacks.phase(observation) != self.phase:
            return None
        if self.frames and not re.search(self.frames, observation.data.get("frames", "")):
            return None
        message = tracebacks.message(observation) or observation.quoted
        if observation.name != RAISED:
            message = f"{message}\n{observation.data.get('next', '')}\n{observation.data.get(BEFORE, '')}"
        found = re.search(self.about, message)
        if found is None:
            return None
        values = {name: clean(text, MOST_CAPTURED) for name, text in found.groupdict().items() if text}
        values |= api_changes.releases(message)
        if self.knows and self.knows not in values:
            return None
        values |= {f"{name}_said": f" ({text})" for name, text in values.items()}
        if where := observation.data.get("where", ""):
            values["at"] = f" at {clean(where, MOST_CAPTURED)}"
        if owner := tracebacks.owner(observation):
            values |= {"owner": owner, "owner_of": f" of {owner}"}
        if caller := tracebacks.owner(observation, besides=_OF_JAX):
            values["caller"] = caller
        return {name: api_changes.distribution(text) if name in _PACKAGES else text for name, text in values.items()}


@functools.cache
def kinds() -> Mapping[str, tuple[Kind, ...]]:
    """Returns the kinds of each fault that has some, by the name of the fault."""
    tables = tomllib.loads((resources.files(__package__) / "kinds.toml").read_text(encoding="utf-8"))
    return {fault: tuple(Kind(**each) for each in found) for fault, found in tables.items()}


def found(fault: str, observations: Iterable[Observation]) -> tuple[Kind, str] | None:
    """Returns the first kind of a fault that its signs show, and the action for it; None if they show none."""
    seen = list(observations)
    for kind in kinds().get(fault, ()):
        for each in seen:
            if (values := kind.captured(each)) is not None:
                return kind, _filled(kind.action, values)
    return None


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Returns a text with its fields filled: `{name}`, or `{name|other|words}` with words for missing values."""

    def value(field: re.Match[str]) -> str:
        names = field[1].split("|")
        return next((values[each] for each in names if each in values), names[-1] if names[1:] else "")

    return _FIELD.sub(value, text)
