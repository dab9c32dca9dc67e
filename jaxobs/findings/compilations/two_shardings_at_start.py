"""`two_shardings_at_start`: compiled twice at the start, for the arrays are placed otherwise from the second call."""

import functools
from collections.abc import Sequence

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support.at_start import AT_START as AT_START
from jaxobs.findings.compilations.support.at_start import AtStart

NAME = "two_shardings_at_start"

COSTLY = 1.0
"""Seconds from which it is reported wherever the function was called from. Cheaper ones are reported only if both calls
come from one place: a function of two callers may well have two placements."""

_PLACED = frozenset({"sharding", "placement", "layout"})


def _changed(event: Compilation, here: bool) -> Sequence[Change]:
    only = event.cause in _PLACED and all(each.what in _PLACED for each in event.changes)
    return event.changes if only and (here or sum(event.phases.values()) >= COSTLY) else ()


def _advice(leaves: Sequence[Change]) -> str:
    first = leaves[0]
    these = f"`{first.path}`{' and the others' if len(leaves) > 1 else ''}"
    if first.before == "uncommitted" and first.after.startswith("committed to "):
        return (
            f"In the first call, {these} had not been committed to a device. jax.device_put with a device commits "
            f"arrays, and so does restoring a checkpoint: commit {these} before the first call, too."
        )
    several = len({each.after for each in leaves}) > 1
    own = f" for `{first.path}` and its own for each of the others" if several else ""
    return (
        f"Before the first call, place {these} where the function leaves them: jax.device_put(x, sharding), with "
        f"{first.after}{own}; or fix the function's in_shardings and out_shardings."
    )


watch = functools.partial(AtStart, NAME, "array", _changed, _advice, ", for the same arrays placed differently")
