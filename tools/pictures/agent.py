"""Picture of the agent's page of an incident: a loss that turns NaN, behind a real Prometheus on a faster clock."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tools.panel_data import Prometheus, get
from tools.pictures import pages

FACTOR = 60
"""How much faster the rules' clock is: what waits for five minutes waits for five seconds."""
ALERT = "JaxLossNonFinite"
SCREEN = pages.Screen(1200, 1500)
T = TypeVar("T")


def draw(out: Path) -> None:
    """Posts the alert as soon as it fires, and takes the picture of the page of its incident."""
    agent = ("-m", "jaxobs", "agent", "--listen", "127.0.0.1:0", "--reports", "reports", "--prometheus")
    with (
        pages._folder(),
        pages._running(("-m", "jaxobs", "run", "--port", "0", "nan.py")) as program,
        Prometheus({"train": [program.split("/")[2]]}, FACTOR) as prometheus,
        pages._running((*agent, prometheus.url)) as url,
        pages.browser() as chromium,
    ):
        alert = _until(lambda: _firing(prometheus.url))
        body = {"version": "4", "alerts": [{**alert, "status": "firing", "startsAt": alert["activeAt"]}]}
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{url}webhook", json.dumps(body).encode(), headers)).close()
        report = _until(lambda: next((pages.FOLDER / "reports").glob("*.json"), None))
        pages.take(chromium, f"{url}incidents/{report.stem}", out, SCREEN)


def _firing(prometheus: str) -> dict[str, Any] | None:
    found = get(prometheus, "alerts")["alerts"]
    return next((one for one in found if one["labels"]["alertname"] == ALERT and one["state"] == "firing"), None)


def _until(look: Callable[[], T | None]) -> T:
    for _ in range(180):
        if (found := look()) is not None:
            return found
        time.sleep(1)
    raise TimeoutError(f"{ALERT} or its report did not come")
