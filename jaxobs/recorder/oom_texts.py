"""Contents of the text of an out-of-memory error: stage, bytes, device, buffers. Text in, facts out; no JAX.

One family in many wordings: the runtime's (GPU, TPU and CPU, old and new), the compiler's, the allocators' warnings
and NumPy's. The exception's type and its status tell little (JAX raises some as `ValueError`, and calls some INTERNAL
errors), so only the text counts. Sizes are written `1000000256 bytes`, `2.00GiB` or `8.00M`, all by powers of 1024.

Wordings: xla/pjrt, xla/service/buffer_assignment.cc, xla/tsl/framework/bfc_allocator.cc, the pages of XLA's error codes
E0100, E0101 and E1000, and what users pasted into issues.
"""

import itertools
import re
from dataclasses import dataclass, field

from jaxobs.facts.errors import MemoryBuffer

MOST_TEXT = 200_000
"""Characters that are read: a TPU lists twenty buffers in a tenth of it."""
MOST_BUFFERS = 20
_MOST_LABEL = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class OomText:
    """Facts that a text says. Sizes in bytes; None for facts that the text lacks."""

    stage: str
    """A name from `facts.errors.OOM_STAGES`."""
    wanted: int | None = None
    """The allocation that failed; of a program that does not fit, all that it needs."""
    used: int | None = None
    """Bytes that the whole would use, if the compiler counted them."""
    free: int | None = None
    limit: int | None = None
    """Bytes that could be used at most."""
    exceeded: int | None = None
    total: int | None = None
    """The device's whole memory."""
    ordinal: int | None = None
    """Which of this process's devices, where told."""
    space: str | None = None
    """Memory space, as the text names it: `hbm`, `0x0x1_HBM0`."""
    program: str | None = None
    """The program that ran, without `jit_` or `jit()`."""
    sections: dict[str, int] = field(default_factory=dict)
    """Parts of the failing program: `argument`, `constant`, `output`, `temp`, `total`, `fragmentation`."""
    buffers: tuple[MemoryBuffer, ...] = ()
    """The largest buffers, as they are listed."""
    harmless: bool = False
    """Only an allocator's warning that says itself that it is not a failure."""


_SIZE = r"(?P<{0}>\d[\d,]*(?:\.\d*)?)[ \t]*(?P<{0}_unit>(?:[KMGTPE](?:i?B)?|B|bytes?)\b)?"


def _size(name: str) -> str:
    return _SIZE.format(name)


_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def size(number: str, unit: str | None) -> int:
    """Bytes of a size as XLA prints it: `2.00` `GiB`, `8.00` `M`, `1000000256` `bytes`."""
    factor: int = 1024 ** _UNITS.get((unit or "B")[0].upper(), 0)
    return round(float(number.replace(",", "")) * factor)


def human(count: float) -> str:
    """Bytes as a person reads them, by powers of 1024: `512 B`, `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(count) < 1024 or unit == "PiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:,.2f} {unit}" if count < 10 else f"{count:,.1f} {unit}"


_SIGNS = re.compile(
    r"out of memory|OUT_OF_MEMORY|OutOfMemory|Error allocating device buffer|Attempting to (?:allocate|reserve)"
    r"|failed to allocate (?:request for )?\d|unable to allocate \d|bad_alloc|CompileTimeHbmOom|exceeds available HBM"
    r"|Runtime(?:Buffer|Program)AllocationFailure|SparseCore Hbm usage|pre-allocating too much device memory"
    r"|exceeds the legitimate user allocatable offset|No viable logical replica count",
    re.IGNORECASE,
)
_STATUS = re.compile(r"RESOURCE_EXHAUSTED|resource exhausted", re.IGNORECASE)
_OF_MEMORY = re.compile(r"allocat|\bhbm\b|\bmemory\b", re.IGNORECASE)
"""Words that must come with the status, which is gRPC's as well, for messages and quotas."""
_HARMLESS = re.compile(r"The caller indicates that this is not a failure", re.IGNORECASE)

