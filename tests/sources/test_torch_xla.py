"""PyTorch/XLA: reports that it really printed and, where it is installed, programs on it."""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from helpers.paths import ROOT

import jaxobs.torch_xla
from jaxobs.base.errors import JaxobsError
from jaxobs.findings.verdict import judged
from jaxobs.sources.torch_xla import NOT_LOADED, TorchXla
from jaxobs.state.store import Store
from tools import environments

HERE = Path(__file__).parent
REPORTS = tomllib.loads((HERE / "torch_xla_reports.toml").read_text())
PROGRAMS = tomllib.loads((HERE / "torch_xla_programs.toml").read_text())
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "B": 1.0, "KB": 1024.0, "": 1.0}
BEGINNING = """\
import os
import torch, torch_xla
import torch_xla.debug.metrics as metrics
device = torch_xla.device()
weights = torch.randn(8, 4).to(device)
"""


class TensorBase:
    """As much of a tensor as is looked at."""

    is_xla, dtype, ndim, nbytes = True, "torch.float32", 2, 32

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def item(self) -> float:
        turn()
        return 0.5

    def to(self, raises: bool = True) -> None:
        raise ValueError("no device")


class Tensor(TensorBase):
    """The class that is hooked."""


turn: Any = None


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """An extension module whose counters are those of recorded reports, one after the other."""
    moments = iter(REPORTS[request.param])
    now: dict[str, tuple[int, float]] = {}
    native = ModuleType("_XLAC")

    def next_report() -> None:
        text = next(moments)["report"]
        now.update({name: (int(value), 0.0) for name, value in re.findall(r"Counter: (\S+)\n  Value: (\d+)", text)})
        for name, count, total in re.findall(r"Metric: (\S+)\n  TotalSamples: (\d+)\n  Accumulator: (\S+)", text):
            parts = re.findall(r"([\d.]+?)(ms|us|s|KB|B|$)", total)
            now[name] = int(count), sum(float(number) * UNITS[unit] for number, unit in parts)

    monkeypatch.setitem(globals(), "turn", next_report)
    native.__dict__.update(
        _xla_counter_names=lambda: list(now),
        _xla_counter_value=lambda name: now[name][0] if name in now else None,
        _xla_metric_data=lambda name: (*now[name], ()) if name in now else None,
        _xla_step_marker=next_report,
    )
    fake: Any = SimpleNamespace(Tensor=Tensor, nn=SimpleNamespace(Parameter=Tensor), _C=None, __version__="2.9.0")
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch_xla", SimpleNamespace(_XLAC=native, __version__="2.9.0"))  # type: ignore[arg-type]
    yield native


def observed(native: Any, sizes: tuple[int, ...]) -> tuple[Store, list[Any], Any]:
    store = Store()
    source, events, before = TorchXla(store), list[Any](), dict(vars(Tensor))
    store.subscribe(events.append)
    source.start()
    for size in sizes:
        x = Tensor(size, 8)
        native._xla_step_marker()
        x.item()
    source.sample()
    with pytest.raises(ValueError, match="no device") as raised:
        Tensor(1).to()
    assert [each.name for each in raised.traceback] == ["observed", "to"]
    snapshot = judged(store.snapshot())
    source.stop()
    assert dict(vars(Tensor)) == before
    return store, [each for each in events if each.kind == "compilation"], snapshot


@pytest.mark.parametrize("printed", ["shapes"], indirect=True)
def test_each_graph_belongs_to_the_line_that_launched_it(printed: ModuleType) -> None:
    _, compiled, snapshot = observed(printed, (8, 8, 16, 24, 24))
    assert [each.cause for each in compiled] == ["first_call", "first_call", *["shape"] * 4]
    assert [each.changes[0].after for each in compiled[2:]] == ["float32[16,8]"] * 2 + ["float32[24,8]"] * 2
    mark, read = (observed.__code__.co_firstlineno + offset for offset in (7, 8))
    assert {each.call_site for each in compiled} == {f"{__file__}:{mark}", f"{__file__}:{read}"}
    assert sum(each.phases["compile"] for each in compiled) == pytest.approx(0.754943818)
    [function] = [each for each in snapshot.functions if each.compiled]
    assert (function.name, function.calls) == (f"{__name__}.observed", 10)
    assert function.sites == {f"{__file__}:{mark}": 3, f"{__file__}:{read}": 3}
    assert [(each.site, each.waits) for each in snapshot.transfers if each.waits] == [(f"{__file__}:{read}", 5)]
    assert [(each.operator, each.count) for each in snapshot.fallbacks] == [("aten::median", 4)]
    assert [each.steps for each in snapshot.loops] == [4]
    assert snapshot.wall.seconds["compile"] > 0 < snapshot.wall.seconds["step"] + 1e-9


