"""Every cause is told rightly, in every way of compiling, under every supported version of JAX; none is made up."""

import re
from typing import Any

import pytest
from helpers.matrix import interpreter, rows
from helpers.paths import ROOT

from benchmarks.corpus.page import cell, measure
from tools.environments import MATRIX, NEWEST, OWN, Row, is_ours

LEAST_CASES = 200
LEAST_ON_ONE_DEVICE = 140
WHOLE = (MATRIX[0], OWN, MATRIX[-1])
"""Rows that run every program: the oldest JAX, the installed one, and the newest JAX on the newest Python."""
EVERY = 6
"""Step in the corpus of every other row, which begins at another program each: a sixth of all programs."""


def report(row: Row, devices: int, **chosen: int) -> dict[str, Any]:
    """Returns the corpus under that row, with no wrong cause; a Python that cannot be had is a skip in CI too."""
    interpreter(row)
    found = measure(row, devices, **chosen)
    wrong = [
        f"{verdict['id']}: {'; '.join(verdict['problems'])}\n    {verdict['reasons']}"
        for verdict in found["verdicts"]
        if verdict["problems"]
    ]
    assert not wrong, f"JAX {found['jax']}:\n" + "\n".join(wrong)
    return found


def table() -> dict[str, dict[str, str]]:
    """Returns the committed table's cells, by version and then by program."""
    lines = (ROOT / "docs" / "causes.md").read_text().partition("## Every program")[2].splitlines()
    rows = [[each.strip() for each in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    versions, programs = rows[0][3:], rows[2:]
    return {
        version: {f"{row[1]}: {row[2]}": row[column] for row in programs if row[column]}
        for column, version in enumerate(versions, 3)
    }


def test_the_readme_quotes_the_table() -> None:
    """README's figures, programs and right answers of both, are those of docs/causes.md."""
    page = (ROOT / "docs" / "causes.md").read_text()
    programs = {name.partition(": ")[2] for cells in table().values() for name in cells}
    (total,) = re.findall(r"^\| \*\*all\*\* \|(.*)$", page, re.MULTILINE)
    ours, theirs = (
        [int(number) for number in found] for found in zip(*re.findall(r"(\d+)/\d+, (\d+)/", total), strict=True)
    )
    said = " ".join((ROOT / "README.md").read_text().partition("## How often it is right")[2].split())
    assert f"{len(programs)} distinct programs" in said
    assert f"{min(ours)} to {max(ours)} of them run" in said
    assert f"right on {min(theirs)} to {max(theirs)}" in said


@pytest.mark.versions
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("row", rows())
def test_every_cause_is_right(row: Row) -> None:
    """On eight devices; and the table in the docs says what was found."""
    whole = row in WHOLE
    found = report(row, 8) if whole else report(row, 8, every=EVERY, first=MATRIX.index(row) % EVERY)
    assert found["errors"] == {}
    assert found["libraries"] == ["flax", "equinox"]
    assert len(found["verdicts"]) >= LEAST_CASES // (1 if whole else EVERY)
    committed = table()
    if found["jax"] not in committed:
        assert row.jax == NEWEST or is_ours(row), f"docs/causes.md has no column for JAX {found['jax']}"
        return
    said = {verdict["id"]: cell(verdict) for verdict in found["verdicts"]}
    known = committed[found["jax"]]
    assert said == (known if whole else {name: known.get(name) for name in said})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_cause_is_right_on_one_device() -> None:
    assert len(report(OWN, 1)["verdicts"]) >= LEAST_ON_ONE_DEVICE
