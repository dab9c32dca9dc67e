"""Texts of a game day: the plan of a fault, and at the end the truth next to the diagnosis."""

import re
from collections.abc import Iterator, Mapping

from jaxobs.base.links import runbook_url
from jaxobs.ops.gameday.fault_types import Fault
from jaxobs.ops.gameday.running import Ended
from jaxobs.ops.monitoring import rules
from jaxobs.ops.monitoring.rule_types import Alert
from jaxobs.views.terminal.text import safe

_UNITS = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}


def alert_of(fault: Fault) -> Alert:
    """Returns the alert that a fault makes fire."""
    return next(each for each in rules.alerts() if each.name == fault.alert)


def minutes_until(fault: Fault) -> float:
    """Returns the minutes from the fault until the alert fires, about, if the process is old enough."""
    parts = re.findall(r"(\d+)([smhd])", alert_of(fault).for_)
    return fault.lead + sum(int(count) * _UNITS[unit] for count, unit in parts)


def plan(name: str, fault: Fault) -> Iterator[str]:
    """Yields what is wrong, which alert fires and when, where its runbook is, and how to undo it."""
    yield f"{name}: {fault.title}"
    yield f"  alert:     {fault.alert} ({alert_of(fault).severity}), {_when(fault)}"
    if fault.only:
        yield f"             only if {fault.only}"
    yield f"  runbook:   {runbook_url(fault.alert)}"
    yield f"  diagnosis: {' or '.join(fault.causes)}"
    yield f"  undo:      {fault.undo}"


def _when(fault: Fault) -> str:
    after = f"about {minutes_until(fault):g} min after the fault"
    if not fault.from_start:
        return after
    return f"{after}, but not before {fault.from_start + minutes_until(fault) - fault.lead:g} min after the start"


def listing(known: Mapping[str, Fault]) -> Iterator[str]:
    """Yields the plans of all faults."""
    for name, fault in known.items():
        yield from plan(name, fault)
        yield ""


def ending(ended: Ended, fault: Fault) -> Iterator[str]:
    """Yields the truth, what the diagnosis says, and how to do it again."""
    said = ended.diagnosis
    yield "The truth"
    yield from (f"  {line}" for line in plan(ended.fault, fault))
    yield ""
    yield "What jaxobs diagnose says"
    yield f"  verdict:   {said.verdict}"
    for cause in said.causes:
        yield f"  cause:     {cause.title} [{cause.id}]"
        if cause.evidence:
            yield f"             {cause.evidence[0].source}:{cause.evidence[0].place} | {safe(cause.evidence[0].text)}"
    for text in said.missing:
        yield f"  missing:   {safe(text)}"
    yield f"  that is    {'right' if ended.is_named else 'wrong: please report it, with the folder'}"
    yield ""
    yield f"Everything it left: {ended.folder}"
    yield f"The same again: jaxobs gameday {ended.fault} --seed {ended.seed}"
