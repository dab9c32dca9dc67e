# ruff: noqa: E501 - the wordings stand as they are printed
"""Every wording of out-of-memory errors that the references and users' reports have, and what it is read as."""

from __future__ import annotations

from typing import Any

import pytest

from jaxobs.recorder.oom_texts import human, is_out_of_memory, parse, size

K, M, G, T = 1024, 1024**2, 1024**3, 1024**4

TPU_COMPILE = """\
RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. \
Used 63.80G of 30.75G hbm. Exceeded hbm capacity by 33.05G.

Total hbm usage >= 65.05G:
    reserved          1.25G
    program          48.00G
    arguments        15.80G

Output size 15.80G; shares 15.80G with arguments.

Program hbm requirement 48.00G:
    global           276.0K
    HLO temp         47.50G (92.8% utilization: Unpadded (44.06G) Padded (47.48G), 0.3% fragmentation (53.61M))

  Largest program allocations in hbm:

  1. Size: 14.00G
     Operator: op_type="OneHot" op_name="jit(train_step)/jit(main)/one_hot" source_file="/home/me/model.py"
     Shape: s32[29360128,10]{1,0:T(8,128)}
     Unpadded size: 1.09G
     Extra memory due to padding: 12.91G (12.8x expansion)
     XLA label: %iota.2 = s32[29360128,10]{1,0:T(8,128)} iota(), iota_dimension=1
     Allocation type: HLO temp
     ==========================

  2. Size: 256.00M
     Shape: bf16[4,512,512,64]{3,0,2,1:T(4,128)(2,1)}
     Unpadded size: 128.00M
     Extra memory due to padding: 128.00M (2.0x expansion)
     XLA label: %fusion.20231 = bf16[4,512,512,64]{3,0,2,1:T(4,128)(2,1)} fusion(...)
     Allocation type: HLO temp
     ==========================
"""

GPU_RUN = """\
RESOURCE_EXHAUSTED: Out of memory while trying to allocate 34912723376 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    5.43GiB
              constant allocation:    38.7KiB
        maybe_live_out allocation:    1.73GiB
     preallocated temp allocation:   32.51GiB
  preallocated temp fragmentation:     2.0KiB (0.00%)
                 total allocation:   39.68GiB
              total fragmentation:    1.73GiB (4.37%)
Peak buffers:
\tBuffer 1:
\t\tSize: 3.24GiB
\t\tOperator: op_name="jit(apply_fn)/jit(main)/alphafold/mul" source_file="modules.py" source_line=1307
\t\tXLA Label: fusion
\t\tShape: f32[128,2605,2605]
\t\t==========================

\tBuffer 2:
\t\tSize: 384.0KiB
\t\tEntry Parameter Subshape: f32[256,128,3]
\t\t==========================
"""

WARNING = (
    "2025-05-18 21:59:55.086788: W external/xla/xla/tsl/framework/bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out "
    "of memory trying to allocate 3.37GiB with freed_by_count=0. The caller indicates that this is not a failure, but "
    "this may mean that there could be performance gains if more memory were available."
)

WORDINGS: list[tuple[str, dict[str, Any]]] = [
    # M1 and its newer prefix
    (TPU_COMPILE, {"stage": "compile", "used": round(63.8 * G), "wanted": round(63.8 * G), "limit": round(30.75 * G),
                   "exceeded": round(33.05 * G), "space": "hbm", "program": "train_step"}),
    ("RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom:\nXLA:TPU compile permanent error. Ran out of memory in memory space\n"
     "hbm. Used 126.45G of 94.75G hbm. Exceeded hbm capacity by 31.70G.",
     {"stage": "compile", "used": round(126.45 * G), "limit": round(94.75 * G), "exceeded": round(31.7 * G)}),
    ("Compilation failure: Ran out of memory in memory space vmem. Used 17.60M of 16.00M vmem.",
     {"stage": "compile", "used": round(17.6 * M), "limit": 16 * M, "exceeded": round(17.6 * M) - 16 * M, "space": "vmem"}),
    ("RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (99.50G) exceeds "
     "available HBM (15.75G).", {"stage": "compile", "wanted": round(99.5 * G), "limit": round(15.75 * G)}),
    # M2
    ("RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes: "
     "95.74G", {"stage": "compile", "used": round(34.82 * G) + round(174.1 * G), "limit": round(95.74 * G)}),
    # M3, as text of a ValueError and behind the newer code
    ("RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 8.00M. That was not possible. There "
     "are 6.43M free.; (0x0x1_HBM0)",
     {"stage": "allocate", "wanted": 8 * M, "free": round(6.43 * M), "space": "0x0x1_HBM0"}),
    ("RESOURCE_EXHAUSTED: E0100: RuntimeBufferAllocationFailure:\nError allocating device buffer: Attempting to allocate "
     "556.00M.\nThat was not possible. There are 289.98M free.; (0x1x0_HBM0)",
     {"stage": "allocate", "wanted": 556 * M, "free": round(289.98 * M), "space": "0x1x0_HBM0"}),
    # M4
    ("RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure:\nError loading program 'jit_decode': Attempting to "
     "reserve 12.21G at the bottom of memory. That was not possible. There are 6.20G free, 0B reserved, and 6.20G "
     "reservable.", {"stage": "load", "wanted": round(12.21 * G), "free": round(6.2 * G), "program": "decode"}),
    # M5
    ("RESOURCE_EXHAUSTED: E3000: the offset exceeds the legitimate user allocatable offset upper bound (131071 words) in "
     "memory space 201", {"stage": "compile", "space": "201", "wanted": None}),
    ("E3001: No viable logical replica count for the embedding table", {"stage": "compile"}),
    # M6, old and new, and its relatives
    (GPU_RUN, {"stage": "run", "wanted": 34912723376, "program": "apply_fn"}),
    ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1000000256 bytes.", {"wanted": 1000000256}),
    ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.00GiB.", {"wanted": 2 * G, "stage": "allocate"}),
    ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 262.56GiB.\n  [executable_name='jit_train_step']",
     {"wanted": round(262.56 * G), "stage": "run", "program": "train_step"}),
    ("Execution of replica 0 failed: Resource exhausted: Out of memory while trying to allocate 5520758552 bytes.",
     {"wanted": 5520758552, "stage": "run"}),
    ("Resource exhausted: Failed to allocate request for 32.00MiB (33554432B) on device ordinal 3",
     {"wanted": 32 * M, "ordinal": 3}),
    # M8: the status is another
    ("INTERNAL: Failed to allocate 98697216 bytes for new constant", {"wanted": 98697216, "stage": "compile"}),
    # M9
    ("gpu_async_1 cuMemAllocAsync failed to allocate 1225195446464 bytes: RESOURCE_EXHAUSTED: CUDA_ERROR_OUT_OF_MEMORY: "
     "out of memory\n Reported by CUDA: Free memory/Total memory: 22635544576/85095874560",
     {"wanted": 1225195446464, "free": 22635544576, "total": 85095874560, "ordinal": 1}),
    # M10
    ("CUDA backend failed to initialize: INTERNAL: no supported devices found for platform CUDA. This may be due to JAX "
     "pre-allocating too much device memory", {"stage": "start"}),
    ("failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory", {"stage": "start"}),
    # the CPU, the host and other frameworks
    ("RESOURCE_EXHAUSTED: Out of memory allocating 4503599627370496 bytes.", {"wanted": 4 * 1024 * T}),
    ("Unable to allocate 256. TiB for an array with shape (8388609, 8388608) and data type float32",
     {"wanted": 256 * T, "stage": "allocate"}),
    ("std::bad_alloc", {"wanted": None}),
    ("CUDA out of memory. Tried to allocate 2.50 GiB", {"wanted": round(2.5 * G)}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WORDINGS)
