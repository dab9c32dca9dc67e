"""Shows the runbook of an alert."""

import re
from collections.abc import Callable
from typing import Any

from jaxobs.base.errors import did_you_mean
from jaxobs.base.links import runbook_url
from jaxobs.ops.assistants.answers import Answer, Name, Sources, no_data
from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.generate.runbooks import human
from jaxobs.ops.monitoring.rule_types import Alert
from jaxobs.ops.monitoring.site import Site

_GAP = re.compile(r"<([a-z][a-z_0-9]*)>")


def make(sources: Sources) -> Callable[..., Answer]:
    def get_runbook(alert: Name) -> Answer:
        """The runbook of an alert of jaxobs, such as JaxInputBound: meaning, impact, steps with queries and commands,
        what it is not, mitigation, how to verify. It comes with jaxobs; its commands are for a person."""
        site = Site()
        known = {each.name: each for each in alerting.offered(site)}
        if alert not in known:
            return no_data(
                f"jaxobs has no runbook for that alert. {did_you_mean(alert, known)}Known: {', '.join(known)}."
            )
        return Answer(status="ok", summary=known[alert].summary, data=_page(known[alert], site))

    return get_runbook


def _page(alert: Alert, site: Site) -> dict[str, Any]:
    values, book = alerting.thresholds(alert, site), alert.runbook

    def told(text: str) -> str:
        return _GAP.sub(
            lambda gap: human(values[gap[1]], alert.thresholds[gap[1]].unit) if gap[1] in values else gap[0], text
        )

    return {
        "alert": alert.name, "severity": alert.severity, "url": runbook_url(alert.name),
        "fires_after": alert.for_, "expression": site.filled(alert.expr, values),
        "meaning": told(book.meaning), "impact": told(book.impact),
        "steps": [
            {"do": told(each.do), "command": each.command, "query": site.filled(each.query, values),
             "answers": [{"if": told(seen), "then": told(means)} for seen, means in each.answers]}
            for each in book.diagnosis
        ],
        "mitigation": [told(each) for each in book.mitigation],
        "looks_alike": [{"what": a, "how_to_tell": told(b), "go_to": c} for a, b, c in book.look_alikes],
        "evidence": list(book.evidence), "verify": told(book.verify), "on_gpu": book.gpu, "on_tpu": book.tpu,
    }  # fmt: skip
