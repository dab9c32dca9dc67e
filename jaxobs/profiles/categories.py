"""The category of an operation, one of `facts.profiles.CATEGORIES`: by its instruction, else by its name."""

import re
from collections.abc import Iterator

from jaxobs.internals.xplane.modules import Instruction, Module
from jaxobs.profiles import costs

_COLLECTIVES = frozenset({
    "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
    "reduce-scatter",
})  # fmt: skip
_TRANSFERS = frozenset({"infeed", "outfeed", "send", "recv"})
_TRANSFER_CALL = re.compile(r"MoveToHost|MoveToDevice|annotate_device_placement|HostExecute", re.IGNORECASE)
_NOTHING = frozenset({"partition-id", "replica-id"})
_MOST_DEEP = 8
_SUFFIX = re.compile(r"[._]?(clone|remat\d*|sunk|s|\d+)$")

_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (category, re.compile(pattern, re.IGNORECASE))
    for category, pattern in (
        (
            "collective",
            r"all-?_?reduce|all-?_?gather|reduce-?_?scatter|all-?to-?all|collective|^nccl|_nccl|ncclDevKernel|nvshmem",
        ),
        ("transfer", r"memcpy ?(h2d|d2h|htod|dtoh|p2p)|infeed|outfeed|^send|^recv|hosttodevice|devicetohost"),
        ("copy", r"memcpy ?d2d|memcpy ?dtod|^memset|^copy|^transpose|^bitcast_copy|^slice|^dynamic-(update-)?slice"),
        ("convolution", r"^conv(?!ert)|cudnn.*conv|_conv|dgrad|wgrad|fprop|implicit_convolve|winograd"),
        ("matmul", r"gemm|matmul|^dot|_dot|cutlass.*(?<!conv)_s\d+|^cublas|ampere_.*gemm|xmma|nvjet|__matmul"),
        ("reduce", r"reduce|softmax|^cub::"),
        ("control", r"^while|^call|^cond|^conditional"),
        ("custom", r"^custom|^tpu_custom_call|triton|mosaic|flash|attention"),
        (
            "elementwise",
            r"^(wrapped_)?(add|subtract|multiply|divide|exponential|tanh|maximum|minimum|select|compare|convert|"
            r"broadcast|iota|negate|sqrt|rsqrt|log|logistic|power|and|or|xor|not)|loop_|fusion",
        ),
    )
)
_TPU: tuple[tuple[str, str], ...] = (
    ("convolution", "convolution"), ("all-", "collective"), ("collective", "collective"),
    ("reduce-scatter", "collective"), ("custom", "custom"), ("data formatting", "copy"), ("copy", "copy"),
    ("infeed", "transfer"), ("outfeed", "transfer"), ("send", "transfer"), ("recv", "transfer"),
    ("host", "transfer"), ("while", "control"), ("conditional", "control"), ("call", "control"),
    ("reduce", "reduce"), ("loop fusion", "elementwise"), ("non-fusion elementwise", "elementwise"),
    ("broadcast", "elementwise"), ("iota", "elementwise"),
)  # fmt: skip


def of_instruction(instruction: Instruction, module: Module, deep: int = 0) -> str:
    """Returns the category of an instruction; a fusion has that of the heaviest one in it."""
    opcode = instruction.opcode
    plain = opcode.removesuffix("-start").removesuffix("-done")
    if plain in _COLLECTIVES:
        return "collective"
    if plain in _TRANSFERS:
        return "transfer"
    if opcode in ("dot", "ragged-dot"):
        return "convolution" if instruction.scope.endswith("conv_general_dilated") else "matmul"
    if opcode == "convolution":
        # TPUs multiply matrices by convolutions of a single place.
        return "matmul" if instruction.scope.endswith("dot_general") or not instruction.windows else "convolution"
    if opcode == "custom-call":
        return _of_call(instruction)
    if opcode == "fusion" or opcode.startswith("async"):
        inner = set(_inner(instruction, module, deep))
        return next((each for each in _HEAVIEST if each in inner), "other" if opcode == "fusion" else "control")
    if opcode in costs.CONTROL:
        return "control"
    if opcode in costs.REDUCTIONS:
        return "reduce"
    if opcode in costs.MOVES:
        return "copy"
    if opcode in costs.ARITHMETIC or opcode in ("broadcast", "iota"):
        return "elementwise"
    return "other"


_HEAVIEST = ("convolution", "matmul", "collective", "custom", "reduce", "transfer", "other", "elementwise", "copy")


def _inner(instruction: Instruction, module: Module, deep: int) -> Iterator[str]:
    if deep > _MOST_DEEP:
        return
    large = any(array.elements > 1 for array in instruction.arrays)
    for number in instruction.called:
        inner = module.computations.get(number)
        for step in inner.instructions.values() if inner is not None else ():
            if step.opcode in costs.FREE or step.opcode in _NOTHING:
                continue
            if large and step.opcode in costs.ARITHMETIC and all(array.elements == 1 for array in step.arrays):
                continue  # where a slice begins
            if step.opcode == "broadcast":  # of a scalar that an operation takes: nothing by itself
                if len(inner.instructions if inner is not None else ()) <= _FEW:
                    yield "elementwise"
                continue
            yield of_instruction(step, module, deep + 1)


_FEW = 3
"""Instructions of a computation that only fills an array."""


def _of_call(instruction: Instruction) -> str:
    if _TRANSFER_CALL.search(instruction.target):
        return "transfer"
    if costs.MATMUL_CALL.search(instruction.target):
        return "matmul"
    if costs.CONVOLUTION_CALL.search(instruction.target):
        return "convolution"
    if re.search(r"topk|sort", instruction.target, re.IGNORECASE):
        return "other"
    return "custom"


def of_hint(hint: str, scope: str | None) -> str | None:
    """Returns the category that a TPU's own name (`hlo_category`) stands for; None where it stands for none."""
    for text, category in _TPU:
        if hint.startswith(text):
            if category == "convolution" and scope is not None and "dot_general" in scope:
                return "matmul"
            return category
    return None


def of_name(name: str) -> str:
    """Returns the category that a name suggests, of an operation whose program the trace lacks, or of a kernel."""
    short = name
    while (cut := _SUFFIX.sub("", short)) != short:
        short = cut
    return next((category for category, pattern in _NAMES if pattern.search(short or name)), "other")
