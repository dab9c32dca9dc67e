"""The bounds on what jaxobs costs, held on the machine that runs the tests, and the benchmarks' own statistics."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.harness import Figure, interval, nanoseconds_per_call, quantile

ATTEMPTS = 5
"""A busy machine makes everything slower and nothing faster: a bound holds if it holds once."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", command.names())
def test_bounds_hold(name: str) -> None:
    """Every figure of the benchmark that has a bound is within it; with fewer rounds than `make bench`."""
    bounded: set[str] = set()
    over: dict[str, Figure] = {}
    for _ in range(ATTEMPTS):
        figures = command.measure(name, quick=True)
        bounded |= {each.name for each in figures if each.limit is not None}
        found = {each.name: each for each in figures if not each.holds}
        over = {key: each for key, each in found.items() if not over or key in over}
        if not over:
            break
    assert bounded
    assert not over, "\n".join(
        f"{each.name}: {each.value:.4g} {each.unit}, at most {each.limit}" for each in over.values()
    )


def test_every_cost_of_the_contract_has_a_bound() -> None:
    """One benchmark for each kind of cost that is promised to be small."""
    promised = {"per_call", "install_only", "threads", "per_compilation", "scrape", "tick", "import_time", "memory"}
    promised |= {"found_loops", "sampling", "step_scope", "training_step"}
    assert promised == set(command.names())


def test_a_figure_over_its_limit_is_told() -> None:
    """At the limit holds, above it does not; without one there is nothing to hold."""
    figure = Figure(name="a", value=2.0, unit="ms", limit=2.0)
    assert figure.holds
    assert not Figure(name="a", value=2.01, unit="ms", limit=2.0).holds
    assert Figure(name="a", value=1e9, unit="ms").holds


def test_disturbances_do_not_move_the_cost_of_a_call() -> None:
    """Two functions whose work differs threefold are told apart although every other piece is interrupted."""
    disturb = random.Random(1)

    def work(amount: int) -> None:
        sum(range(amount))
        if disturb.random() < 0.01:
            time.sleep(0.0005)

    costs = nanoseconds_per_call(
        {"less": lambda x: work(1000), "more": lambda x: work(3000)}, None, rounds=30, calls=400, pieces=8
    )
    assert 2 < costs["more"] / costs["less"] < 4


def test_work_that_comes_once_a_turn_is_counted() -> None:
    """What a function does in one call of a turn is part of what its calls cost on average."""
    calls = 0

    def lumpy(x: None) -> None:
        nonlocal calls
        calls += 1
        if calls % 80 == 0:
            time.sleep(0.004)

    costs = nanoseconds_per_call({"lumpy": lumpy}, None, rounds=10, calls=80, pieces=8)
    assert 45_000 < costs["lumpy"] < 200_000


def test_the_interval_covers_the_median() -> None:
    """Around the true median of noise, narrower with more of it, and away from zero for a shift."""
    noise = random.Random(2)
    few, many = ([noise.gauss(0, 1) for _ in range(count)] for count in (30, 1000))
    low, high = interval(many)
    assert low < 0.1 and high > -0.1
    assert high - low < interval(few)[1] - interval(few)[0]
    shifted_low, _ = interval([value + 1 for value in many])
    assert shifted_low > 0.5


def test_quantiles_are_values() -> None:
    """From the least to the largest, whatever the number of values."""
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]
    assert quantile([7.0], 0.2) == 7.0


def test_the_command_writes_what_it_measured(tmp_path: Path) -> None:
    """The same figures on the screen, as JSON and as a page, with the machine that they are of."""
    files = [tmp_path / "figures.json", tmp_path / "page.md"]
    options = ["threads", "--quick", "--check", "--json", str(files[0]), "--markdown", str(files[1])]
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", *options], capture_output=True, text=True, cwd=command.ROOT, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    written = json.loads(files[0].read_text())
    assert written["machine"]["jax"]
    (figure, _) = written["figures"]["threads"]
    assert figure["value"] == figure["limit"] == 0
    assert figure["name"] in result.stdout
    assert f"| {figure['name']} | 0 calls | ≤ 0 calls |" in files[1].read_text()


def test_a_bound_that_does_not_hold_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where `--check` asks for it."""
    monkeypatch.setattr(command, "measure", lambda name, quick: [Figure(name="a", value=2, unit="", limit=1)])
    for options, code in ((["tick"], 0), (["tick", "--check"], 1)):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *options])
        assert command.main() == code


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With those that there are."""
    monkeypatch.setattr(sys, "argv", ["benchmarks", "per_cal"])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == 2
    assert "unknown benchmark `per_cal`; there are found_loops, import_time" in capsys.readouterr().err


def test_a_benchmark_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With what it wrote before it ended."""
    (tmp_path / "jax.py").write_text("raise ImportError('this is no JAX')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"(?s)`threads` failed with code 1:.*this is no JAX"):
        command.measure("threads", quick=True)
