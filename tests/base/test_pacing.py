"""Long work that rests again and again."""

import threading

import pytest

from jaxobs.base import pacing


@pytest.fixture
def rested(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The rests; any work is long."""
    found: list[float] = []
    monkeypatch.setattr(pacing.time, "sleep", found.append)
    monkeypatch.setattr(pacing, "WORK_SECONDS", -1.0)
    return found


def test_it_rests_where_somebody_asked_for_it(rested: list[float]) -> None:
    pacing.offer()
    assert rested == []
    with pacing.politely():
        pacing.offer()
        thread = threading.Thread(target=pacing.offer)
        thread.start()
        thread.join()
    assert rested == [pacing.REST_SECONDS]
    pacing.offer()
    assert rested == [pacing.REST_SECONDS]


def test_short_work_goes_on(rested: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "WORK_SECONDS", 3600.0)
    with pacing.politely():
        pacing.offer()
    assert rested == []


def test_it_ends_when_it_is_not_wanted_any_more(rested: list[float]) -> None:
    stopping = threading.Event()
    with pacing.politely(stopping):
        pacing.offer()
        stopping.set()
        with pytest.raises(pacing.AbandonedError):
            pacing.offer()
    pacing.offer()
