"""The values of a static argument: whether they have an end, and whether they differ as values or only as objects."""

import re
from collections.abc import Collection

from jaxobs.facts.compilations import Change
from jaxobs.findings.compilations.support import sizes

NUMBERS = 6
"""Different numbers, or tuples of them, that do not look like buckets: a value that varies so belongs into an array."""

OTHERS = 10
"""Different values of any other type: a mode or an activation function has a handful."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_RECORD, _FIELD = re.compile(r"[\w.]+\(\w+="), re.compile(r"(\w+)=(.*?)(?=, \w+=|\)+$)")
_PLAIN = frozenset({"int", "float", "complex", "str", "bytes", "bool", "tuple", "frozenset", "range", "slice"})
"""Types that compare by value: where values are not shown, their names stand for values that differ."""


def looks_alike(change: Change) -> str | None:
    """Returns the text as which both values print if nothing distinguishes them; None if they differ as values."""
    before, after = _ADDRESS.sub("", change.before), _ADDRESS.sub("", change.after)
    # A text that was cut may hide the difference.
    if not _same_text(before, after) or before in _PLAIN or before.endswith("…"):
        return None
    return before


def values(change: Change) -> tuple[str, str]:
    """The value before and after; they are equal where values are not shown."""
    return change.before, change.before if _same_text(change.before, change.after) else change.after


def _same_text(before: str, after: str) -> bool:
    """Returns whether both print alike; then words in brackets may say why they differ: `<Config> (another object)`."""
    return before == after or (after.startswith(f"{before} (") and after.endswith(")"))


def fields_that_change(values: Collection[str]) -> list[str]:
    """Returns the fields that differ between values that print as `Type(field=value, ...)`, if others do not."""
    if not all(_RECORD.match(each) for each in values):
        return []
    fields = [dict(_FIELD.findall(each)) for each in values]
    changing = [name for name in fields[0] if len({each.get(name) for each in fields}) > 1]
    return changing if len(changing) < len(fields[0]) else []


def unbounded(values: Collection[str]) -> bool:
    """Returns whether values with these texts look as if always new ones come: neither a few nor buckets."""
    if len(values) < NUMBERS:
        return False
    try:
        numbers = [float(each) for each in values]
    except ValueError:
        shapes = [sizes.shape(each) for each in values]
        known = [each for each in shapes if each]
        if len(known) < len(values) or len({len(each) for each in known}) > 1:
            return len(values) >= OTHERS
        return not all(sizes.bucket_like(set(dimension)) for dimension in zip(*known, strict=True))
    if all(each.is_integer() for each in numbers):
        return not sizes.bucket_like({abs(int(each)) for each in numbers})
    return True
