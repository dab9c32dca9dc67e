"""The compiler cannot make a program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import LINE, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

_OF_KERNELS = (
    r"pallas/(?:mosaic|triton)\w*/|mosaic/|tpu_custom_call|jax/_src/tpu/|jax_triton|"
    r"triton/(?:compiler|backends|language)"
)
"""Files of the compilers of kernels: what is raised there is about a kernel that they do not support."""

_NOT_COMPILED = (
    r"(?:(?:Xla|Jax)RuntimeError|RuntimeError): (?:INTERNAL|Internal|INVALID_ARGUMENT|Invalid argument|UNKNOWN|Unknown|"
    r"UNIMPLEMENTED|Unimplemented|FAILED_PRECONDITION|Failed precondition): "
    r"(?!.{0,300}(?:[Cc][Uu][Dd][Aa]|[Dd][Nn][Nn]|[Bb][Ll][Aa][Ss]|HIP|hip|NCCL|[Dd]river|"
    r"[Dd]evice ordinal|TPU (?:core|initialization)|[Mm]emory|alloc|[Cc]onnect|[Cc]oordination|[Tt]imed out|libtpu|"
    r"PJRT))"
)
"""What the call raised that compiles, as long as it is not about the device or its libraries."""

_ARCHITECTURES = r"(?:Volta|Turing|Ampere|Ada|Hopper|Blackwell|SM ?_?\d|sm_?\d|compute capabilit)"
_OF_COMPILER = (
    r"^\s*@ +0x[0-9a-f]+ +(?:\d+ +)?(?:xla::(?:\w+::)*(?:HloPass\w+|\w*Compiler)::|"
    r"mlir::(?:PassManager|detail::OpToOpPassAdaptor)::)"
)
"""A call of the compiler in the stack of a crash."""
_CHECK = re.compile(
    r"(?:^|\] ?)Check failed: "
    r"(?!.*(?:[Ss]tatus|\bok\(\)|\bret\b|pthread|[Cc][Uu][Dd][Aa]|hip|[Mm]emory|alloc))"
)
"""What the source takes for granted, and not what a call of the system or of the driver answered."""
_MOST_OF_A_STACK = 100


def _of_a_check(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A stack shows a bug of the compiler only below a check that failed: one that is stopped prints its stack, too."""
    checks = [each for each in evidence.of_kind(LINE) if _CHECK.search(each.text)]
    return [
        sign
        for sign in signs
        if not sign.text.lstrip().startswith("@ ")
        or any(
            each.source == sign.source
            and each.process == sign.process
            and 0 < sign.place - each.place <= _MOST_OF_A_STACK
            for each in checks
        )
    ]


