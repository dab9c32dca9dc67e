"""Suggestions for misspelt names."""

from __future__ import annotations

import pytest

from jaxobs.base.errors import did_you_mean

OPTIONS = ["--event-log", "--event-log-max-bytes", "--peak-flops", "--port"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("--evnt-log", "--event-log"), ("--peak", "--peak-flops"), ("--po", "--port"), ("--event", "--event-log"),
        ("--EVENT-LOG", None), ("--", None), ("-", None), ("--colour", None),
    ],
)  # fmt: skip
def test_the_nearest_name_or_none(name: str, meant: str | None) -> None:
    """A name that was cut short counts as near, and the shortest of several wins."""
    assert did_you_mean(name, OPTIONS) == (f"Did you mean `{meant}`? " if meant else "")


def test_a_name_of_any_length_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long name gets no suggestion: it may come over HTTP, and the comparison takes its length squared."""
    compared: list[int] = []
    monkeypatch.setattr("difflib.get_close_matches", lambda name, *rest: compared.append(len(name)) or [])
    did_you_mean("x" * 10**6, OPTIONS)
    assert compared == [100]
