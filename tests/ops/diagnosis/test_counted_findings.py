"""Findings of which a metric tells the kind, and not how bad the process rates them."""

from pathlib import Path

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather

FEW = """\
jax_findings{finding="%s"} 1
jax_time_seconds_total{category="compile"} %d
jax_time_seconds_total{category="step"} %d
"""
SHORT = (
    FEW % ("costly_recompilations", 100, 200)
    + """\
jax_compilations_total{function="train.step",cause="first_call",cache="disabled"} 1
jax_compilations_total{function="train.step",cause="shape",cache="disabled"} %d
jax_function_compile_seconds_sum{function="train.step",phase="compile"} 80
"""
)
NOTEBOOK = """\
jax_findings{finding="eager_recompiles"} 3
jax_time_seconds_total{category="compile"} 37
jax_time_seconds_total{category="idle"} %d
jax_compilations_total{function="<eager>",cause="first_call",cache="disabled"} 110
jax_compilations_total{function="<eager>",cause="new_function",cache="disabled"} 140
jax_function_compile_seconds_sum{function="<eager>",phase="compile"} 37
"""
ROWS = {
    "a smaller last batch": (FEW % ("costly_recompilations", 2, 100), []),
    "a last batch that takes most of the time": (FEW % ("costly_recompilations", 400, 100), ["recompilation"]),
    "shapes without a bound": (FEW % ("unbounded_shapes", 2, 100), ["recompilation"]),
    "a short run that compiles for a third of its time, for a moment because of its last batch": (SHORT % 1, []),
    "a function that compiles for nine shapes": (SHORT % 9, ["recompilation"]),
    "operations of a notebook, which waits for its user": (NOTEBOOK % 200, []),
    "operations of a notebook that compile for most of the time": (NOTEBOOK % 5, ["recompilation"]),
}


@pytest.mark.parametrize("name", ROWS)
def test_recompilations_count_by_their_share(tmp_path: Path, name: str) -> None:
    path, (text, causes) = tmp_path / "metrics.prom", ROWS[name]
    path.write_text(text)
    found = diagnose(gather(Inputs(metrics_files=(str(path),))))
    assert [each.id for each in found.causes] == causes