_COMPILE = re.compile(
    r"compile permanent error|CompileTimeHbmOom|E1000|Compilation failure|exceeds available HBM"
    r"|SparseCore Hbm usage|E300[01]|legitimate user allocatable|No viable logical replica count"
    r"|Ran out of memory in memory space|new constant",
    re.IGNORECASE,
)
_LOAD = re.compile(r"Error loading program|RuntimeProgramAllocationFailure|E0101|Attempting to reserve", re.IGNORECASE)
_START = re.compile(
    r"failed to initialize|pre-allocating too much|PrimaryCtxRetain|Unable to initialize backend", re.IGNORECASE
)
_RUN = re.compile(
    r"BufferAssignment|Execution of replica|executable_name|preallocated-temp|while running", re.IGNORECASE
)

_FIGURES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"Used {_size('used')} of {_size('limit')} \w+",
        rf"Exceeded \w+ capacity by {_size('exceeded')}",
        rf"Attempting to (?:allocate|reserve) {_size('wanted')}",
        rf"There (?:are|is) {_size('free')} free",
        rf"(?:trying|tried) to allocate {_size('wanted')}",
        rf"failed to allocate (?:request for )?{_size('wanted')}",
        rf"out of memory allocating {_size('wanted')}",
        rf"unable to allocate {_size('wanted')} for an array",
        rf"Free memory/Total memory: {_size('free')}/{_size('total')}",
        rf"exceeding available bytes: {_size('limit')}",
        rf"total memory required for HLO temporaries \({_size('wanted')}\) exceeds available HBM \({_size('limit')}\)",
    )
)
_BOTH_CORES = re.compile(
    rf"TensorCore Hbm usage: {_size('tensor')}, SparseCore Hbm usage:? {_size('sparse')}", re.IGNORECASE
)
_ORDINAL = (
    re.compile(r"device ordinal (\d+)", re.IGNORECASE),
    re.compile(r"\bGPU_(\d+)_\w+"),
    re.compile(r"gpu_async_(\d+)"),
)
_SPACE = re.compile(r"memory space (\w+)|\((\w+_HBM\d*)\)", re.IGNORECASE)
_PROGRAM = re.compile(
    r"loading program '(?:jit|pmap)?_?\(?([^')]+)|executable_name='(?:jit|pmap)?_?\(?([^')]+)"
    r'|op_name="(?:jit|pmap)\(([^)"]+)\)'
)
_SECTIONS = {
    "argument": "parameter allocation",
    "constant": "constant allocation",
    "output": "maybe_live_out allocation",
    "temp": "preallocated temp allocation",
    "total": "total allocation",
    "fragmentation": "total fragmentation",
}
_TPU_SECTIONS = {"temp": "HLO temp", "argument": "arguments", "program": "program", "reserved": "reserved"}


def parse(text: str) -> OomText | None:
    """Returns the memory facts of an error's text; None if it is not of this family."""
    text = text[:MOST_TEXT]
    if not is_out_of_memory(text):
        return None
    found = _figures(text)
    if (cores := _BOTH_CORES.search(text)) is not None:
        found["used"] = _read(cores, "tensor") + _read(cores, "sparse")
    if "used" in found and "limit" in found and "exceeded" not in found and found["used"] > found["limit"]:
        found["exceeded"] = found["used"] - found["limit"]
    if "wanted" not in found and "used" in found:
        found["wanted"] = found["used"]
    return OomText(
        stage=_stage(text),
        wanted=found.get("wanted"), used=found.get("used"), free=found.get("free"), limit=found.get("limit"),
        exceeded=found.get("exceeded"), total=found.get("total"),
        ordinal=next((int(seen[1]) for pattern in _ORDINAL if (seen := pattern.search(text))), None),
        space=_first_group(_SPACE.search(text)), program=_first_group(_PROGRAM.search(text)),
        sections=_sections(text), buffers=_buffers(text), harmless=_is_harmless(text),
    )  # fmt: skip


def is_out_of_memory(text: str) -> bool:
    """Returns whether a text is of the family at all."""
    text = text[:MOST_TEXT]
    if _SIGNS.search(text) is not None:
        return True
    return _STATUS.search(text) is not None and _OF_MEMORY.search(text) is not None


