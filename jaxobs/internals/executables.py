"""Compiled programs: the memory and the operations that the compiler says they take."""

from collections.abc import Iterator, Mapping
from typing import Any

from jaxobs.internals.backends import UNTOLD

MOST_COMPUTATIONS = 20_000
"""About 15 MB of text."""

_MOST_SUMMED = 1000
_SECTIONS = {
    "argument": "argument_size_in_bytes",
    "output": "output_size_in_bytes",
    "temp": "temp_size_in_bytes",
    "alias": "alias_size_in_bytes",
    "code": "generated_code_size_in_bytes",
}


def memory(executable: Any) -> dict[str, int]:
    """Bytes on one device by section; empty where the backend does not tell."""
    try:
        stats = executable.get_compiled_memory_stats()
    except UNTOLD:
        return {}
    found = {section: getattr(stats, name, None) for section, name in _SECTIONS.items()}
    return {section: int(size) for section, size in found.items() if size is not None}


def cost(executable: Any) -> tuple[float | None, float | None]:
    """Floating-point operations of one execution, and bytes that it reads and writes; None what is not reported."""
    try:
        costs = executable.cost_analysis()
    except UNTOLD:
        return None, None
    first = costs if isinstance(costs, Mapping) else (costs or [{}])[0]
    accessed = first.get("bytes accessed")
    flops = first.get("flops", None if accessed is None else 0.0)  # XLA leaves out what is 0
    return (
        None if flops is None or flops < 0 else float(flops),
        None if accessed is None or accessed < 0 else float(accessed),
    )


def devices(executable: Any) -> tuple[Any, ...]:
    """The devices of this process that it was loaded on; empty where that is out of sight."""
    try:
        return tuple(executable.local_devices())
    except UNTOLD:
        return ()


def loaded(client: Any) -> tuple[int, dict[Any, int] | None]:
    """How many executables a backend has, and the bytes of their code on each device of this process.

    The bytes take 5 µs for each executable: of more than 1,000 they are not asked for, and None.
    """
    executables = client.live_executables()
    if len(executables) > _MOST_SUMMED:
        return len(executables), None
    code: dict[Any, int] = {}
    for executable in executables:
        try:
            size = executable.size_of_generated_code_in_bytes()
        except UNTOLD:
            continue
        if size > 0:
            for device in devices(executable):
                code[device] = code.get(device, 0) + size
    return len(executables), code


def still_loaded(client: Any, number: int) -> Any:
    """The executable whose `id` this is, if the backend still has it; None if it is gone.

    Executables cannot be referred to weakly. JAX keeps one Python object for each, so its number finds it again.
    """
    return next((each for each in client.live_executables() if id(each) == number), None)


def optimised(executable: Any) -> Iterator[str]:
    """The text of the optimised program, module by module. JAX writes it without holding the interpreter, 100 MB/s.

    Nothing of a program of more than `MOST_COMPUTATIONS`, and none where the backend does not tell.
    """
    try:
        modules = executable.hlo_modules()
        if sum(len(module.computations()) for module in modules) <= MOST_COMPUTATIONS:
            yield from (module.to_string() for module in modules)
    except UNTOLD:
        return
