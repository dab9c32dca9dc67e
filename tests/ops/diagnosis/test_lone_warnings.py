"""Warnings about compilations and their cache that no exception follows."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import said


@pytest.mark.parametrize(("count", "causes"), [(14, ["recompilation"]), (5, [])])
def test_misses_of_the_tracing_cache_between_the_steps(tmp_path: Path, count: int, causes: list[str]) -> None:
    """As `jax_explain_cache_misses` logs them: each step, or a few of an evaluation."""
    text = "".join(
        f"step {number} loss 1.0\nWARNING:jax._src.interpreters.partial_eval:TRACING CACHE MISS at train.py:9:3 (f):\n"
        for number in range(count)
    )
    assert said(tmp_path, text)[1] == causes


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("WARNING: compile_or_get_cached: unable to generate cache key, skipping the cache: x", "cache_unusable"),
        (
            "UserWarning: Error reading persistent compilation cache entry for 'jit_f': RuntimeError: Please install "
            "the `filelock` package to set `jax_compilation_cache_max_size`",
            "cache_unusable",
        ),
        (
            "UserWarning: Error reading persistent compilation cache entry for 'jit_f': RuntimeError: Please install "
            "the `etils[epath]` package to specify a cache directory on a non-local filesystem",
            "cache_unusable",
        ),
        ("ModuleNotFoundError: jax requires jaxlib to be installed. See https://github.com/jax-ml/jax",
         "jaxlib_mismatch"),
        ("FloatingPointError: Invalid value (nan) encountered in sharded computation.", "nonfinite_values"),
        ("E0131 09:00:00.1 1 cpu_aot_loader.cc:99] This could lead to execution errors such as SIGILL.",
         "cache_other_cpu"),
        ("ValueError: No viable logical replica count for the embedding table", "device_out_of_memory"),
    ],
)  # fmt: skip
def test_a_line_by_itself(tmp_path: Path, line: str, cause: str) -> None:
    assert said(tmp_path, f"{line}\n") == ("cause", [cause])


@pytest.mark.parametrize(
    ("error", "causes"),
    [
        ("FloatingPointError: invalid value (nan) encountered in mul", ["nonfinite_values"]),
        ("OddError: 7", ["program_error"]),
    ],
)
def test_what_jax_writes_behind_a_traceback(tmp_path: Path, error: str, causes: list[str]) -> None:
    text = (
        f'step 1 loss 1.0\nTraceback (most recent call last):\n  File "train.py", line 3, in <module>\n{error}\n'
        "--------------------\nFor simplicity, JAX has removed its internal frames from the traceback of the "
        "following exception. Set JAX_TRACEBACK_FILTERING=off to include these.\n"
    )
    assert said(tmp_path, text)[1] == causes
