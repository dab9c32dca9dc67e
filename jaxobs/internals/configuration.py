"""JAX's configuration: every option with a plain value, as text."""

from __future__ import annotations

import sys

MOST_OPTIONS = 400
MOST_TEXT = 200


def options() -> dict[str, str]:
    """Value by name, as set for the whole process; nothing where this JAX does not list them."""
    config = getattr(sys.modules.get("jax._src.config"), "config", None)
    values = getattr(config, "values", None)
    if not isinstance(values, dict):
        return {}
    plain = {
        name: value for name, value in values.items() if value is None or isinstance(value, bool | int | float | str)
    }
    return {name: str(plain[name])[:MOST_TEXT] for name in sorted(plain)[:MOST_OPTIONS]}