def test_figures(text: str, expected: dict[str, Any]) -> None:
    """Each wording gives its stage and its figures, and whatever stands around it changes nothing."""
    for around in ("{}", "jax.errors.JaxRuntimeError: {}", "a line before\n{}\nThe stack trace below excludes frames."):
        found = parse(around.format(text))
        assert found is not None
        assert {name: getattr(found, name) for name in expected} == expected
        assert not found.harmless


def test_listed_buffers_of_a_tpu() -> None:
    """The compiler's list gives operator, shape, size and padding of each buffer; sections come from its totals."""
    found = parse(TPU_COMPILE)
    assert found is not None
    first, second = found.buffers
    assert (first.size, first.unpadded, first.padding) == (14 * G, round(1.09 * G), round(12.91 * G))
    assert first.operator == "jit(train_step)/jit(main)/one_hot"
    assert (first.shape, first.allocation) == ("s32[29360128,10]{1,0:T(8,128)}", "HLO temp")
    assert second.operator is not None and second.operator.startswith("%fusion.20231 = bf16")
    assert found.sections["temp"] == round(47.5 * G) and found.sections["argument"] == round(15.8 * G)


def test_listed_buffers_of_a_gpu() -> None:
    """The runtime's statistics give parameter, output and temp bytes; its buffers tell parameters from temporaries."""
    found = parse(GPU_RUN)
    assert found is not None
    assert found.sections == {
        "argument": round(5.43 * G), "constant": round(38.7 * K), "output": round(1.73 * G),
        "temp": round(32.51 * G), "total": round(39.68 * G), "fragmentation": round(1.73 * G),
    }  # fmt: skip
    first, second = found.buffers
    assert (first.operator, first.shape) == ("jit(apply_fn)/jit(main)/alphafold/mul", "f32[128,2605,2605]")
    assert (second.size, second.allocation, second.shape) == (384 * K, "parameter", "f32[256,128,3]")


def test_allocator_warning_is_harmless_unless_a_failure_follows() -> None:
    """The allocator's warning says itself that it is none; an error behind it is one."""
    alone = parse(WARNING)
    assert alone is not None and alone.harmless and alone.wanted == round(3.37 * G) and alone.ordinal == 0
    followed = parse(f"{WARNING}\n{GPU_RUN}")
    assert followed is not None and not followed.harmless


@pytest.mark.parametrize(
    "text",
    [
        "RESOURCE_EXHAUSTED: Received message larger than max (20971520 vs. 4194304)",
        "RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Requests'",
        "INVALID_ARGUMENT: Executable expected shape f32[4] but got f32[8]",
        "Incompatible shapes for broadcasting: shapes=[(3,), (4,)]",
        "failed to allocate a port",
        "",
    ],
)
def test_others_are_left_alone(text: str) -> None:
    """The status alone does not make an error of memory: gRPC uses it as well."""
    assert not is_out_of_memory(text) and parse(text) is None


def test_sizes() -> None:
    """XLA's units are powers of 1024 whether written K, KiB or not at all, and `human` writes them back."""
    assert [size("1.5", unit) for unit in ("K", "KiB", "G", "GiB", "bytes", None)] == [
        1536, 1536, 3 * G // 2, 3 * G // 2, 2, 2,
    ]  # fmt: skip
    assert [human(n) for n in (0, 512, 1536, 20 * M, 4 * 1024 * T)] == [
        "0 B",
        "512 B",
        "1.50 KiB",
        "20.0 MiB",
        "4.00 PiB",
    ]
