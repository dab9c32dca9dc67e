"""Sums of samples of the devices' time."""

import dataclasses

import pytest
from helpers.made_by_hand import profile_sample

from jaxobs.facts.compilations import OTHER
from jaxobs.facts.profile_samples import SampledFunction
from jaxobs.state.parts import BASELINE, MOST_FUNCTIONS, MOST_LATEST, MOST_LOOPS, ProfileSamples
from jaxobs.state.store import Store


def test_counters_add_up_and_what_is_now_is_the_latest() -> None:
    """By function and category; a device that is gone is gone."""
    samples = ProfileSamples()
    assert samples.frozen() is None
    samples.take(profile_sample())
    samples.take(profile_sample(busy={"gpu:0": 0.25}))
    state = samples.frozen()
    assert state is not None
    assert (state.samples, state.window_seconds) == (2, pytest.approx(0.2))
    assert state.device_seconds == {"train.step": {"matmul": pytest.approx(0.16), "collective": pytest.approx(0.04)}}
    assert state.exposed_seconds == {"train.step": pytest.approx(0.02)}
    assert state.busy == {"gpu:0": 0.25}


def test_it_is_bounded() -> None:
    """Functions share a row above the bound, and nothing gets lost; only the latest samples are kept whole."""
    samples = ProfileSamples()
    for number in range(MOST_FUNCTIONS + 5):
        samples.take(profile_sample(functions=(SampledFunction(function=f"f{number}", seconds={"matmul": 1.0}),)))
    state = samples.frozen()
    assert state is not None
    assert len(state.device_seconds) == MOST_FUNCTIONS + 1
    assert state.device_seconds[OTHER] == {"matmul": 5.0}
    assert state.exposed_seconds == {}, "nothing was exchanged: absent, not zero"
    assert len(state.latest) == MOST_LATEST


def test_an_event_log_read_back_says_the_same() -> None:
    """A report shows what the live page showed."""
    live, report = Store(), Store()
    event = live.record(profile_sample())
    report.replay(dataclasses.replace(event))
    assert report.snapshot(fresh=False).profile == live.snapshot(fresh=False).profile


def test_the_first_samples_of_a_loop_are_what_later_ones_are_compared_with() -> None:
    """Medians, per step and device, of the first few loops; idle ones and those of no loop do not count."""
    samples = ProfileSamples()
    samples.take(profile_sample(loop=None))
    samples.take(profile_sample(busy={"gpu:0": 0.0}))
    for number in range(BASELINE + 4):
        samples.take(profile_sample(step_seconds=0.020 + 0.001 * number))
    state = samples.frozen()
    assert state is not None
    (baseline,) = state.baselines
    assert (baseline.loop, baseline.samples) == ("train", BASELINE)
    assert baseline.step_seconds == pytest.approx(0.0235) and baseline.most_step_seconds == pytest.approx(0.027)
    assert baseline.parts["train.step"]["matmul"] == pytest.approx(0.4 * 0.0235)
    assert baseline.parts["<idle>"] == {"input": pytest.approx(0.5 * 0.0235)}
    for number in range(MOST_LOOPS + 2):
        for _ in range(BASELINE):
            samples.take(profile_sample(loop=f"other{number}"))
    state = samples.frozen()
    assert state is not None and len(state.baselines) == MOST_LOOPS
