"""Operators that a lazy framework runs on the CPU, because it has no lowering of them to XLA."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackState:
    """An operator of PyTorch that torch_xla ran on the CPU: its arguments are read back, and its results sent again."""

    operator: str
    """Name of the operator: `aten::median`."""
    count: int
    """How often it ran."""
    since: float
    """Time at which it was first seen."""
    where: str | None = None
    """`file:line` of the user's that calls it; None where the line was not found."""
