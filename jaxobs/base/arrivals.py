"""Whether an array is there yet, asked without waiting for it."""

from __future__ import annotations

from typing import Any


def deleted(array: Any) -> bool:
    """Whether its memory was donated to another program, or given back."""
    return bool(array.is_deleted())


def arrived(leaf: Any) -> bool:
    """Whether nothing is left to wait for: it is there, is no array of a device, or was deleted."""
    if not hasattr(leaf, "is_ready"):
        return True
    try:
        return bool(deleted(leaf) or leaf.is_ready())
    except RuntimeError:  # deleted in between
        return True
