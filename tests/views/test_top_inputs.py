"""`jaxobs top` shows where the time went, who waits for input and what is not finite, within whatever room there is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.page_input_facts import AHEAD, FAST, SLOW, TRAIN, WALL, WATCHED
from helpers.top_snapshots import finding, overview, snapshot

from jaxobs.facts.wall import RunState
from jaxobs.views.terminal import Surface, lay_out
from jaxobs.views.terminal.lines import Line, as_text, cells

STATE = replace(snapshot(), loops=(TRAIN,), wall=WALL, inputs=(FAST, AHEAD, SLOW), watched=WATCHED)


def drawn(width: int, height: int | None = None, *, colour: bool = True) -> list[Line]:
    return lay_out(overview(snapshot=STATE), Surface(width, height, colour=colour))


def section(lines: list[Line], title: str) -> list[str]:
    """The lines below a title, up to the next."""
    told = as_text(lines).splitlines()
    at = next(n for n, line in enumerate(told) if line.startswith(f" {title} ─"))
    end = next((n for n in range(at + 1, len(told)) if "───" in told[n]), len(told))
    return [line for line in told[at:end] if line]


def test_where_the_time_went_is_a_bar_with_a_legend() -> None:
    """Cells of the bar represent the seconds, by colour or by letter; steps come first; goodput is in the title."""
    title, bar, legend = section(drawn(140, colour=False), "Where the time went")
    assert title.endswith("goodput 60 %")
    assert {letter: bar.count(letter) for letter in "swic"} == {"s": 43, "w": 18, "i": 7, "c": 4}
    assert legend == " s step 60.0 s 60% · w input wait 25.0 s 25% · i init 10.0 s 10% · c compile 5.00 s 5%"
    _, bar, legend = section(drawn(140), "Where the time went")
    assert bar == f" {'█' * 72}" and legend.startswith(" step 60.0 s 60% · input wait")


def test_a_run_shows_what_it_lost() -> None:
    """Steps that were made again are no steps, and the time in which no process running is a part."""
    run = RunState(
        id="r", attempt=2, since=0.0, wall_seconds=200.0, seconds=WALL.seconds | {"step": 140.0}, down_seconds=20.0,
        redone_seconds=40.0, redone_steps=4, unsaved_seconds=0.0, unsaved_steps=0, goodput=0.5,
    )  # fmt: skip
    lines = lay_out(overview(snapshot=replace(STATE, wall=replace(WALL, run=run))), Surface(160))
    title, _, legend = section(lines, "Where the time went")
    assert title.endswith("goodput 50 %")
    assert legend.startswith(" step 1m40s 50% · repeated steps 40.0 s 20% · input wait 25.0 s 12% · no process running")


def test_inputs_and_watched_values_have_a_line_each() -> None:
    """The input that was waited for most comes first; values that are not finite come before others."""
    assert section(drawn(160), "Input")[1:] == [
        " train  input-bound · waits 6.4 ms of 8 ms a batch (80%) · 300 batches · 1.92 s waited",
        " <img src=x onerror=document.title='pwne…  input keeps up · waits <0.01 ms of 4 ms a batch (0%)"
        " · 1,060 batches · 1 ms waited",
        " queue  on another thread · 40 batches · 0 s waited",
    ]
    assert section(drawn(160), "Watched values")[1:] == [
        " loss  not finite · first at call 202 · 98 of 1,290 values",
        " <img src=x onerror=document.title='pwne…  finite again · 2 of 30 values",
        " finite  ratio",
        " not checked yet  grads",
    ]
    told = as_text(lay_out(overview(), Surface(160)))
    assert not any(title in told for title in ("Where the time went", " Input ", "Watched values"))


def test_in_a_low_terminal_they_share_a_title_and_leave_the_functions_their_room() -> None:
    """At 80 by 24: the steps, the time, the worst input, the worst value, and still functions."""
    told = as_text(drawn(80, 24))
    _, *rows = section(drawn(80, 24), "Steps")
    assert [row.split()[0] for row in rows] == ["train", "step", "train", "loss"]
    assert "goodput 60 %" in told and "train_step" in told and "Watched values" not in told
    assert [row.split()[0] for row in section(drawn(80, 16), "Steps")[1:]] == ["train", "loss"]
    assert "train_step" in as_text(drawn(80, 16))


@pytest.mark.parametrize("width", [20, 45, 80, 200])
@pytest.mark.parametrize("height", [3, 8, 16, 24, 31, 32, 60])
def test_it_fits_every_terminal(width: int, height: int) -> None:
    """With letters as with colours."""
    for colour in (True, False):
        lines = drawn(width, height, colour=colour)
        assert len(lines) == height
        assert max(sum(cells(text) for text, _ in line) for line in lines) <= width


def test_a_finding_about_an_input_has_its_name_and_counts_batches() -> None:
    """There is no function to name, and nothing compiled."""
    told = finding(0, function="<unknown>", subject="train", count=300, seconds=45.0, data={"input": "train"})
    shown = as_text(lay_out(overview(snapshot=replace(STATE, findings=(told,))), Surface(140)))
    assert "300 batches" in shown and "<unknown>" not in shown and "compiled  " not in shown
