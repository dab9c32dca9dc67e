"""Remarks about operations that are worth a look, in the text and on the page."""

import dataclasses

import pytest

from jaxobs.facts.profiles import OperationTime, Profile
from jaxobs.profiles.reading import Reading
from jaxobs.views.profile import text
from jaxobs.views.profile.page import document
from jaxobs.views.profile.parts import remarks
from jaxobs.views.terminal.lines import Surface

PLAIN = OperationTime(
    operation="dot.1", function="step", category="matmul", scope="jit(step)/dot_general", source="train.py:3",
    device_seconds=1.0, share=0.5, count=2, flops=1e9, bytes=1e6, bound="compute", dtype="f32", roofline_ratio=0.7,
    replicated=False, widened=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        ({"widened": True}, "in float64, and most of what the program is given is narrower"),
        ({"replicated": True}, "every device computes all of it"),
        ({"roofline_ratio": 0.05}, "at 5% of what the device could do"),
    ],
)
def test_what_is_worth_a_look(change: dict[str, object], remark: str) -> None:
    """Below the operation's line; nothing of an operation that takes hardly any time, or that is as it should be."""
    row = dataclasses.replace(PLAIN, **change)  # type: ignore[arg-type]
    assert remarks(row) == [remark]
    assert remarks(PLAIN) == remarks(dataclasses.replace(row, share=0.001)) == []
    profile = Profile(window_seconds=1.0, steps=None, operations=(row,))
    lines = ["".join(part for part, _ in line) for line in text.lay_out(profile, "trace", (), Surface(140))]
    assert sum(remark[:30] in line for line in lines) == 1
    assert remark in "".join(piece.decode() for piece in document.page(Reading(profile), "trace"))


def test_what_is_usual_is_no_remark() -> None:
    """Optimizers update whole weights on each device, a small operation is far from the peaks; nobody may know."""
    assert remarks(dataclasses.replace(PLAIN, category="elementwise", replicated=True)) == []
    assert remarks(dataclasses.replace(PLAIN, share=0.05, roofline_ratio=0.01)) == []
    assert remarks(dataclasses.replace(PLAIN, replicated=None, widened=None, roofline_ratio=None)) == []
