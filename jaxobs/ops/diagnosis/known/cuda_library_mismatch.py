"""CUDA, cuDNN or another library of NVIDIA does not fit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import LINE, Evidence, Observation
from jaxobs.ops.diagnosis.full_devices import full_before
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

_NOT_MADE = re.compile(
    r"_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)|INVALID_PTX|[Cc]reate|not initialized|not been initialized"
)
_NO_MEMORY = re.compile(
    r"ran out of memory|[Oo]ut of memory|OUT_OF_MEMORY|RESOURCE_EXHAUSTED|[Rr]esource exhausted|ALLOC_FAILED|"
    r"too much shared data"
)


def _with_memory(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A library that cannot be set up where memory is short says nothing of its version."""
    short = {(each.source, each.process) for each in evidence.of_kind(LINE) if _NO_MEMORY.search(each.text)}
    return [
        each
        for each in signs
        if not _NOT_MADE.search(each.text)
        or ((each.source, each.process) not in short and not full_before(evidence, each))
    ]


KNOWN = Knowledge(
    title="A library of CUDA or ROCm, or the driver, does not fit this JAX",
    impact=ENDED,
    signs=(
        Line(r"Outdated \w+ installation found", passes=False),
        Line(r"kernel version \S+ does not match DSO version"),
        Line(r"Found \w+ version \d+, but JAX was built against version \d+"),
        Line("CUDA version check failed during initialization", passes=False),
        Line(r"Loaded runtime CuDNN library: \S+ but source was compiled with"),
        Line("DNN library initialization failed", weak=True),
        Line(
            r"Could not create cudnn handle: (?!CUDNN_STATUS_ALLOC)",
            unless_followed=r"Memory usage: \d{1,8} bytes free",
        ),
        Line(
            r"CUDNN_STATUS_(?:NOT_INITIALIZED|(?:SUBLIBRARY_)?VERSION_MISMATCH|SUBLIBRARY_LOADING_FAILED|ARCH_MISMATCH|"
            r"RUNTIME_PREREQUISITE_MISSING|LICENSE_ERROR)|DNN library is not found"
        ),
        Line(
            r"(?:CUBLAS|CUSOLVER|CUSPARSE)_STATUS_(?:NOT_INITIALIZED|ARCH_MISMATCH)|the library was not initialized|"
            r"cu(?:Solver|BLAS|Blas|Sparse|FFT) has not been initialized|(?<!pthread_)[cC]reate\(&?\w*\) failed|"
            r"gpusolver\w*Create failed"
        ),
        Line(r"cu(?:Solver|BLAS|Blas|Sparse) internal error"),
        Line(
            r"lib(?:cu|nv|cudart|cupti)\w*\.so[\w.]*: (?:cannot open shared object file|undefined symbol|version)|"
            r"(?:Could not|Failed to|Unable to) (?:load|open|find)(?: (?:the|dynamic|shared))* (?:library |symbol )?"
            r"'?lib(?:cu|nv)\w*|not defined in file lib(?:cu|nv)\w*\.so",
            unless=r"libcuda\.so|libnvidia-ml|libnvinfer|dlerror",
        ),
        Line(
            "CUDA driver version is insufficient|driver .{0,40}is too old|stale driver|requires ptxas version|"
            "CUDA_ERROR_(?:SYSTEM_DRIVER_MISMATCH|"
            "COMPAT_NOT_SUPPORTED_ON_DEVICE|UNSUPPORTED_PTX_VERSION|"
            "NO_BINARY_FOR_GPU|INVALID_(?:IMAGE|PTX|KERNEL_IMAGE)|JIT_COMPILER_NOT_FOUND)|"
            "PTX was compiled with an unsupported toolchain|the provided PTX was compiled with|"
            "forward compatibility was attempted on non supported|Unsupported \\.version|"
            "device kernel image is invalid|Possibly insufficient driver version"
        ),
        Line(
            "[Dd]river/library version mismatch|no kernel image is available for execution|"
            "ptxas does not support CC|is not supported by (?:this|the current) (?:ptxas|CUDA)"
        ),
        Line(
            r"libdevice not found|bitcode module (?:is required by this HLO module but was )?not found|"
            r"failed: The \w+ library was not found|Couldn.t (?:find|get) (?:a suitable version of )?ptxas|"
            r"No PTX compilation provider|undefined symbol: \w*(?:cu|nv)\w+"
        ),
        Line(r"nvidia-container-cli(?:\.real)?: requirement error", info=True, passes=False),
        Line(r"Unable to load cu\w+\. Is it installed"),
        Line(
            r"Unable to load (?:CUDA|cu[A-Z]\w+|NVIDIA)|unsupported display driver / cuda driver combination|"
            r"PTX JIT compiler library was not found|(?:named|cuda\w+|object) symbol not found|"
            r"shared object (?:symbol|initialization)|"
            r"CUDA_ERROR_(?:STUB_LIBRARY|SHARED_OBJECT_\w+|NOT_FOUND)\b|driver is a stub library|"
            r"CallRequiresNewerDriver|"
            r"in the installed CUDA driver|(?:[Uu]nsupported|[Ii]nsufficient) CUDA (?:driver )?version|"
            r"a PTX JIT compilation failed|PTX JIT compiler library not found|"
            r"\bdnn != nullptr|invalid device function"
        ),
        Line(
            r"ptxas (?:\S+ )?too old|[Vv]alue 'sm_\w+' is not defined|PTX version \S+ does not support|"
            r"[Mm]inimum required PTX version|"
            r"[Uu]nsupported (?:gpu architecture|GPU architecture|compute capability)|"
            r"(?:sm_\d+\w?|compute capability \S+) is not (?:supported|compatible|recognized|defined)"
        ),
        Line(
            r"cudaError(?:InsufficientDriver|NoKernelImageForDevice|UnsupportedPtxVersion|Invalid(?:Ptx|KernelImage)|"
            r"SystemDriverMismatch|CompatNotSupportedOnDevice|JitCompilerNotFound|SymbolNotFound|StubLibrary)|"
            r"hipError(?:NoBinaryForG[Pp][Uu]|InvalidDeviceFunction|InsufficientDriver|SharedObject\w+|"
            r"InvalidKernelFile|InvalidImage)|hipError_t\(98\)|Unable to find code object for all current devices|"
            r"Cannot retrieve [Ss]tatic function, error"
        ),
        Line(
            r"(?:[Uu]nable|[Ff]ailed|[Cc]ould ?n[o']t|[Cc]annot) (?:to )?(?:find|locate|execute|invoke) "
            r"(?:the )?[`'\"]?(?:\S*/)?(?:ld\.lld|ptxas|fatbinary|nvlink|nvcc|hipcc|clang-offload-bundler|libdevice|"
            r"ROCm|rocm|ocml|ockl|bitcode)\b|"
            r"lib(?:amdhip|hip|roc|rccl|MIOpen|hsa|amd_comgr)\w*\.so[\w.]*: (?:cannot open|undefined symbol|version)"
        ),
        Line(
            r"(?:xla_(?:cuda|rocm)_plugin|jax_plugins/xla_(?:cuda|rocm)\w*/\S+)\.so: (?:lib\S+: cannot open shared|"
            r"undefined symbol|\S+: version)"
        ),
    ),
    narrow=_with_memory,
    fix=(
        "Install one set that fits together: `pip install -U 'jax[cuda12]'`, no other CUDA in "
        "LD_LIBRARY_PATH, no other framework imported first, and a driver that is new enough. "
        "After a driver update, restart the host."
    ),
    collect="The first error above it in the log, and `jaxobs doctor` on that machine.",
)
