"""Whether an array is there yet, asked without waiting for it."""

from __future__ import annotations

from typing import Any


def deleted(array: Any) -> bool:
    """Returns whether an array's memory was donated to another program, or given back."""
    return bool(array.is_deleted())


def arrived(leaf: Any) -> bool:
    """Returns whether nothing is left to wait for: the value is there, is not on a device, or was deleted."""
    if not hasattr(leaf, "is_ready"):
        return True
    try:
        return bool(deleted(leaf) or leaf.is_ready())
    except RuntimeError:  # deleted in between
        return True
