"""Messages of loaders, compilers and libraries, and values that are no loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import STEPS, TRACEBACK, said

from jaxobs.ops.diagnosis.result import CAUSE, NO_FAULT


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("ImportError: /lib64/libm.so.6: version `GLIBC_2.29' not found (required by /env/a.so)", "library_mismatch"),
        ("ImportError: /lib/libstdc++.so.6: version `CXXABI_1.3.15' not found (required by a.so)", "library_mismatch"),
        ("ImportError: DLL load failed while importing _jax: A routine failed.", "library_mismatch"),
        ("ImportError: DLL load failed: The specified module could not be found.", "library_mismatch"),
        ("ImportError: libgfortran.so.5: cannot open shared object file: No such file", "library_mismatch"),
        ("ImportError: libgomp.so.1: cannot allocate memory in static TLS block", "library_mismatch"),
        ("ImportError: a.so: cannot enable executable stack as shared object requires: Invalid", "library_mismatch"),
        ("ImportError: dlopen(/env/a.so, 0x0002): Library not loaded: @rpath/libb.dylib", "library_mismatch"),
        ("ImportError: libcudart.so.12: cannot open shared object file: No such file", "cuda_library_mismatch"),
        ("RuntimeError: Failed to open /p/xla_rocm_plugin.so: libz.so.4: cannot open shared", "cuda_library_mismatch"),
        ("KeyError: 'model.layers.3.mlp.down_proj.weight_scale'", "checkpoint_mismatch"),
        ("KeyError: 'lm_head.weight'", "checkpoint_mismatch"),
        ("KeyError: 'config.weight_decay'", "program_error"),
        ("ValueError: There is no module or parameter named 'visual' in Qwen3Model", "checkpoint_mismatch"),
        ("ValueError: Following weights were not initialized from checkpoint: {'a.b'}", "checkpoint_mismatch"),
        ("SafetensorError: File does not contain tensor model.norm.weight", "checkpoint_mismatch"),
    ],
)
def test_what_loaders_of_libraries_and_weights_say(tmp_path: Path, error: str, cause: str) -> None:
    assert said(tmp_path, f"{TRACEBACK}{error}\n") == (CAUSE, [cause])


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("sweep 1 Energy: nan\nsweep 2 Energy: nan\n", CAUSE),
        ("1  nan  nan  0.003\n2  nan  nan  0.001\n", CAUSE),
        ("1  nan  nan  0.003\n2  0.51  0.62  0.001\n", NO_FAULT),
        ("1  0.71  nan  nan\n2  0.64  nan  nan\n", NO_FAULT),
        ("   loss  accuracy\n0   NaN       NaN\n1   NaN       NaN\n", NO_FAULT),
        ("step 1 elbo: nan\nstep 2 elbo: -91.2\nstep 3 elbo: -90.7\n", NO_FAULT),
    ],
)
def test_values_that_are_no_loss(tmp_path: Path, text: str, verdict: str) -> None:
    """Simulations and samplers log an energy, or rows of a table; a column that is empty shows nothing."""
    assert said(tmp_path, text) == (verdict, ["nonfinite_values"] if verdict == CAUSE else [])


def test_files_of_devices_that_are_not_there(tmp_path: Path) -> None:
    """A script may look for them anywhere; where JAX misses them, it is the device, not another host."""
    listed = "ls: cannot access '/dev/vfio': No such file\nls: cannot access '/dev/accel*': No such file\n"
    missed = f"{TRACEBACK}RuntimeError: Unable to initialize backend 'tpu': Failed to get global TPU topology.\n"
    assert said(tmp_path, f"{listed}built 12 wheels\n") == (NO_FAULT, [])
    assert said(tmp_path, missed) == (CAUSE, ["coordinator_unreachable"])
    assert said(tmp_path, listed + missed) == (CAUSE, ["no_accelerator"])


def test_a_gpu_that_is_not_shown_explains_that_none_is_found(tmp_path: Path) -> None:
    asked = "W external/xla/a.cc:206] unable to create StreamExecutor for CUDA:4: invalid device ordinal\n"
    found = (
        f"{TRACEBACK}RuntimeError: Unable to initialize backend 'cuda': no supported devices found for platform CUDA\n"
    )
    assert said(tmp_path, asked + found) == (CAUSE, ["hidden_device"])


LIBRARY = "/v/lib/python3.12/site-packages/"


@pytest.mark.parametrize(
    ("files", "error", "cause"),
    [
        (["haiku/_src/module.py"], "AttributeError: 'Config' object has no attribute 'jax_old_flag'", True),
        (["haiku/_src/module.py", "jax/_src/config.py"], "AttributeError: Unrecognized config option: jax_old", True),
        (["numpyro/ops/a.py"], "AttributeError: 'ShapedArray' object has no attribute 'named_shape'", True),
        (["equinox/internal/_primitive.py", "jax/_src/core.py"], "TypeError: As of JAX v0.7, parameters must", True),
        (
            ["a/b.py", "a/d.py", "dataclasses.py"],
            "TypeError: D.__init__() got an unexpected keyword argument 'k'",
            False,
        ),
        (["flax/struct.py", "dataclasses.py"], "TypeError: D.__init__() got an unexpected keyword argument 'k'", False),
        (
            ["a/b.py", "c/d.py", "dataclasses.py"],
            "TypeError: D.__init__() got an unexpected keyword argument 'k'",
            True,
        ),
        (["haiku/_src/module.py"], "AttributeError: 'Config' object has no attribute 'hidden_size'", False),
        (["serving/mesh.py"], "AttributeError: 'jaxlib._jax.Device' object has no attribute 'coords'", False),
    ],
)
def test_a_library_that_meets_another_release(tmp_path: Path, files: list[str], error: str, cause: bool) -> None:
    frames = "".join(f'  File "{LIBRARY}{each}", line 8, in f\n    return g(x)\n' for each in files)
    said_so = said(tmp_path, f"{TRACEBACK}{frames}{error}\n")
    assert said_so == (CAUSE, ["library_mismatch" if cause else "program_error"])
    own = TRACEBACK + error + "\n"
    assert said(tmp_path, own) == (CAUSE, ["program_error"])


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        ("x = nnx.Linear(", "library_mismatch"),
        ("return shard_map(f, mesh=mesh, check_rep=False)", "library_mismatch"),
        ("return optax.adam(**options)", "program_error"),
        ("return self.callback(step=step)", "program_error"),
    ],
)
def test_a_library_that_calls_another_one(tmp_path: Path, call: str, cause: str) -> None:
    """With an argument that this does not take; what it passes on, or what it calls back, is the program's own."""
    frame = f'  File "{LIBRARY}a/b.py", line 8, in f\n    {call}\n'
    error = "TypeError: f() got an unexpected keyword argument 'k'\n"
    assert said(tmp_path, TRACEBACK + frame + error) == (CAUSE, [cause])


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("F0131 09:00:03.100000  1201 tiling.cc:627] Check failed: a == b (4 vs. 3)\n", ["compile_failed"]),
        ("F0131 09:00:03.100000  1201 env.cc:74] Check failed: ret == 0 (1 vs. 0)\n", []),
        ("*** SIGTERM received by PID 4711 (TID 4711) on cpu 25 from PID 1; stack trace: ***\n", []),
    ],
)
def test_a_stack_within_the_compiler(tmp_path: Path, text: str, causes: list[str]) -> None:
    """Below a check that failed it shows a bug of it; below a signal, what the process did when that came."""
    stack = "*** Check failure stack trace: ***\n" if causes else ""
    stack += "    @     0x5ce57c054414  absl::lts_20260107::log_internal::LogMessage::SendToLog()\n"
    stack += "    @     0x5ce5738ad5da  xla::HloPassPipeline::RunPassesInternal<>()\n"
    stack += "    @     0x5ce5732f0a18  xla::gpu::GpuCompiler::RunHloPasses()\n"
    assert said(tmp_path, STEPS + text + stack)[1] == causes


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("RuntimeError: Resource temporarily unavailable", ["resource_limit"]),
        ("XlaRuntimeError: FAILED_PRECONDITION: Triton support is only enabled for Ampere GPUs.", ["compile_failed"]),
        (
            "JaxRuntimeError: INTERNAL: E2001: CompileTimeMosaicUnprovenMemoryAccessAlignment:\nFailed",
            ["compile_failed"],
        ),
        ("JaxRuntimeError: RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out", ["device_out_of_memory"]),
        ("JaxRuntimeError: NOT_FOUND: No FFI handler registered for cu_lu in a platform CUDA", ["compile_failed"]),
        ("NotImplementedError: Packed layout requires a GPU with at least Hopper arch.", ["compile_failed"]),
        ("ValueError: F32 redux only supported on Blackwell GPUs", ["compile_failed"]),
        ("ValueError: this loader is only supported on Linux", ["program_error"]),
    ],
)
def test_what_the_system_or_the_card_cannot(tmp_path: Path, text: str, causes: list[str]) -> None:
    """A thread that cannot start has no words of its own; a kernel names the cards for which it is made."""
    assert said(tmp_path, f"{TRACEBACK}{text}\n") == (CAUSE, causes)


ORBAX = f'  File "{LIBRARY}orbax/checkpoint/metadata.py", line 8, in read\n    return json.loads(x)\n'
JSON = '  File "/usr/lib/python3.12/json/decoder.py", line 338, in decode\n    raise JSONDecodeError("x", s, 0)\n'


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{ORBAX}{JSON}json.decoder.JSONDecodeError: Expecting value: line 1 column 1", "checkpoint_damaged"),
        (f"{JSON}json.decoder.JSONDecodeError: Expecting value: line 1 column 1", "program_error"),
        (f'{ORBAX}ValueError: Expected gs://b/c/7 to contain the "commit_success.txt" file', "checkpoint_damaged"),
        (f"{ORBAX}InvalidLayoutError: Failed to load checkpoint using AUTO resolution mode", "checkpoint_damaged"),
        (f"{ORBAX}ValueError: Found empty checkpoint PyTree metadata", "checkpoint_damaged"),
    ],
)
def test_a_step_that_orbax_did_not_commit(tmp_path: Path, text: str, cause: str) -> None:
    assert said(tmp_path, f"{TRACEBACK}{text}\n") == (CAUSE, [cause])