KNOWN = Knowledge(
    title="The compiler cannot compile the program: something it does not support, or a bug of it",
    impact=ENDED,
    general=1,
    signs=(
        # XLA's codes of errors while it compiles (docs/errors of openxla/xla); memory has diagnoses of its own.
        Line(r"\bE[12]\d{3}: ?CompileTime(?!\w*(?:Oom|Allocation))"),
        Line(
            r"Mosaic failed to compile|Mosaic kernels cannot be automatically partitioned|"
            r"(?:failed|unable) to legalize operation|The MLIR operation involved|Cannot (?:lower|select)\b|"
            r"Unimplemented primitive in Pallas|Unsupported lowering|"
            r"(?:MLIR )?[Tt]ranslation rule for primitive '?\w+'? not found"
        ),
        Line(
            r"RET_CHECK failure(?! \(\S*/pjrt/)|HloVerifier|during context \[|"
            r"Seen floating point types of different precisions|"
            r"(?:XLA|HLO|Triton|kernel|TPU) compil\w+ (?:failed|failure|error)|[Cc]ompilation fail(?:ed|ure)|"
            r"Compile(?:Time)?\w*: (?:permanent|internal) error|Autotuning failed for HLO",
            unless="RESOURCE_EXHAUSTED|[Oo]ut of memory",
        ),
        Line(
            r"ptxas (?:fatal|exited with non-zero)|PTXAS error|Internal Triton PTX codegen error|"
            r"LLVM ERROR: (?:Cannot select|Do not know|[Uu]nsupported|Broken|"
            r"[Ff]ailed to (?:infer|legalize|lower|translate))"
        ),
        Line(
            r"No (?:registered implementation|implementation) for (?:\w+ ){0,2}custom call|UNIMPLEMENTED: |"
            "No FFI handler registered for|"
            r": UNIMPLEMENTED\b",
            unless=r"UNIMPLEMENTED: [a-z]+(?:_[a-z]+)+ is not|per replica|PJRT_|[Cc]lient\b|"
            r"(?:on|for|by|in|with) (?:this|the current) (?:platform|client|plugin|runtime|backend)",
        ),
        Line(
            r"(?:Xla|Jax)RuntimeError: (?:INTERNAL|UNKNOWN): [^:]{0,60}\b[Uu]nsupported (?:operand|type|shape|op|"
            r"HLO|layout)"
        ),
        Line(r"Exception while lowering|Lowering(?:Exception|Error)\b|MosaicError\b|TritonError\b|CompilationError\b"),
        Line(
            r"(?:[Uu]nable|[Ff]ailed) to (?:serialize|lower|legalize|compile|emit|codegen|link)\b.{0,60}"
            r"(?:[Mm]odule|program|computation|executable|kernel|HLO|MLIR|\bop)",
            unless="RESOURCE_EXHAUSTED|[Oo]ut of memory|cache",
        ),
        Line(r"error: '\w+\.\w+' op\b|: error: .{0,80}(?:explicitly marked illegal|not supported|unsupported)"),
        Line(
            r"\b(?:INTERNAL|UNIMPLEMENTED|INVALID_ARGUMENT|Internal|Unimplemented|Invalid argument): .{0,160}"
            r"%[\w.-]+ = \S+ [\w-]+\(.{0,300}\bmetadata=\{op_type=",
            unless="RESOURCE_EXHAUSTED|[Oo]ut of memory",
        ),
        Line(
            r"No valid engine configs|create_execution_plans|CU(?:DNN|BLAS)_STATUS_(?:NOT_SUPPORTED|BAD_PARAM)",
            unless="Profiling failure",
        ),
        Raised(frames=r"[/\\]jax/_src/compiler\.py\Z", about=_NOT_COMPILED),
        Line(
            r"Non-OK-status: \w*executable",
            followed="Failure occurr?ed when compiling",
            unless_followed="RESOURCE_EXHAUSTED|[Oo]ut of memory",
        ),
        Line(
            r"\b[Oo]perand \d+ of instruction |has a layout constraint",
            unless=r"RESOURCE_EXHAUSTED|[Rr]esource exhausted|[Oo]ut of memory",
        ),
        Line(_NOT_COMPILED, code=r"backend\.compile\(|backend_compile\w*\(|compile_and_load\("),
        Raised(
            about=rf"only (?:supported|enabled|available|implemented) (?:on|for) (?:NVIDIA )?{_ARCHITECTURES}|"
            rf"[Rr]equires? (?:a GPU with )?(?:at least )?(?:NVIDIA )?{_ARCHITECTURES}"
        ),
        Line(_OF_COMPILER, passes=False, info=True),
        Raised(
            frames=_OF_KERNELS,
            about=r"^(?:[\w.]+\.)?(?:NotImplemented|Runtime|Value|Lowering|Mosaic|Compilation|Verification|Type|"
            r"Assertion)\w*Error\b",
        ),
    ),
    narrow=_of_a_check,
    follows=("cuda_library_mismatch", "plugin_mismatch", "device_out_of_memory", "host_out_of_memory"),
    fix=(
        "Find the operation that the text names. A shape, type or option that the compiler does not support on this "
        "device has to be changed; for a bug of it, try another release, and report it with the dump of "
        "XLA_FLAGS=--xla_dump_to=DIR."
    ),
    runbook="JaxFunctionErrors",
)
