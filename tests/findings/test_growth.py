"""Growth that persists, and what only looks like it: series made by hand."""

import itertools
import math
import random
import tracemalloc
from collections.abc import Iterable, Mapping, Sequence

import pytest

from jaxobs.findings import growth
from jaxobs.findings.growth import Floor, Point, Run

TRAIN = "train"


def steps(number: int) -> dict[str, int]:
    """Ten calls of the training step in each sample."""
    return {TRAIN: 10 * number}


def follow(
    values: Iterable[float], calls: Sequence[Mapping[str, int]] | None = None, *, at_end: bool = False
) -> list[tuple[int, Run | str]]:
    """Reports of a series, by sample: a run when it is found, and why it was over; or the run at its end."""
    floor, told, found = Floor(), None, []
    now = None
    for sample, value in enumerate(values):
        now = Point(sample, 5.0 * sample, value, steps(sample) if calls is None else calls[sample])
        floor.take(now)
        if at_end:
            continue
        over = None if told is None else floor.is_over(told, now)
        if over is not None:
            found.append((sample, over))
            told = None
        elif told is None and (run := floor.run(now)) is not None:
            told = run
            found.append((sample, run))
    if at_end and now is not None and (run := floor.run(now, least=growth.LEAST_RISES_AT_END)) is not None:
        found.append((now.sample, run))
    return found


def only(found: list[tuple[int, Run | str]]) -> Run:
    """The one run that was told, and that it is not over."""
    assert len(found) == 1, found
    run = found[0][1]
    assert isinstance(run, Run)
    return run


def test_steady_growth_is_told_with_its_pace() -> None:
    """The pace is one array a step, and one a call."""
    run = only(follow([100 + 10 * i for i in range(100)]))
    assert (run.since.sample, run.function, run.per_call) == (0, TRAIN, 1.0)
    assert run.rises == growth.LEAST_RISES


def test_it_is_told_as_soon_as_the_rises_are_there() -> None:
    """A rise needs one sample more: its value may be let go of yet."""
    (sample, _), *_ = follow([10 * i for i in range(100)])
    assert sample == growth.LEAST_RISES + 1


def test_growth_under_noise() -> None:
    chance = random.Random(1)
    run = only(follow([100 + 10 * i + chance.randint(0, 40) for i in range(300)]))
    assert run.per_call == pytest.approx(1.0, rel=0.2)


def test_it_began_late() -> None:
    """Since when it grows is told, not since when the program runs."""
    run = only(follow([100.0] * 200 + [100 + i for i in range(100)]))
    assert abs(run.since.sample - 200) <= 1


def test_growth_behind_a_large_start() -> None:
    """Parameters are made first: their rise is no part of it."""
    run = only(follow([500 * min(i, 6) + i for i in range(100)]))
    assert run.since.sample >= 6
    assert run.per_call == pytest.approx(0.1)


def test_growth_behind_a_time_without_calls() -> None:
    """The program loads, then it trains."""
    calls = [{TRAIN: 10 * max(0, i - 20)} for i in range(80)]
    run = only(follow([3.0 * i for i in range(20)] + [60 + 10.0 * i for i in range(60)], calls))
    assert run.since.sample >= 19
    assert run.per_call == pytest.approx(1.0)


