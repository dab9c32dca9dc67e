"""The versions of JAX that a test is repeated under."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.requirements import missing
from tools.environments import MATRIX, OWN, InstallError, NoInterpreterError, Row, environment, is_ours


def rows(*chosen: Row) -> list[Any]:
    """Returns the rows (all without an argument) as parameters; an environment of its own is marked `versions`.

    The JAX that is installed comes first, whichever that is: it needs none.
    """
    others = [row for row in chosen or MATRIX if not is_ours(row)]
    own = [] if chosen else [OWN]
    return [
        *(pytest.param(row, id="installed") for row in own),
        *(pytest.param(row, id=row.id, marks=pytest.mark.versions) for row in others),
    ]


def interpreter(row: Row) -> Path:
    """The row's interpreter; a Python that cannot be had is a skip in CI too."""
    try:
        return environment(row)
    except NoInterpreterError as error:
        pytest.skip(str(error))
    except InstallError as error:
        missing(str(error))
