"""Totals that grow, as they grew within the latest minutes."""

from jaxobs.state.lately import Lately


def test_a_young_window_is_all_the_time_there_is() -> None:
    totals = Lately(100.0)
    assert totals.added(130.0, {"step": 20.0, "idle": 10.0}) == (30.0, {"step": 20.0, "idle": 10.0})
    assert totals.added(130.5, {"step": 20.5}) == (30.5, {"step": 20.5})


def test_the_latest_minutes_are_apart_from_those_before() -> None:
    """Every other second is a step for an hour, then none; the window is a mark longer than asked for at most."""
    totals = Lately(0.0)
    for now in range(5, 3605, 5):
        length, added = totals.added(float(now), {"step": now / 2})
    assert 600.0 <= length <= 610.0 and added["step"] == length / 2
    for now in range(3605, 4005, 5):
        length, added = totals.added(float(now), {"step": 1800.0}, span=300.0)
    assert 300.0 <= length <= 310.0 and added["step"] == 0.0


def test_a_correction_is_nothing_added() -> None:
    totals = Lately(0.0)
    totals.added(20.0, {"step": 20.0})
    assert totals.added(700.0, {"step": 15.0, "compile": 5.0})[1] == {"step": 0.0, "compile": 5.0}