@pytest.mark.parametrize(("marks", "steps"), [(True, 7), (False, 20)])
@pytest.mark.parametrize("printed", ["shapes"], indirect=True)
def test_reads_end_steps_only_where_nothing_marks_them(
    printed: Any, marks: bool, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three reads at one line after each of eight marks; or these 24 reads alone, the first three of them no steps."""
    monkeypatch.setitem(globals(), "turn", lambda: None)
    monkeypatch.setattr(printed, "_xla_step_marker", lambda: None)
    source = TorchXla(store := Store())
    source.start()
    for _ in range(8):
        if marks:
            printed._xla_step_marker()
        for _ in range(3):
            Tensor(8, 8).item()
    source.sample()
    assert [each.steps for each in store.snapshot().loops] == [steps]
    source.stop()


@pytest.mark.parametrize(("printed", "reason"), [("missed", None), ("unread", NOT_LOADED)], indirect=["printed"])
def test_what_the_cache_did_is_told(printed: ModuleType, reason: str | None) -> None:
    store, compiled, _ = observed(printed, (8,))
    assert [each.cache for each in compiled] == ["miss", "miss"]
    assert [each.reason for each in store.events(kind="cache_lookup")[0]] == [reason, reason]  # type: ignore[attr-defined]


@pytest.mark.parametrize("printed", ["loaded"], indirect=True)
def test_what_the_cache_had_is_loaded(printed: ModuleType) -> None:
    store, compiled, snapshot = observed(printed, (8,))
    assert [(each.cache, [*each.phases]) for each in compiled] == [("hit", ["cache_load"])] * 2
    assert sum(each.phases["cache_load"] for each in compiled) == pytest.approx(0.00510119)
    assert [each.result for each in store.events(kind="cache_lookup")[0]] == ["hit", "hit"]  # type: ignore[attr-defined]
    assert [each.calls for each in snapshot.functions] == [2]


@pytest.mark.parametrize("printed", ["shapes"], indirect=True)
def test_what_was_compiled_before_is_only_noted(printed: Any) -> None:
    printed._xla_step_marker()
    _, compiled, snapshot = observed(printed, (8,))
    assert [each.cause for each in compiled] == ["first_call"]
    assert "torch_xla compiled 1 graph" in snapshot.observer.notes[0]


def test_without_torch_xla_the_error_says_what_to_install() -> None:
    with pytest.raises(JaxobsError, match="pip install torch torch_xla"):
        jaxobs.torch_xla.install()


@pytest.mark.slow
@pytest.mark.torch_xla
@pytest.mark.skipif(not environments.installed(environments.TORCH_XLA), reason="run `make test-torch-xla`")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_torch_xla(name: str, tmp_path: Path) -> None:
    expect, program = PROGRAMS[name]["expect"], tmp_path / "program.py"
    program.write_text(BEGINNING + textwrap.dedent(PROGRAMS[name]["program"]))
    here = next(n for n, line in enumerate(program.read_text().splitlines(), 1) if "# here" in line)
    command = [environments.environment(environments.TORCH_XLA), "-m", "jaxobs", "run", "--port", "0"]
    files = ["--event-log", "events.jsonl", "--metrics-file", "metrics.prom", program]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PJRT_DEVICE": "CPU", "JAXOBS_RAISE_INTERNAL_ERRORS": "1"}
    done = subprocess.run([*command, *files], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith(expect.get("error", "")) and "jaxobs" not in done.stderr, done.stderr
    assert done.returncode == ("error" in expect), done.stderr
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    findings = [each for each in events if each["event"] == "finding"]
    metrics, site = (tmp_path / "metrics.prom").read_text(), f"{program}:{here}"
    compiled = [each for each in events if each["event"] == "compilation" and each["call_site"] == site]
    if "causes" in expect:
        assert [each["cause"] for each in compiled] == expect["causes"]
        assert all(each["phases"]["compile"] > 0 for each in compiled)
        assert f'site="{site}",direction="device_to_host"}} {expect["reads"]}\n' in metrics
    assert sum(each["event"] == "compilation" for each in events) <= expect.get("most", 9)
    if "fallbacks" in expect:
        operator, count = expect["fallbacks"]
        assert f'jax_cpu_fallbacks_total{{operator="{operator}"}} {count}\n' in metrics
        assert {each["where"] for each in findings} == {site}
    if "steps" in expect:
        assert f'jax_steps_total{{loop="__main__.<module>"}} {expect["steps"]}\n' in metrics
    found = {each["finding"] for each in findings}
    assert found - set(expect.get("by_seconds", ())) == set(expect.get("findings", ()))
    assert {each["where"] for each in findings if each["finding"] == "host_sync"} <= {site}
