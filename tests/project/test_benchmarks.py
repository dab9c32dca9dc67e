"""The benchmarks' own statistics, the command, and the comparison with the baseline, on a clock of the tests."""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import baseline, harness
from benchmarks.harness import (
    LONGER,
    QUICK,
    THOROUGH,
    USUAL,
    Effort,
    Figure,
    by_turns,
    interval,
    nanoseconds_per_call,
    quantile,
)


class Clock:
    """In place of `time` in the harness: it goes on when the test says so."""

    def __init__(self) -> None:
        self.now = 0

    def thread_time_ns(self) -> int:
        return self.now

    def perf_counter(self) -> float:
        return self.now / 1e9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(harness, "time", made)
    return made


def test_every_cost_of_the_contract_has_a_bound() -> None:
    promised = {"per_call", "install_only", "threads", "per_compilation", "scrape", "import_time", "memory"}
    promised |= {"found_loops", "profile_samples", "records", "sampling", "step_scope", "training_step"}
    assert promised == set(command.names())


@pytest.mark.parametrize(
    ("value", "low", "high", "limit", "verdict"),
    [
        (2.0, None, None, 2.0, "holds"),
        (2.01, None, None, 2.0, "over"),
        (1e9, None, None, None, ""),
        (1.0, -3.0, 2.0, 2.0, "holds"),
        (9.0, 2.1, 30.0, 2.0, "over"),
        (1.0, 0.0, 2.1, 2.0, "unsure"),
        (3.0, 1.9, 4.0, 2.0, "unsure"),
        (1.9, 1.8, 2.1, 2.0, "holds"),  # so narrow that the median decides
        (2.05, 1.9, 2.2, 2.0, "over"),
    ],
)
def test_the_verdict_on_a_bound(value: float, low: float, high: float, limit: float, verdict: str) -> None:
    assert Figure(name="a", value=value, unit="ms", limit=limit, low=low, high=high).verdict == verdict


@pytest.mark.parametrize(
    ("effort", "center", "spread", "pairs"),
    [
        (USUAL, 1, 2, 8), (USUAL, 9, 2, 8), (USUAL, 5, 20, 100), (LONGER, 5, 20, 300), (USUAL, 5, 2, 70),
        (THOROUGH, 1, 2, 500),
    ],
)  # fmt: skip
def test_pairs_end_when_the_bound_is_settled(
    clock: Clock, effort: Effort, center: float, spread: float, pairs: int
) -> None:
    """Few if the bound of 5 is far; all of the time if it is inside the interval, and for exact figures."""
    noise, orders = random.Random(1), []

    def difference(swapped: bool) -> float:
        orders.append(swapped)
        clock.now += 100_000_000
        return center + noise.uniform(-spread, spread)

    assert len(by_turns(difference, effort, seconds=10.0, limit=5.0)) == pairs
    assert orders == [False, True] * (pairs // 2)


@pytest.mark.slow
def test_the_bound_on_memory_holds() -> None:
    """Bounds on time are left to `make bench`; bytes are the same on a busy machine."""
    bounded = [each for each in command.measure("memory", QUICK) if each.limit is not None]
    assert [each.unit for each in bounded] == ["MB"] and all(each.verdict == "holds" for each in bounded)


def test_disturbances_do_not_move_the_cost_of_a_call(clock: Clock) -> None:
    """Two functions whose work differs threefold are told apart although every other piece is interrupted."""
    disturb = random.Random(1)

    def work(amount: int) -> None:
        clock.now += amount + (500_000 if disturb.random() < 0.01 else 0)

    costs = nanoseconds_per_call(
        {"less": lambda x: work(1000), "more": lambda x: work(3000)}, None, rounds=30, calls=400, pieces=8
    )
    assert costs == {"less": 1000, "more": 3000}


def test_work_that_comes_once_a_turn_is_counted(clock: Clock) -> None:
    calls = 0

    def lumpy(x: None) -> None:
        nonlocal calls
        calls += 1
        if calls % 80 == 0:
            clock.now += 4_000_000

    costs = nanoseconds_per_call({"lumpy": lumpy}, None, rounds=10, calls=80, pieces=8)
    assert costs == {"lumpy": 50_000}


def test_the_interval_covers_the_median() -> None:
    noise = random.Random(2)
    few, many = ([noise.gauss(0, 1) for _ in range(count)] for count in (30, 1000))
    low, high = interval(many)
    assert low < 0.1 and high > -0.1
    assert high - low < interval(few)[1] - interval(few)[0]
    shifted_low, _ = interval([value + 1 for value in many])
    assert shifted_low > 0.5


def test_a_figure_of_batches_lies_between_them() -> None:
    batches = iter([3.0, 1.0, 2.0, 9.0, 4.0, 5.0])
    measured = harness.in_batches(31, lambda rounds: {"a": next(batches), "rounds": rounds})
    assert {each["rounds"] for each in measured} == {6}
    figure = harness.of_batches("a", (each["a"] for each in measured), unit="ns")
    assert (figure.value, figure.low, figure.high) == (3.5, 1.0, 9.0)


def test_quantiles_are_values() -> None:
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]
    assert quantile([7.0], 0.2) == 7.0


