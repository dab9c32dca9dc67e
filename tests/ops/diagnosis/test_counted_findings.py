"""Findings of which a metric tells the kind, and not how bad the process rates them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather


@pytest.mark.parametrize(
    ("finding", "compiling", "causes"),
    [
        ("costly_recompilations", 2.0, []),
        ("costly_recompilations", 400.0, ["recompilation"]),
        ("unbounded_shapes", 2.0, ["recompilation"]),
    ],
)
def test_a_few_recompilations_count_by_their_share(
    tmp_path: Path, finding: str, compiling: float, causes: list[str]
) -> None:
    """A smaller last batch is information, unless the process spends much of its time on it."""
    path = tmp_path / "metrics.prom"
    path.write_text(
        f'jax_findings{{finding="{finding}"}} 1\njax_time_seconds_total{{category="compile"}} {compiling}\n'
        'jax_time_seconds_total{category="step"} 100\n'
    )
    found = diagnose(gather(Inputs(metrics_files=(str(path),))))
    assert [each.id for each in found.causes] == causes


@pytest.mark.parametrize(("shapes", "causes"), [(1, []), (9, ["recompilation"])])
def test_the_first_compilation_is_no_recompilation(tmp_path: Path, shapes: int, causes: list[str]) -> None:
    """A short run may compile for a third of its time, and only for a moment because of its last batch."""
    path = tmp_path / "metrics.prom"
    path.write_text(
        'jax_findings{finding="costly_recompilations"} 1\njax_time_seconds_total{category="compile"} 100\n'
        'jax_time_seconds_total{category="step"} 200\n'
        'jax_compilations_total{function="train.step",cause="first_call",cache="disabled"} 1\n'
        f'jax_compilations_total{{function="train.step",cause="shape",cache="disabled"}} {shapes}\n'
        'jax_function_compile_seconds_sum{function="train.step",phase="compile"} 80\n'
    )
    found = diagnose(gather(Inputs(metrics_files=(str(path),))))
    assert [each.id for each in found.causes] == causes


@pytest.mark.parametrize(("idle", "causes"), [(200, []), (5, ["recompilation"])])
def test_operations_of_a_notebook_that_compile_again(tmp_path: Path, idle: int, causes: list[str]) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text(
        f'jax_findings{{finding="eager_recompiles"}} 3\njax_time_seconds_total{{category="idle"}} {idle}\n'
        'jax_time_seconds_total{category="compile"} 37\n'
        'jax_compilations_total{function="<eager>",cause="first_call",cache="disabled"} 110\n'
        'jax_compilations_total{function="<eager>",cause="new_function",cache="disabled"} 140\n'
        'jax_function_compile_seconds_sum{function="<eager>",phase="compile"} 37\n'
    )
    found = diagnose(gather(Inputs(metrics_files=(str(path),))))
    assert [each.id for each in found.causes] == causes
