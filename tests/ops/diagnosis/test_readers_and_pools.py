"""Lines that mean one thing or another by the file that reads, by the pool, or by what is missed."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import TRACEBACK, said

NO_MEMORY = (
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 858 bytes."
)
POOL = "W0131 09:00:00.1 1 bfc_allocator.cc:501] Allocator ({}) ran out of memory trying to allocate 8.00GiB{}\n"
NOT_MADE = "WARNING:2026-01-31 09:00:00,1:jax_plugins.xla_cuda12:130: cuda_plugin_extension is not found.\n"
GOES_ON = "step 1 loss 1.0\nstep 2 loss 0.9\nstep 3 loss 0.8\n"


@pytest.mark.parametrize(
    ("file", "cause"),
    [
        ("/app/data/weather.py", "input_damaged"),
        ("/app/train_data.py", "input_damaged"),
        ("/env/levanter/store/jagged_array.py", "input_damaged"),
        ("/env/xarray_tensorstore/_core.py", "input_damaged"),
        ("/env/orbax/checkpoint/serialization.py", "checkpoint_damaged"),
        ("/app/restore.py", "checkpoint_damaged"),
        ("/app/checkpoints/data.py", "checkpoint_damaged"),
        ("/app/database.py", "checkpoint_damaged"),
        ("/app/models/data_parallel.py", "checkpoint_damaged"),
    ],
)
def test_a_store_that_lacks_its_metadata(tmp_path: Path, file: str, cause: str) -> None:
    """TensorStore keeps checkpoints and caches of the input: the file that reads it tells which one it is."""
    error = 'ValueError: NOT_FOUND: Error opening "zarr" driver: Metadata at local file "/d/a/.zarray" does not exist'
    call = f'  File "{file}", line 3, in f\n    ts.open(spec)\n'
    assert said(tmp_path, f"{TRACEBACK}{call}{error}\n") == ("cause", [cause])


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        (POOL.format("xla_gpu_host_bfc", "") + TRACEBACK + NO_MEMORY, ["host_out_of_memory"]),
        (POOL.format("GPU_0_bfc", "") + TRACEBACK + NO_MEMORY, ["device_out_of_memory"]),
        (POOL.format("xla_gpu_host_bfc", "") + GOES_ON, []),
        (POOL.format("gpu_host_bfc", ". The caller indicates that this is not a failure, but may mean"), []),
    ],
)
def test_whose_memory_ran_out(tmp_path: Path, text: str, causes: list[str]) -> None:
    """The name of the pool says whether it is that of the host, which the error does not."""
    assert said(tmp_path, f"{text}\n")[1] == causes


@pytest.mark.parametrize(
    ("behind", "causes"),
    [
        (GOES_ON, []),
        ("", []),
        (f"{TRACEBACK}KeyError: 'x'\n", ["program_error"]),
        (
            f"{TRACEBACK}JaxRuntimeError: INTERNAL: No FFI handler registered for cusolver_getrf_ffi on CUDA\n",
            ["plugin_mismatch"],
        ),
        (
            f"{TRACEBACK}RuntimeError: Unable to initialize backend 'cuda': Backend 'cuda' is not in the list of known "
            "backends: ['cpu']. (set JAX_PLATFORMS='' to automatically choose an available backend)\n",
            ["plugin_mismatch"],
        ),
    ],
)
def test_a_plugin_without_its_extension(tmp_path: Path, behind: str, causes: list[str]) -> None:
    assert said(tmp_path, f"{NOT_MADE}{behind}")[1] == causes


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("AssertionError: assert nan == 1.0", "nonfinite_values"),
        ("AssertionError: loss = nan", "nonfinite_values"),
        ("AssertionError: losses/entropy_loss 0 NaN", "nonfinite_values"),
        ("AssertionError: {'action': array([nan, nan], dtype=float32)}", "nonfinite_values"),
        ("AssertionError: NaN", "nonfinite_values"),
        ("ValueError: out of bounds: (array([[nan, 2.0]]))", "nonfinite_values"),
        ("ValueError: Probability function returned NaN", "nonfinite_values"),
        ("AssertionError: NaN handling must be one of drop, keep", "program_error"),
        ("AssertionError: expected 'nan' to be dropped", "program_error"),
        ("AssertionError: unknown option nan_policy=", "program_error"),
        ("AssertionError: column names differ: ['nan', 'b']", "program_error"),
        ("ValueError: cannot convert float NaN to integer", "program_error"),
        ("FileExistsError: [Errno 17] File exists: '/a/30.orbax-checkpoint-tmp-0'", "checkpoint_path"),
        ("FileExistsError: [Errno 17] File exists: '/a/checkpoints/300'", "checkpoint_path"),
        ("FileExistsError: [Errno 17] File exists: '/a/checkpoints/run/logs'", "program_error"),
        ("FileExistsError: [Errno 17] File exists: '/a/out'", "program_error"),
        ("EquinoxRuntimeError: A linear solver received non-finite (NaN or inf) input", "nonfinite_values"),
        ("pyarrow.lib.ArrowInvalid: JSON parse error: Invalid value. in row 0", "input_damaged"),
        ("pyarrow.lib.ArrowInvalid: JSON parse error: Column() changed from object to string", "program_error"),
        ("botocore.exceptions.ClientError: An error occurred (RequestTimeTooSkewed) when calling", "storage_denied"),
        ("ValueError: The checkpoint a/b is missing required keys: {('decoder', 'bias')}", "checkpoint_mismatch"),
        ("ValueError: The checkpoint at /a/b is missing", "checkpoint_damaged"),
        ("RuntimeError: operation cublasGetProperty(MAJOR_VERSION, &major) failed: The cuBLAS library was not found.",
         "cuda_library_mismatch"),
    ],
)  # fmt: skip
def test_what_a_check_raises(tmp_path: Path, error: str, cause: str) -> None:
    """The value or the path that it shows says more than its type."""
    assert said(tmp_path, f"{TRACEBACK}{error}\n") == ("cause", [cause])


@pytest.mark.parametrize(("behind", "causes"), [("", ["cuda_library_mismatch"]), (GOES_ON, [])])
def test_device_libraries_that_are_not_found(tmp_path: Path, behind: str, causes: list[str]) -> None:
    """The compiler may try another way."""
    line = "E0401 02:11:10.4 318 amdgpu_backend.cc:171] bitcode module is required by this HLO module but was not found"
    assert said(tmp_path, f"{line} at ./opencl.bc\n{behind}")[1] == causes


INCOMPLETE = "W0120 08:00:01.1 12 a.py:3] Checkpoint directory /ckpt/400.orbax-checkpoint-tmp is not finalized."
RESTORES = "I0120 08:00:02.1 12 a.py:9] Restoring checkpoint from /ckpt/300."


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        (f"{INCOMPLETE}\n{RESTORES}\nstep 301 loss 2.4\nstep 302 loss 2.3\n", []),
        (f"{INCOMPLETE} Removing it.\n", []),
        (f"{INCOMPLETE}\n", ["checkpoint_damaged"]),
        (f"{INCOMPLETE}\n{RESTORES}\n", ["checkpoint_damaged"]),
        (f"step 400 loss 2.4\n{INCOMPLETE}\n{RESTORES}\nstep 301 loss 2.4\n", ["checkpoint_damaged"]),
        (f"{TRACEBACK}ValueError: Incomplete checkpoint.\n{RESTORES}\nstep 301 loss 2.4\n", ["checkpoint_damaged"]),
    ],
)
def test_a_save_that_was_interrupted_before(tmp_path: Path, text: str, causes: list[str]) -> None:
    """A process that takes up the work says so at its start: with that it goes on, unless it had made steps before."""
    assert said(tmp_path, text)[1] == causes
