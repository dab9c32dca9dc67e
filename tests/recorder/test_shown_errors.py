"""Exceptions that a prompt or a notebook shows and survives."""

import pathlib
import sys

import pytest

import jaxobs
from jaxobs.facts.errors import Error
from jaxobs.sources.flight_recorder import Exceptions
from jaxobs.state import store


def _raised(text: str) -> TypeError:
    try:
        raise TypeError(text)
    except TypeError as error:
        return error


def test_an_exception_that_stays_on_the_screen_is_recorded_once(
    fresh: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter keeps the last one for as long as nothing else is raised; the same one again is another."""
    jaxobs.install(flight_recorder="off", sample_interval=3600)
    now = [100.0]
    monkeypatch.setattr("jaxobs.recorder.user_errors.time.monotonic", lambda: now[0])
    exceptions = Exceptions(store.current())
    kept = [_raised("shapes (4,) and (3,)"), _raised("shapes (4,) and (3,)")]
    for error in kept:
        monkeypatch.setattr(sys, "last_value", error, raising=False)
        for _ in range(4):
            exceptions.sample()
            now[0] += 60.0
    recorded = store.current().events(kind="error")[0]
    assert [each.error for each in recorded if isinstance(each, Error)] == ["TypeError", "TypeError"]
