"""Values that turn non-finite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from jaxobs.facts.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite(Event):
    """A watched value, or what a found loop returns, turned NaN or infinite; reported once, until it is finite."""

    kind: ClassVar[str] = "nonfinite"

    name: str
    """As given to `jaxobs.watch`; of a loop, the function and where in its result, as `train_step()[1]`; of an error by
    `jax_debug_nans`, the operation or function that JAX names."""
    what: str
    """`nan`, `inf` or `nan and inf`."""
    source: str = "watch"
    """`watch`; `loop`: a scalar that the function of a found loop returns; or `debug_nans`: JAX raised an error because
    `jax_debug_nans` or `jax_debug_infs` is on."""
    path: str = ""
    """Which leaf of a pytree, as `['layer']['w']`: the first that is not finite."""
    step: int | None = None
    """Which call of `watch` with this name it was, from 0."""
    program_step: int | None = None
    """Number of the program's step at that call, from 1, over all its loops; None if it has no steps."""
    last_finite_step: int | None = None
    """The latest one before it that was finite when checked."""
    exact: bool = True
    """Whether every value in between was checked, so that `step` is the first."""
    nans: int = 0
    """Elements of the leaf that are NaN."""
    infs: int = 0
    """Elements of the leaf that are infinite."""
    size: int = 1
    """Elements of the leaf."""
    dtype: str | None = None
    leaves: int = 1
    """Leaves that are not finite."""
    call_site: str | None = None
    """`file:line` in the user's code: where it is watched, or where the error was raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedState:
    """A name given to `jaxobs.watch`; or a scalar that a found loop returns, if it turned NaN."""

    name: str
    calls: int
    checked: int
    """Values that were checked, whole pytrees counted as one."""
    nonfinite: int
    """Checked values with a NaN or an infinity."""
    finite: bool | None
    """Whether the latest checked value is finite; None until one was checked."""
    step: int | None = None
    """The first call, from 0, with a non-finite value since it was last finite, or ever."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Values not checked, by reason: `too_large`, `deleted` (donated meanwhile), `tracing`, `too_many`."""
