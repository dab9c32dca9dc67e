"""Whether the program runs in IPython or Jupyter, asked without importing either."""

import sys
from typing import Any


def shell() -> Any:
    """Returns the interactive shell of this process; None where there is none."""
    return getattr(sys.modules.get("IPython"), "get_ipython", _nobody)()


def running_cell() -> int | None:
    """Returns a number that each run of a cell has for itself; None outside of notebooks."""
    found = getattr(shell(), "execution_count", None)
    return found if isinstance(found, int) else None


def _nobody() -> None:
    """No shell."""
