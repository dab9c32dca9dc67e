"""Folded stacks, one a line, as flame graph tools read them: `function;scope;operation 1234`, in microseconds."""

from collections import Counter

from jaxobs.facts.profiles import Profile
from jaxobs.profiles import stacks


def folded(profile: Profile) -> str:
    """The operations' own time. What takes less than half a microsecond is left out."""
    counts: Counter[str] = Counter()
    for row in profile.operations:
        stack = ";".join(_name(each) for each in stacks.frames(row))
        counts[stack] += round(row.device_seconds * 1e6)
    return "".join(f"{stack} {count}\n" for stack, count in counts.items() if count)


def _name(frame: str) -> str:
    return " ".join(frame.replace(";", ",").split()) or "?"
