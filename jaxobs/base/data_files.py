"""Tables of data that lie as TOML next to the modules that read them."""

from __future__ import annotations

import pkgutil
import tomllib
from typing import Any


def table(module: str) -> dict[str, Any]:
    """Returns what the TOML file of a module's own name holds: `peaks.toml` next to `peaks.py`."""
    return tomllib.loads((pkgutil.get_data(module, f"{module.rpartition('.')[2]}.toml") or b"").decode())
