"""Verdicts on logs of one process: `verdicts/` has them by subject, what looks alike beside each other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.log_verdicts import said, tables

from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, NO_FAULT


@pytest.mark.parametrize(("text", "expected"), tables(*sorted((Path(__file__).parent / "verdicts").glob("*.txt"))))
def test_a_log(tmp_path: Path, text: str, expected: str) -> None:
    causes = [] if expected in (NO_FAULT, INCONCLUSIVE) else expected.split(", ")
    assert said(tmp_path, text) == (CAUSE if causes else expected, causes)


def long_logs() -> Iterator[Any]:
    compiling = (
        "WARNING:2026-01-31 09:01:{:02},000:jax._src.interpreters.pxla:1906: Compiling jit({}) with global shapes\n"
    )
    step, miss = (
        "step {} loss 1.0\n",
        "WARNING:jax._src.interpreters.partial_eval:TRACING CACHE MISS at train.py:9:3 (f):\n",
    )
    start = "".join(compiling.format(n, f"init_{n}") for n in range(40))
    for count, causes in ((12, ["recompilation"]), (3, [])):
        text = start + "".join(step.format(n) + compiling.format(n, "train_step") for n in range(count))
        yield pytest.param(text, causes, id=f"{count} compilations between the steps, as jax_log_compiles logs them")
    for count, causes in ((14, ["recompilation"]), (5, [])):
        text = "".join(step.format(n) + miss for n in range(count))
        yield pytest.param(
            text, causes, id=f"{count} misses of the tracing cache, as jax_explain_cache_misses logs them"
        )
    code = "".join(f"│   {n} ValueError: this is only code      │\n" for n in range(40))
    box = "╭─── Traceback (most recent call last) ───╮\n"
    box += f"│ /usr/lib/python3.11/site-packages/chex/_src/types.py:52 in f │\n{code}"
    box += "│ ❱ 52 Array = jax.numpy.DeviceArray       │\n╰──────────────────────────────────────────╯\n"
    missing = "AttributeError: module 'jax.numpy' has no attribute 'DeviceArray'"
    for raised, cause in ((missing, "library_mismatch"), ("KeyError: 'x'", "program_error")):
        yield pytest.param(f"{box}{raised}\n", [cause], id=f"a traceback in a box, as Rich draws it: {raised}")


@pytest.mark.parametrize(("text", "causes"), list(long_logs()))
def test_a_long_log(tmp_path: Path, text: str, causes: list[str]) -> None:
    assert said(tmp_path, text) == (CAUSE if causes else NO_FAULT, causes)