def _is_harmless(text: str) -> bool:
    """Whether nothing but the allocator's own warning speaks: each line with a sign of trouble is one of its."""
    if _HARMLESS.search(text) is None:
        return False
    lines = [line for line in text.splitlines() if _SIGNS.search(line)]
    return all(_HARMLESS.search(line) for line in lines)


def _stage(text: str) -> str:
    if _START.search(text):
        return "start"
    if _LOAD.search(text):
        return "load"
    if _COMPILE.search(text):
        return "compile"
    return "run" if _RUN.search(text) else "allocate"


def _figures(text: str) -> dict[str, int]:
    """Each figure as the first line with it has it."""
    found: dict[str, int] = {}
    for pattern in _FIGURES:
        seen = pattern.search(text)
        for name in () if seen is None else pattern.groupindex:
            if seen is not None and not name.endswith("_unit"):
                found.setdefault(name, _read(seen, name))
    return found


def _read(match: re.Match[str], name: str) -> int:
    return size(match[name], match[f"{name}_unit"])


def _first_group(match: re.Match[str] | None) -> str | None:
    return None if match is None else next((group for group in match.groups() if group), None)


def _sections(text: str) -> dict[str, int]:
    """Returns the parts of the program: the GPU's `BufferAssignment stats`, the TPU's `Total hbm usage`."""
    found = {}
    named = _SECTIONS if "BufferAssignment" in text else _TPU_SECTIONS if "hbm usage >=" in text.lower() else {}
    for section, words in named.items():
        separator = r":\s*" if named is _SECTIONS else r"\s+"
        seen = re.search(rf"^\s*{words}{separator}{_size('size')}", text, re.MULTILINE)
        if seen is not None:
            found[section] = _read(seen, "size")
    return found


_ENTRY = re.compile(r"^\s*(?:Buffer \d+:|\d+\\?[.)] (?=Size:))", re.MULTILINE)
_LINE = {
    "size": re.compile(rf"^\s*(?:\d+\\?[.)] )?Size: {_size('size')}", re.MULTILINE),
    "unpadded": re.compile(rf"^\s*Unpadded size: {_size('size')}", re.MULTILINE),
    "padding": re.compile(rf"^\s*Extra memory due to padding: {_size('size')}", re.MULTILINE),
}
_OPERATOR = re.compile(r"^\s*Operator: (.+)$", re.MULTILINE)
_OP_NAME = re.compile(r'op_name="([^"]+)"')
_LABEL = re.compile(r"^\s*XLA label: (.+)$", re.MULTILINE | re.IGNORECASE)
_SHAPE = re.compile(r"^\s*(?:Shape|Entry Parameter Subshape): (.+)$", re.MULTILINE)
_ALLOCATION = re.compile(r"^\s*Allocation type: (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"^\s*Entry Parameter Subshape:", re.MULTILINE)


def _buffers(text: str) -> tuple[MemoryBuffer, ...]:
    """The buffers that a GPU lists as `Peak buffers` and a TPU as its largest allocations, in the text's order."""
    starts = [entry.start() for entry in _ENTRY.finditer(text)]
    parts = (text[start:end] for start, end in itertools.pairwise([*starts, len(text)]))
    found = (_buffer(part) for part in parts)
    return tuple([each for each in found if each is not None][:MOST_BUFFERS])


def _buffer(part: str) -> MemoryBuffer | None:
    if (seen := _LINE["size"].search(part)) is None:
        return None
    operator, label = _OPERATOR.search(part), _LABEL.search(part)
    name = None if operator is None else _OP_NAME.search(operator[1])
    told = name[1] if name is not None else operator[1] if operator is not None else label[1] if label else None
    shape, allocation = _SHAPE.search(part), _ALLOCATION.search(part)
    unpadded, padding = _LINE["unpadded"].search(part), _LINE["padding"].search(part)
    kind = allocation[1].strip() if allocation is not None else "parameter" if _PARAMETER.search(part) else None
    return MemoryBuffer(
        size=_read(seen, "size"),
        operator=told[:_MOST_LABEL].strip() if told is not None else None,
        shape=shape[1].strip()[:_MOST_LABEL] if shape is not None else None,
        unpadded=_read(unpadded, "size") if unpadded is not None else None,
        padding=_read(padding, "size") if padding is not None else None,
        allocation=kind,
    )
