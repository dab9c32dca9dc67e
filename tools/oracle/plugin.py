"""Plugin of pytest for `tools.oracle`: puts jaxobs into the process as asked, and writes each outcome as it comes."""

from __future__ import annotations

import json
import os
from typing import Any

import jax

from tools.oracle import OUTCOMES, PLAIN, REPLACED, WAY

if os.environ[WAY] != PLAIN:
    import jaxobs

    jaxobs.install()
    if os.environ[WAY] == REPLACED:
        jax.jit = jaxobs.jit


def pytest_runtest_logreport(report: Any) -> None:
    """Writes a line for the call of a test, and for what fails or skips before or after it."""
    if report.when == "call" or report.outcome != "passed":
        text = report.outcome + (", expected to fail" if hasattr(report, "wasxfail") else "")
        said = str(report.longrepr)[-1500:] if report.outcome == "failed" else ""
        _write(report.nodeid, text if report.when == "call" else f"{report.when} {text}", said)


def pytest_collectreport(report: Any) -> None:
    """Writes what could not be collected."""
    if report.outcome == "failed":
        _write(report.nodeid, "not collected", str(report.longrepr)[-1500:])


def _write(test: str, outcome: str, said: str) -> None:
    with open(os.environ[OUTCOMES], "a", encoding="utf-8") as file:
        file.write(json.dumps([test, outcome, said]) + "\n")
