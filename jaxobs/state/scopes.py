"""Scopes of the account of time, within one another: the innermost is charged."""

from __future__ import annotations

from collections import deque
from typing import Protocol

APART = frozenset(("checkpoint", "trace", "compile", "cache_load", "eval"))
"""Categories that do not belong to a loop's steps."""


class Owner(Protocol):
    """The account that scopes belong to."""

    def leave(self, scope: Scope | None = None, category: str | None = None, *, alone: bool = False) -> bool:
        """Ends a scope."""


class Scope:
    """Something that began and is charged until it ends, less what began within it.

    Without an `__init__`, which would double the price of making one: the account sets everything but `held`.
    """

    __slots__ = ("apart", "began", "category", "ended", "held", "outer", "own", "wall")

    wall: Owner
    category: str
    apart: bool
    """Whether the category is in `APART`."""
    began: float
    outer: Scope | None
    own: float
    """Seconds charged to it so far."""
    ended: float | None
    """The moment it ended: by another thread than the charged one, or before what began within it."""
    held: bool
    """Set where a block of the program is certain to leave it: a task or a generator may be in the middle of it. Every
    other scope ends at the latest with the one that it began in."""


def is_open(top: Scope, scope: Scope) -> bool:
    """Returns whether the scope is `top` or contains it."""
    each: Scope | None = top
    while each is not None and each is not scope:
        each = each.outer
    return each is scope


def goes_on_within(top: Scope, scope: Scope, now: float) -> bool:
    """Whether a block that began within it is still open. What else began within it ends now, if so."""
    held, others = False, []
    each = top
    while each is not scope and each.outer is not None:
        if each.ended is None:
            if getattr(each, "held", False):
                held = True
            else:
                others.append(each)
        each = each.outer
    if held:
        for each in others:
            each.ended = now
    return held


def closed_since(closed: deque[tuple[float, float]], start: float) -> float:
    """Seconds of what began and ended since then, which has been charged already; it is forgotten."""
    total, earliest = 0.0, float("inf")
    while closed and closed[-1][0] >= start:
        began, ended = closed.pop()
        if began < earliest:  # else it lay within the one after it
            total += min(ended, earliest) - began
            earliest = began
    return total
