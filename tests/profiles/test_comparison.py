"""Comparisons of profiles made by hand."""

from collections.abc import Iterable

import pytest

from jaxobs.facts.profiles import FunctionTime, IdleTime, OperationTime, Profile
from jaxobs.profiles.comparison import Change, compare
from jaxobs.views.profile.comparison import headline

MS = 1e-3


def operation(name: str, milliseconds: float, scope: str | None = None, source: str | None = None) -> OperationTime:
    return OperationTime(
        operation=name, function="f", category="matmul", scope=scope, source=source,
        device_seconds=milliseconds * MS, share=0.0, count=1, flops=None, bytes=None, bound="unknown",
    )  # fmt: skip


def profile(*rows: OperationTime, steps: int | None = 1, idle: float = 0.0, calls: int | None = None) -> Profile:
    device = sum(each.device_seconds for each in rows)
    return Profile(
        window_seconds=device + idle * MS,
        steps=steps,
        functions=(FunctionTime(function="f", device_seconds=device, calls=calls),),
        operations=rows,
        idle=(IdleTime(reason="input", seconds=idle * MS),) if idle else (),
    )


def changes(rows: Iterable[Change]) -> dict[str, float]:
    return {each.name: round(each.seconds / MS, 6) for each in rows}


def test_times_are_those_of_a_step() -> None:
    """A longer trace isn't a slower one."""
    before = profile(operation("dot.1", 10, "a", "x.py:1"), steps=2)
    after = profile(operation("dot.1", 40, "a", "x.py:1"), steps=4)
    found = compare(before, after)
    assert found.per == "step"
    assert (found.window.before, found.window.after) == (pytest.approx(5 * MS), pytest.approx(10 * MS))
    assert changes(found.functions) == {"f": 5.0}
    assert changes(found.scopes) == {"a": 5.0}
    assert changes(found.sources) == {"x.py:1": 5.0}
    assert changes(found.operations) == {"f: dot.1  a": 5.0}


def test_without_steps_calls_count_and_without_both_the_trace() -> None:
    """The calls are those of the function that both have."""
    before, after = profile(operation("dot.1", 10), steps=None, calls=2), profile(operation("dot.1", 40), calls=4)
    assert compare(before, after).per == "call"
    assert changes(compare(before, after).operations) == {"f: dot.1": 5.0}
    alone = profile(operation("dot.1", 10), steps=None)
    assert compare(alone, alone).per == "trace"


def test_operations_that_are_numbered_otherwise_are_matched_by_their_scope() -> None:
    """XLA numbers them anew in each compilation; the same name may be another operation."""
    before = profile(operation("fusion.1", 3, "a"), operation("fusion.2", 5, "b"), operation("copy.9", 1))
    after = profile(operation("fusion.1", 6, "b"), operation("fusion.2", 3, "a"), operation("copy.8", 1))
    found = changes(compare(before, after).operations)
    assert found == {
        "f: fusion.2 -> fusion.1  b": 1.0, "f: copy.8": 1.0, "f: fusion.1 -> fusion.2  a": 0.0, "f: copy.9": -1.0,
    }  # fmt: skip


def test_the_headline_names_what_most_of_it_is() -> None:
    fast = profile(operation("dot.1", 10, "a"), idle=2)
    assert headline(compare(fast, fast)) == "B takes as long as A for one step: 12 ms and 12 ms."
    assert headline(compare(fast, profile(operation("dot.1", 20, "a"), idle=3))) == (
        "B takes 11 ms more than A for one step: 23 ms instead of 12 ms. `f: dot.1  a` takes 10 ms more."
    )
    assert headline(compare(fast, profile(operation("dot.1", 10, "a"), idle=9))).endswith(
        "Idle time because of `input` takes 7 ms more."
    )
    assert headline(compare(profile(operation("dot.1", 20, "a"), idle=2), fast)) == (
        "B takes 10 ms less than A for one step: 12 ms instead of 22 ms. `f: dot.1  a` takes 10 ms less."
    )


def test_a_scope_that_one_version_of_jax_adds_is_no_difference() -> None:
    older = profile(operation("dot.1", 10, "jit(step)/jit(main)/dot_general"), operation("copy.1", 1, "jit(main)/copy"))
    newer = profile(operation("dot.2", 12, "jit(step)/dot_general"), operation("copy.1", 1, "jit(main)/copy"))
    found = compare(older, newer)
    assert changes(found.scopes) == {"jit(step)/dot_general": 2.0, "jit(main)/copy": 0.0}
    assert changes(found.operations) == {
        "f: dot.1 -> dot.2  jit(step)/dot_general": 2.0,
        "f: copy.1  jit(main)/copy": 0.0,
    }
