"""All kinds of findings, in whatever folder they are, and which of them follows from which.

A kind's module may have `FOLLOWS`: names of kinds that bring it about when they are about the same function; or
`follows(data)`, where that depends on the figures of a case. Of a case that follows from another, the other is what to
mend.
"""

from __future__ import annotations

import functools

from jaxobs.facts.findings import Finding
from jaxobs.findings import conditions, fleet, input_findings, leaks, patterns
from jaxobs.findings.kinds import Kind

FOLDERS = (patterns, leaks, fleet, input_findings, conditions)


@functools.cache
def every() -> tuple[Kind, ...]:
    """The modules of all kinds."""
    return tuple(module for folder in FOLDERS for module in folder.known())


def follows(finding: Finding) -> tuple[str, ...]:
    """The kinds that bring a finding about."""
    kind = _by_name().get(finding.finding)
    by_case = getattr(kind, "follows", None)
    return tuple(getattr(kind, "FOLLOWS", ()) if by_case is None else by_case(finding.data))


@functools.cache
def _by_name() -> dict[str, Kind]:
    return {each.NAME: each for each in every()}