def test_rare_growth() -> None:
    """A rise in one of seven samples counts, for long enough."""
    assert only(follow([100 + i // 7 for i in range(700)])).per_call == pytest.approx(1 / 70, rel=0.05)


def test_which_function_it_goes_with() -> None:
    """Growth goes with the function of which each call adds the same."""
    chance = random.Random(2)
    train = list(itertools.accumulate(chance.randint(5, 15) for _ in range(60)))
    other = list(itertools.accumulate(chance.randint(5, 15) for _ in range(60)))
    calls = [{"other": b, TRAIN: a} for a, b in zip(train, other, strict=True)]
    run = only(follow([2.0 * a for a in train], calls))
    assert (run.function, run.per_call) == (TRAIN, 2.0)


@pytest.mark.parametrize(
    ("what", "values"),
    [
        ("warm-up", [10 + 10 * min(i, 8) for i in range(300)]),
        ("warm-up with noise", [10 + 10 * min(i, 8) + (i * 7 % 4) for i in range(300)]),
        ("a cache that fills up", [10 + min(i, 20) for i in range(300)]),
        ("a cache that fills by chance", [10 + int(200 * (1 - math.exp(-i / 60))) for i in range(500)]),
        ("an epoch's history", [10 + 10 * (i % 20) for i in range(500)]),
        ("garbage until it is collected", [10 + (i * 3) % 17 for i in range(500)]),
        ("steps of a schedule", [10 + 100 * (i // 150) for i in range(600)]),
        ("nothing", [10] * 300),
        ("less and less", [1000 - i for i in range(300)]),
    ],
)
def test_what_is_no_leak(what: str, values: list[float]) -> None:
    """Healthy programs, none of which is blamed at any time."""
    assert follow(values) == []


def test_random_noise_is_no_leak() -> None:
    """Nor anything else without a direction."""
    chance = random.Random(3)
    assert follow([chance.randint(0, 100) for _ in range(3000)]) == []


def evaluations(kept: bool) -> tuple[list[float], list[dict[str, int]]]:
    """Rounds of training and evaluation; the evaluation's outputs are dropped, or kept."""
    values, calls = [], []
    train = evaluated = 0
    for _ in range(16):
        for _ in range(40):
            train += 10
            values.append(10.0 + (evaluated if kept else 0))
            calls.append({TRAIN: train, "evaluate": evaluated})
        start = evaluated
        for _ in range(26):
            evaluated += 10
            values.append(10.0 + evaluated - (0 if kept else start))
            calls.append({TRAIN: train, "evaluate": evaluated})
    return values, calls


def test_an_evaluation_is_no_leak() -> None:
    """The outputs of an evaluation pile up for longer than a leak needs, while training rests."""
    assert follow(*evaluations(kept=False)) == []


def test_an_evaluation_that_leaks() -> None:
    found = follow(*evaluations(kept=True))
    run = only(found)
    assert run.function == "evaluate"
    assert run.per_call == pytest.approx(1.0)


def test_what_was_let_go_of_once_is_told_when_it_grows_beyond() -> None:
    """A history per epoch that one day is not cleared."""
    epochs = [10.0 + i % 24 for i in range(120)]
    assert follow(epochs + [10.0 + i for i in range(28)]) == []
    assert follow([10.0] * 120 + [10.0 + i for i in range(28)]) != []
    run = only(follow(epochs + [10.0 + i for i in range(60)]))
    assert run.since.sample >= 100


def test_it_is_over_when_it_falls_or_stops() -> None:
    """A finding that was wrong is taken back, with the reason."""
    rising = [10.0 + i for i in range(60)]
    assert [each[1] for each in follow([*rising, *[12.0] * 5])][1:] == ["fell"]
    assert [each[1] for each in follow([*rising, *[69.0] * 60])][1:] == ["stopped"]
    assert len(follow([*rising, *[60.0, 61.0], *[61.0 + i for i in range(40)]])) == 1


def test_where_no_calls_are_counted_it_takes_longer() -> None:
    """Neither steps nor phases are known."""
    (sample, run), *_ = follow([float(i) for i in range(200)], [{}] * 200)
    assert isinstance(run, Run)
    assert (sample, run.function, run.per_call) == (49, None, None)


def test_nobody_calls_the_functions_that_are_counted() -> None:
    """Then the program is at something else."""
    assert follow([float(i) for i in range(200)], [{TRAIN: 7}] * 200) == []


def test_few_calls_are_no_leak() -> None:
    """Warm-up in many samples: its steps are slow."""
    assert follow([float(i) for i in range(60)], [{TRAIN: i} for i in range(60)]) == []


def test_at_the_end_fewer_samples_are_enough() -> None:
    assert follow([10.0 * i for i in range(15)]) == []
    assert only(follow([10.0 * i for i in range(15)], at_end=True)).per_call == 1.0
    assert follow([10.0 + 10 * min(i, 5) for i in range(40)], at_end=True) == []
    assert follow([10.0 * i for i in range(4)], at_end=True) == []


def test_it_is_bounded_and_stays_right() -> None:
    """A leak that goes on for days."""
    floor = Floor()
    tracemalloc.start()
    try:
        for sample in range(100_000):
            now = Point(sample, 5.0 * sample, float(sample), steps(sample))
            floor.take(now)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(floor.points) <= growth.MOST_POINTS
    assert size < 200_000
    run = floor.run(now)
    assert run is not None
    assert run.per_call == pytest.approx(0.1)
    assert run.since.sample < 1000
