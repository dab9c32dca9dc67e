"""Every cause is told rightly, in every way of compiling, under every supported version of JAX; none is made up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from requirements import missing

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from tools.causes import cell, measure  # noqa: E402
from tools.environments import MATRIX, NEWEST, InstallError, NoInterpreterError, Row  # noqa: E402

OWN = next(row for row in MATRIX if row.jax == "0.10.2")
LEAST_CASES = 200
LEAST_ON_ONE_DEVICE = 140


def report(row: Row, devices: int) -> dict[str, Any]:
    """The corpus under that row; a Python that cannot be had is a skip in CI too."""
    try:
        return measure(row, devices)
    except NoInterpreterError as error:
        pytest.skip(str(error))
    except InstallError as error:
        missing(str(error))


def wrong(found: dict[str, Any]) -> list[str]:
    """What was not told rightly, each with what was told."""
    return [
        f"{verdict['id']}: {'; '.join(verdict['problems'])}\n    {verdict['reasons']}"
        for verdict in found["verdicts"]
        if verdict["problems"]
    ]


def table() -> dict[str, dict[str, str]]:
    """The committed table's cells, by version and then by program."""
    lines = (ROOT / "docs" / "causes.md").read_text().partition("## Every program")[2].splitlines()
    rows = [[each.strip() for each in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    versions, programs = rows[0][3:], rows[2:]
    return {
        version: {f"{row[1]}: {row[2]}": row[column] for row in programs if row[column]}
        for column, version in enumerate(versions, 3)
    }


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.id)
def test_every_cause_is_right(row: Row) -> None:
    """On eight devices; and the table in the docs says what was found."""
    found = report(row, 8)
    assert not wrong(found), f"JAX {found['jax']}:\n" + "\n".join(wrong(found))
    assert found["errors"] == {}
    assert found["libraries"] == ["flax", "equinox"]
    assert len(found["verdicts"]) >= LEAST_CASES
    committed = table()
    if row.jax == NEWEST and found["jax"] not in committed:
        return
    assert {verdict["id"]: cell(verdict) for verdict in found["verdicts"]} == committed[found["jax"]]


@pytest.mark.timeout(600)
def test_every_cause_is_right_on_one_device() -> None:
    """What needs no mesh."""
    found = report(OWN, 1)
    assert not wrong(found), "\n".join(wrong(found))
    assert len(found["verdicts"]) >= LEAST_ON_ONE_DEVICE
