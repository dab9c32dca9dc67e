"""A kernel did something invalid on the GPU."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

KNOWN = Knowledge(
    title="A kernel failed on the GPU: an illegal address or instruction",
    impact=ENDED,
    signs=(
        Line(
            "CUDA_ERROR_(?:ILLEGAL_ADDRESS|LAUNCH_FAILED|MISALIGNED_ADDRESS|ILLEGAL_INSTRUCTION|"
            "ASSERT|HARDWARE_STACK_ERROR|INVALID_PC)"
        ),
        Line("an illegal memory access was encountered|unspecified launch failure|misaligned address"),
        Line(r"NVRM: Xid \([^)]*\): (?:13|31|43)\b", info=True, passes=False),
        Line(
            r"STREAM_CAPTURE_INVALIDATED|CUDA_ERROR_(?:STREAM_CAPTURE|GRAPH)|(?:cuda|hip)Error(?:StreamCapture|Graph)|"
            r"Failed to (?:update|instantiate|launch|begin|end|create) (?:a |the )?(?:gpu |GPU |CUDA )?"
            r"(?:graph|stream capture|command buffer)"
        ),
        Event("error:device_fault", weak=True),
        Line(
            r"(?:cuda|hip)Error(?:IllegalAddress|LaunchFailure|MisalignedAddress|IllegalInstruction|HardwareStackError|"
            r"InvalidPc|Assert|LaunchTimeOut|LaunchOutOfResources)|"
            "device-side assert triggered|hipErrorIllegalAddress|hipErrorLaunchFailure|"
            "HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY)"
        ),
        Line(
            "CU(?:DNN|BLAS|SOLVER|SPARSE)_STATUS_(?:EXECUTION_FAILED|MAPPING_ERROR)",
            unless="Profiling failure|[Aa]lgorithm|Falling back",
        ),
        Line(
            r"Memory access fault by GPU node|an illegal instruction was encountered|not supported on (?:global|"
            r"shared)\S* address space|"
            r"invalid program counter|stream (?:is|are) capturing|error during capture|"
            r"(?:on|in) a capturing (?:blocking )?stream|"
            r"separate capture sequences|Failed to launch (?:CUDA |ROCm |GPU )?kernel|"
            r"graph update was not performed|invalid cluster size|"
            r"invalid configuration argument|CUDA_ERROR_INVALID_(?:ADDRESS_SPACE|CLUSTER_SIZE|CONFIGURATION)|"
            r"maximum depth of nested launches|LaunchMaxDepthExceeded|CUFFT_EXEC_FAILED|"
            r"HSA_STATUS_ERROR_(?:ILLEGAL|INVALID_ISA)|"
            r"hardware stack error|CUDA_ERROR_LAUNCH_(?:TIMEOUT|OUT_OF_RESOURCES)|"
            r"the launch timed out and was terminated|"
            r"too many resources requested for launch|the function failed to launch on the GPU",
            unless=r"\bWarp\b|OUT_OF_MEMORY|out of memory",
        ),
    ),
    follows=("gpu_hardware",),
    fix=(
        "Suspect custom and Pallas kernels, then the compiler: rule out CUDA graphs with "
        "XLA_FLAGS=--xla_gpu_enable_command_buffer= (empty), find the kernel with "
        "compute-sanitizer, and try another jaxlib."
    ),
    runbook="JaxFunctionErrors",
)
