"""`jaxobs top` shows served requests: a line for each route, within whatever room there is."""

from __future__ import annotations

from dataclasses import replace

from page_request_facts import PREDICT, UNSEEN
from test_top import as_text, overview, snapshot

from jaxobs.terminal import Surface, lay_out


def drawn(width: int, height: int | None = None) -> list[str]:
    state = replace(snapshot(), routes=(UNSEEN, PREDICT), requests_in_flight=3)
    return as_text(lay_out(overview(snapshot=state), Surface(width, height))).splitlines()


def test_a_line_for_each_route() -> None:
    """The busiest first, warm apart from cold; what nobody saw is a dash."""
    lines = drawn(120)
    at = next(n for n, line in enumerate(lines) if line.startswith(" Requests "))
    assert lines[at].endswith("3 in flight")
    titles = "route per s warm p50 warm p99 cold cold p50 errors waited requests"
    assert " ".join(lines[at + 1].split()) == titles
    assert " ".join(lines[at + 2].split()) == "/predict 42 4.1 ms 21 ms 3 840 ms 7 2 1,002"
    assert lines[at + 3].split()[-6:] == ["-", "-", "-", "0", "0", "4"]
    assert "Requests" not in as_text(lay_out(overview(), Surface(120)))


def test_it_fits_whatever_room_there_is() -> None:
    """Columns give way before the view is cut; a low terminal has one route."""
    for width in (30, 45, 60, 80, 200):
        for height in (8, 16, 24, 60):
            lines = drawn(width, height)
            assert len(lines) <= height and max(map(len, lines)) <= width
    assert any("/predict" in line for line in drawn(60, 24))
