"""`jaxobs top` shows served requests: a line for each route, within whatever room there is."""

from __future__ import annotations

from dataclasses import replace

from helpers.page_request_facts import ENGINES, GENERATE, PREDICT, UNSEEN
from helpers.top_snapshots import overview, snapshot

from jaxobs.views.terminal import Surface, lay_out
from jaxobs.views.terminal.lines import as_text


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


def test_generated_text_has_columns_of_its_own() -> None:
    """First token, each one after it, tokens a second; what waits for the engines, and the fullest cache."""
    state = replace(snapshot(), routes=(GENERATE, PREDICT), requests_in_flight=3, engines=ENGINES)
    lines = as_text(lay_out(overview(snapshot=state), Surface(140))).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(" Requests "))
    assert lines[at].endswith("3 in flight · 3 waiting · KV cache 86 %")
    titles = "route per s warm p50 warm p99 first p50 per token tokens/s cold cold p50 errors waited requests"
    assert " ".join(lines[at + 1].split()) == titles
    assert " ".join(lines[at + 3].split()) == "/generate 3.2 1.40 s 4.10 s 180 ms 12.5 ms 1,425 0 - 0 0 92"
    assert lines[at + 2].split().count("-") == 3  # a classifier has no tokens
