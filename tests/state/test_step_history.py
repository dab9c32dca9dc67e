"""The step times of a whole run, in bounded memory."""

import itertools

import pytest

from jaxobs.state.step_history import FIRST_SPAN_SECONDS, MOST_SPANS, StepHistory


def test_spans_hold_mean_and_longest_and_pauses_have_no_span() -> None:
    history = StepHistory()
    for ended, seconds in ((100.0, 0.1), (100.2, 0.3), (103.1, 0.2)):
        history.add(ended, seconds)
    assert history.frozen(1000.0) == ((1100.25, 0.2, 0.3), (1103.25, 0.2, 0.2))


def test_a_long_run_keeps_every_step_in_as_many_spans() -> None:
    """The longest step of a day stays, and each mean is that of all the steps of its span."""
    history, made, slow = StepHistory(), 200_000, 77_777
    for step in range(made):
        history.add(step * 0.4, 9.0 if step == slow else 0.4)
    spans = history.frozen(0.0)
    assert MOST_SPANS // 2 < len(spans) <= MOST_SPANS
    apart = {round(after[0] - before[0], 2) for before, after in itertools.pairwise(spans)}
    assert len(apart) == 1 and next(iter(apart)) % FIRST_SPAN_SECONDS == 0
    assert [mean for _, mean, longest in spans if longest < 9.0] == [0.4] * (len(spans) - 1)
    assert max(spans, key=lambda span: span[2])[0] == pytest.approx(slow * 0.4, abs=next(iter(apart)))


def test_steps_that_end_late_count_in_their_span() -> None:
    """Threads end steps in any order; steps that were counted together count as many."""
    history = StepHistory()
    for ended, seconds, steps in ((0.0, 0.1, 1), (2.1, 0.1, 1), (0.1, 0.2, 3)):
        history.add(ended, seconds, steps)
    assert history.frozen(0.0) == ((0.25, 0.175, 0.2), (2.25, 0.1, 0.1))
