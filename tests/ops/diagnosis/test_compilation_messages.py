"""Messages of compilers, their caches and those who watch them, and what looks alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import STEPS, TRACEBACK, said

from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, NO_FAULT

_AUTOTUNER = "2026-01-31 09:00:00.000000: {}external/xla/xla/service/gpu/autotuning/gemm_fusion_autotuner.cc:1021] "
_FUSION = "Failure occurred when compiling fusion gemm_fusion_dot.4 with config '{block_m:16}'\n"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("FAILED_PRECONDITION: Can not combine dim orders and requirements.", (CAUSE, ["compile_failed"])),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.", (CAUSE, ["device_out_of_memory"])),
    ],
)
def test_an_autotuner_that_aborts(tmp_path: Path, status: str, expected: tuple[str, list[str]]) -> None:
    text = f"{_AUTOTUNER.format('F ')}Non-OK-status: executable.status()\nStatus: {status} - {_FUSION}"
    assert said(tmp_path, text) == expected


def test_an_autotuner_that_tries_another_one(tmp_path: Path) -> None:
    assert said(tmp_path, f"{_AUTOTUNER.format('W ')}{_FUSION}{STEPS}") == (NO_FAULT, [])


_RESULTS = "/xla_gpu_per_fusion_autotune_cache_dir"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{TRACEBACK}jax.errors.JaxRuntimeError: PERMISSION_DENIED: {_RESULTS}/tmp/a; Permission denied\n",
            (CAUSE, ["cache_unusable"]),
        ),
        (
            f"{TRACEBACK}jax.errors.JaxRuntimeError: NOT_FOUND: {_RESULTS}/tmp/a; No such file or directory\n",
            (CAUSE, ["cache_unusable"]),
        ),
        (f"DEBUG:jax._src.compiler:319: Enabling XLA autotuning cache at '{_RESULTS}'\n{STEPS}", (NO_FAULT, [])),
    ],
)
def test_results_of_autotuning(tmp_path: Path, text: str, expected: tuple[str, list[str]]) -> None:
    assert said(tmp_path, text) == expected


def test_a_critical_message_of_python(tmp_path: Path) -> None:
    raised = f"{TRACEBACK}AssertionError: Recompilation after warm up is detected during execute_model.\n"
    after = "CRITICAL 04-11 21:18:01 [core_client.py:359] Got fatal signal from worker processes, shutting down.\n"
    assert said(tmp_path, raised + after) == (CAUSE, ["recompilation"])
    fatal = "F0411 21:18:01.000000  1201 client.cc:359] Got a signal from a worker.\n"
    assert said(tmp_path, raised + fatal)[0] == CAUSE
    assert said(tmp_path, fatal)[0] == INCONCLUSIVE


@pytest.mark.parametrize("kind", ["CUBIN", "PTX"])
def test_no_temporary_file(tmp_path: Path, kind: str) -> None:
    """The compiler of a GPU writes its programs into files, and ends where it has no place for them."""
    text = (
        f"ptxas returned an error during compilation of ptx to sass: 'INTERNAL: couldn't get temp {kind} file name'\n"
    )
    prefix = "2026-01-31 09:00:00.000000: F external/xla/xla/service/gpu/nvptx_compiler.cc:460] "
    assert said(tmp_path, prefix + text) == (CAUSE, ["disk_full"])


_SERVES = "[2026-06-03 08:0{}:53] Decode batch. #running-req: 1, gen throughput (token/s): {}, #queue-req: 0\n"


@pytest.mark.parametrize(("throughput", "verdict"), [("88.31", NO_FAULT), ("0.00", INCONCLUSIVE)])
def test_a_server_that_is_replaced(tmp_path: Path, throughput: str, verdict: str) -> None:
    told = "[2026-06-03 08:05:10] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    again = "[2026-06-03 08:05:20] server_args=ServerArgs(model_path='m', device='tpu')\n"
    assert said(tmp_path, _SERVES.format(2, "41.2") + told + again + _SERVES.format(6, throughput))[0] == verdict


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("RuntimeError: JAX compilation occurred but was forbidden in this context.", "recompilation"),
        ("AssertionError: [Chex] Function 'train_step' is traced > 2 times!", "recompilation"),
        ("RuntimeError: re-tracing function step at a.py:3 for `jit`, but 'no_tracing' is set", "recompilation"),
        ("AssertionError: the ray is traced > 2 times through the lens", "program_error"),
    ],
)
def test_guards_against_compilations(tmp_path: Path, error: str, cause: str) -> None:
    assert said(tmp_path, f"{TRACEBACK}{error}\n") == (CAUSE, [cause])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Failed to deserialize executable: UNIMPLEMENTED: Deserializing is not supported.",
            (CAUSE, ["cache_unusable"]),
        ),
        ("Failed to deserialize executable: INVALID_ARGUMENT: It is of another version.", (NO_FAULT, [])),
        (
            "Error writing persistent compilation cache entry for 'jit_f': XlaRuntimeError: UNIMPLEMENTED: no",
            (CAUSE, ["cache_unusable"]),
        ),
    ],
)
def test_a_plugin_without_serialization(tmp_path: Path, text: str, expected: tuple[str, list[str]]) -> None:
    prefix = "2026-01-31 09:00:00.000000: W torch_xla/csrc/runtime/pjrt_computation_client.cc:680] "
    assert said(tmp_path, f"{prefix}{text}\n{STEPS}") == expected