def test_the_command_writes_what_it_measured(tmp_path: Path) -> None:
    files = [tmp_path / "figures.json", tmp_path / "page.md"]
    options = ["threads", "--quick", "--check", "--json", str(files[0]), "--markdown", str(files[1])]
    options += ["--baseline", str(tmp_path / "none.json")]
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", *options], capture_output=True, text=True, cwd=command.ROOT
    )
    assert (result.returncode, result.stderr) == (0, "")
    written = json.loads(files[0].read_text())
    assert written["machine"]["jax"]
    (figure, _) = written["figures"]["threads"]
    assert figure["value"] == figure["limit"] == 0
    assert figure["name"] in result.stdout
    assert f"| {figure['name']} | 0 calls | ≤ 0 calls |" in files[1].read_text()


MACHINE = {"processor": "A, 2 cores", "python": "3.11.7", "jax": "0.10.2", "date": "2026-11-22"}


@dataclass
class Bench:
    """Runs the command with figures made by hand: those of each measurement, the last of them again and again."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    path: Path
    efforts: list[Effort] = field(default_factory=list)

    def __call__(
        self, *options: str, figures: list[list[Figure]], machine: dict[str, str] = MACHINE
    ) -> tuple[int, str]:
        self.efforts.clear()

        def measure(name: str, effort: Effort) -> list[Figure]:
            self.efforts.append(effort)
            return figures[min(len(self.efforts), len(figures)) - 1]

        self.monkeypatch.setattr(command, "measure", measure)
        self.monkeypatch.setattr(command, "machine", lambda: machine)
        self.monkeypatch.setattr(sys, "argv", ["benchmarks", "sampling", "--baseline", str(self.path), *options])
        return command.main(), self.capsys.readouterr().out


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Bench:
    return Bench(monkeypatch, capsys, tmp_path / "baseline.json")


def _figure(value: float, unit: str = "times", **other: Any) -> Figure:
    return Figure(name=f"in {unit}", value=value, unit=unit, **other)


def test_a_bound_that_does_not_hold_fails_the_check(bench: Bench) -> None:
    """Only where `--check` asks for it, and after longer measurements, of which the least counts."""
    over, well = [_figure(2, limit=1)], [_figure(1, limit=1)]
    code, told = bench(figures=[over])
    assert (code, bench.efforts) == (
        0,
        [USUAL],
    ) and "Over its bound: in times (sampling) is 2 times, at most 1 times." in told
    assert bench("--check", figures=[over])[0] == 1 and bench.efforts == [USUAL, LONGER, LONGER]
    code, told = bench("--check", figures=[over, well, over])
    assert (code, bench.efforts) == (0, [USUAL, LONGER]) and "All 1 bounds hold." in told
    wrong, right, over = ([_figure(1, "calls", limit=0)], [_figure(0, "calls", limit=0)], _figure(2, limit=1))
    assert bench("--check", figures=[[*right, over], [*wrong, over], [*right, *well]])[0] == 1, "a count stays wrong"


def test_what_is_not_settled_is_measured_for_longer_and_said(bench: Bench) -> None:
    """A bound that stays open neither passes nor fails; the narrower interval counts, or one within its bound."""
    unsure, well, over = ([_figure(1, limit=2, low=low, high=high)] for low, high in ((-1, 3), (0.5, 1.5), (2.5, 3)))
    code, told = bench("--check", figures=[unsure])
    assert (code, bench.efforts) == (command.UNSURE, [USUAL, LONGER, LONGER])
    assert "NOT SURE sampling" in told and "bounds hold" not in told
    assert (
        "Not sure: in times (sampling) is 1 times, between -1 and 3 times with 95 % confidence; at most 2 times."
        in told
    )
    assert bench("--check", figures=[unsure, well])[0] == 0 and bench.efforts == [USUAL, LONGER]
    assert bench("--check", figures=[unsure, over])[0] == 1
    assert bench("--check", figures=[over, [_figure(1, limit=2, low=-1, high=1.9)]])[0] == 0, "wider, and within"
    assert bench("--check", figures=[[*unsure, _figure(3, "ms", limit=2)]])[0] == 1
    assert bench("--thorough", figures=[unsure])[0] == 0 and bench.efforts == [THOROUGH]


def test_what_got_slower_fails_the_check_and_is_named(bench: Bench) -> None:
    usual = [_figure(2.0), _figure(100, "ms"), _figure(0.1, "%"), _figure(1, "ns", compared=False)]
    assert bench("--update-baseline", figures=[usual])[0] == 0
    within = [_figure(2.45), _figure(149, "ms"), _figure(0.29, "%"), _figure(1e9, "ns", compared=False)]
    code, told = bench("--check", figures=[within])
    assert (code, len(bench.efforts)) == (0, 1)
    assert "Nothing is slower than the baseline of 2026-11-22 (3 figures compared)." in told
    for worse, sentence in (
        (_figure(2.55), "in times (sampling) is 2.55 times, was 2 times."),
        (_figure(151, "ms"), "in ms (sampling) is 151 ms, was 100 ms."),
        (_figure(0.31, "%"), "in % (sampling) is 0.31 %, was 0.10 %."),
    ):
        code, told = bench("--check", figures=[[worse]])
        assert (code, len(bench.efforts)) == (1, 3)
        assert f"Slower than the baseline of 2026-11-22: {sentence}\n" in told
    assert bench(figures=[[_figure(9)]])[0] == 0
    assert bench("--check", figures=[[_figure(1.0), _figure(1, "ms")]])[0] == 0


def test_seconds_are_not_compared_with_those_of_another_processor(bench: Bench) -> None:
    bench("--update-baseline", figures=[[_figure(2.0), _figure(100, "ms")]])
    other = {**MACHINE, "processor": "B, 96 cores", "jax": "0.11"}
    code, told = bench("--check", figures=[[_figure(2.0), _figure(900, "ms")]], machine=other)
    assert code == 0
    assert "in ms: 900 ms | baseline 100 ms, another processor\n" in told
    assert "Nothing is slower than the baseline of 2026-11-22 (1 figures compared)." in told
    assert "The baseline's processor is A, 2 cores, this one B, 96 cores." in told
    assert "The baseline's jax is 0.10.2, this one 0.11." in told
    assert "Not compared: 1 figures in seconds, which are of another processor." in told
    assert bench("--check", figures=[[_figure(3.0), _figure(9, "ms")]], machine=other)[0] == 1


def test_figures_that_came_and_went_are_named(bench: Bench) -> None:
    assert "there is no baseline" in bench("--check", figures=[[_figure(1)]])[1]
    bench("--update-baseline", figures=[[_figure(1), _figure(1, "MB")]])
    code, told = bench("--check", figures=[[_figure(1), _figure(5, "ms")]])
    assert (
        code == 0
        and "Not in the baseline: in ms (sampling).\nIn the baseline, but not measured: in MB (sampling)." in told
    )
    bench.path.write_text("[]")
    with pytest.raises(SystemExit):
        bench(figures=[[_figure(1)]])
    assert "is no baseline. Write one with `python -m benchmarks --update-baseline`." in bench.capsys.readouterr().err


def test_a_baseline_is_of_one_machine() -> None:
    old = baseline.Baseline(MACHINE, {"a": {"in times": _figure(1)}, "b": {"in times": _figure(2)}})
    later = {**MACHINE, "date": "2027-01-01"}
    new = json.loads(baseline.updated(old, {"b": [_figure(3)]}, later))
    assert new["machine"] == later
    assert {name: [each["value"] for each in found] for name, found in new["figures"].items()} == {"a": [1], "b": [3]}
    with pytest.raises(ValueError, match="of another python: update it with all benchmarks"):
        baseline.updated(old, {"b": [_figure(3)]}, {**MACHINE, "python": "3.13.1"})
    assert json.loads(baseline.updated(old, {"a": [], "b": []}, {**MACHINE, "python": "3.13.1"}))


def test_the_committed_baseline_has_every_benchmark() -> None:
    committed = baseline.read()
    assert committed is not None
    assert committed.figures.keys() == set(command.names()) and all(committed.figures.values())
    assert committed.machine.keys() == command.machine().keys()


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "per_cal"])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == 2
    assert "unknown benchmark `per_cal`; there are found_loops, import_time" in capsys.readouterr().err


def test_a_benchmark_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("raise ImportError('this is no JAX')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"(?s)`threads` failed with code 1:.*this is no JAX"):
        command.measure("threads")
