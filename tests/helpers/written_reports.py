"""Reports of the agent as they are written, for what reads or sends them."""

from __future__ import annotations

import json
import time
from typing import Any

from helpers.paths import ROOT
from jaxobs.facts.events import timestamp
from jaxobs.ops.agent.report import Report

NOW = 1_769_850_000.0
HERE = ROOT / "tests" / "ops" / "agent" / "summaries"


def made(days_ago: float, **changes: Any) -> Report:
    """A report that was opened so long ago."""
    opened = NOW - days_ago * 86_400
    body = json.loads((HERE / "report.json").read_text())
    body["causes"][0]["onset"] = timestamp(opened - 30)
    body["verification"]["at"] = timestamp(opened + 1900)
    return Report.model_validate({
        **body, "id": time.strftime("%Y%m%d-%H%M%S-train-abcdef", time.gmtime(opened)), "opened_at": timestamp(opened),
        "investigated_at": timestamp(opened), "resolved_at": timestamp(opened + 1800), **changes,
    })  # fmt: skip
