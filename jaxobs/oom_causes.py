"""Why memory ran out: each rule looks at one report and says what it sees, by which figures, and what to do.

Facts in, facts out. A rule speaks only where figures show it; where none does, the answer is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from jaxobs.facts import DeviceMemory, OomCause, OutOfMemory
from jaxobs.oom_texts import human

MOST_CAUSES = 4
ABSURD_FACTOR = 4
"""A program may want somewhat more than there is; so many times as much is a mistake in a shape."""
LEAK_COUNT = 8
LEAK_SHARE = 0.4
LARGE_SHARE = 0.3
MANY_EXECUTABLES = 50
FOREIGN_LIMIT = 0.6
"""JAX's allocator takes three quarters of a free device; a limit below this share was meant, or others were first."""


@dataclass(frozen=True, slots=True)
class Case:
    """A report in the figures that the rules compare; None for what nobody told."""

    event: OutOfMemory
    device: DeviceMemory | None
    groups: list[Group]
    wanted: int | None
    in_use: int | None
    limit: int | None
    total: int | None
    free: int | None
    temp: int | None
    live: int | None
    executables: int
    growing: bool
    on_host: bool
    """Whether the device's memory is the host's: the CPU backend."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of live arrays as the report tells it."""

    shape: str
    """`float32[1024,1024]`."""
    sharding: str
    count: int
    bytes: int
    """On the device that holds the most of it."""
    share: float
    devices: int
    replicated: bool
    """Whether each of several devices holds the whole of it."""


def groups(event: OutOfMemory) -> list[Group]:
    """The groups of live arrays of a report."""
    return [
        Group(
            shape=f"{each.dtype}[{','.join(map(str, each.shape))}]", sharding=each.sharding, count=each.count,
            bytes=max(each.bytes_per_device.values(), default=0), share=share, devices=len(each.bytes_per_device),
            replicated=len(each.bytes_per_device) > 1 and _WHOLE.match(each.sharding) is not None,
        )
        for each, share in zip(event.arrays, event.array_shares, strict=True)
    ]  # fmt: skip


_WHOLE = re.compile(r"P\((?:None(?:, None)*,?)?\) over")


def diagnose(event: OutOfMemory, *, executables: int = 0, growing: bool = False) -> tuple[OomCause, ...]:
    """The causes that the report's figures support, the likeliest first; `unknown` where they support none.

    Args:
      executables: programs that the process has compiled so far.
      growing: whether the bytes of live arrays grew from sample to sample until the end.
    """
    case = _case(event, executables, growing)
    found = [cause for rule in RULES if (cause := rule(case)) is not None]
    if any(each.cause in ("leaked_arrays", "replicated_arrays") for each in found):
        found = [each for each in found if each.cause != "live_arrays"]  # the same arrays, told more closely
    return tuple(found[:MOST_CAUSES]) or (_unknown(case),)


def _case(event: OutOfMemory, executables: int, growing: bool) -> Case:
    device = _device(event)
    on_host = event.stage != "start" and (device is None or device.device.startswith("cpu"))
    in_use, limit = (device.in_use_bytes, device.limit_bytes) if device is not None else (None, None)
    limit = event.limit_bytes or limit
    total = event.total_bytes
    if on_host and limit is None:
        in_use, total = event.host.get("resident"), event.host.get("total")
        limit = event.host.get("limit") or total
    free = event.free_bytes
    if free is None and limit is not None and in_use is not None:
        free = max(0, limit - in_use)
    temp = event.sections.get("temp") or event.program.get("temp")
    live = device.live_array_bytes if device is not None else None
    return Case(
        event=event, device=device, groups=groups(event), wanted=event.wanted_bytes, in_use=in_use, limit=limit,
        total=total, free=free, temp=temp, live=live, executables=executables, growing=growing, on_host=on_host,
    )  # fmt: skip


def _device(event: OutOfMemory) -> DeviceMemory | None:
    """The device that is out of memory: the one that is told, else the fullest."""
    told = [each for each in event.devices if each.device == event.device]
    if told:
        return told[0]
    return max(event.devices, key=lambda each: (each.in_use_bytes or 0, each.live_array_bytes or 0), default=None)


# ------------------------------------------------------------------------------------------------------- rules


def _absurd_request(case: Case) -> OomCause | None:
    most = case.total or case.limit
    if case.wanted is None or most is None or case.wanted <= most:
        return None
    if case.event.stage in ("compile", "load") or (case.temp or case.event.buffers):
        if case.wanted < ABSURD_FACTOR * most:
            return None
    elif case.event.stage == "run" and case.wanted < ABSURD_FACTOR * most:
        return None
    times = case.wanted / most
    evidence = [f"Wanted {human(case.wanted)}; the {_place(case)} has {human(most)} in all, {times:,.1f} times less."]
    return OomCause(
        cause="absurd_request",
        summary=f"One request was for {human(case.wanted)}, more than the {_place(case)} has: a mistaken shape, "
        "not a lack of memory.",
        advice="Freeing memory will not help. Look at the shapes of what is made at "
        f"{case.event.call_site or 'the call site'}: a broadcast of two long axes (x[:, None] op y[None, :]), a "
        "one-hot over a large vocabulary, a size in the wrong unit. Print `jax.eval_shape(fun, *args)`.",
        evidence=(*evidence, *_buffers(case), *_signature(case)),
    )


def _cannot_start(case: Case) -> OomCause | None:
    if case.event.stage != "start":
        return None
    return OomCause(
        cause="other_process",
        summary="JAX could not take the device: its memory is held by another process.",
        advice="Find it with `nvidia-smi` and end it, or share: XLA_PYTHON_CLIENT_PREALLOCATE=false, or "
        "XLA_CLIENT_MEM_FRACTION below 1 over the number of processes. Hide the GPUs from TensorFlow: "
        "tf.config.set_visible_devices([], 'GPU').",
        evidence=("The error came while the backend was being initialised.", *_flags(case)),
    )


def _program_too_large(case: Case) -> OomCause | None:
    event, need = case.event, case.event.used_bytes if case.event.stage == "compile" else case.temp
    room = case.limit if event.stage == "compile" else case.free
    if event.stage == "compile" and need is None:
        need = case.wanted
    if need is None or room is None or need <= room:
        return None
    if event.stage != "compile" and case.limit is not None and need < max(case.limit / 2, case.live or 0):
        return None  # it would have fitted beside less
    what = "The program needs" if event.stage == "compile" else "The program's temporaries need"
    evidence = [f"{what} {human(need)}; {human(room)} is {'there' if event.stage == 'compile' else 'free'}."]
    for sizes, source in ((event.sections, "the error"), (event.program, "the compiler")):
        if sizes:
            evidence.append(f"By {source}: {', '.join(f'{name} {human(size)}' for name, size in sizes.items())}.")
    return OomCause(
        cause="program_too_large",
        summary=f"{what} {human(need)}, {human(need - room)} more than "
        f"{'the device has' if event.stage == 'compile' else 'is free'}.",
        advice=_shrink(case, need),
        evidence=(*evidence, *_buffers(case), *_signature(case)),
    )


def _shrink(case: Case, need: int) -> str:
    event = case.event
    advice = [
        "Make the activations smaller: jax.checkpoint around the layers, a smaller batch with accumulated gradients, "
        "or shard the batch and the longest axis over a mesh."
    ]
    sizes = event.program or event.sections
    arguments = sizes.get("argument", 0)
    if arguments and sizes.get("output", 0) >= arguments / 2 and not sizes.get("alias"):
        advice.append(
            f"Nothing is donated: donate_argnums for the state that is returned saves up to "
            f"{human(min(arguments, sizes['output']))}."
        )
    padding = sum(each.padding or 0 for each in event.buffers)
    if padding > need / 5:
        advice.append(
            f"{human(padding)} of the listed buffers is padding: let the last two axes be multiples of 8 and 128, or "
            "move a short axis away from the end."
        )
    return " ".join(advice)


def _leaked_arrays(case: Case) -> OomCause | None:
    if not case.groups:
        return None
    first, *rest = case.groups
    others = [each.count for each in rest if each.share > 0.02]
    stands_out = first.count >= 3 * max(others, default=0)
    if first.count < LEAK_COUNT or first.share < LEAK_SHARE or not (case.growing or stands_out):
        return None
    if case.wanted is not None and case.wanted > (case.limit or case.wanted):
        return None
    evidence = [_group(first)]
    if case.growing:
        evidence.append("The bytes of live arrays grew from sample to sample until the end.")
    return OomCause(
        cause="leaked_arrays",
        summary=f"{first.count:,} arrays alike, {first.shape}, hold {human(first.bytes)}: it looks like a list, "
        "dictionary or history that keeps one of each step.",
        advice="Find what they are appended to (losses, metrics, outputs, states kept for later) and keep "
        "`float(x)` or `jax.device_get(x)` of what is needed, or delete the rest. "
        "If they are the layers of a model, this is its size: shard it.",
        evidence=tuple(evidence),
    )


def _replicated_arrays(case: Case) -> OomCause | None:
    whole = [each for each in case.groups if each.replicated]
    held, share = sum(each.bytes for each in whole), sum(each.share for each in whole)
    if share < LARGE_SHARE or not _live_matters(case):
        return None
    devices = max(each.devices for each in whole)
    saved = sum(each.bytes - each.bytes // each.devices for each in whole)
    return OomCause(
        cause="replicated_arrays",
        summary=f"Arrays of {human(held)} lie whole on each of {devices} devices; sharded they would take "
        f"{human(held - saved)} on each.",
        advice="Shard them over the mesh: jax.device_put(x, NamedSharding(mesh, PartitionSpec('axis', ...))), or "
        "out_shardings of the function that makes them; parameters and optimizer state as in FSDP.",
        evidence=tuple(_group(each) for each in whole[:3]),
    )


def _fragmentation(case: Case) -> OomCause | None:
    block = case.device.largest_free_block_bytes if case.device is not None else None
    if case.wanted is None or case.free is None or case.free < case.wanted or case.on_host:
        return None
    if (block is None and case.event.free_bytes is None) or (block is not None and block >= case.wanted):
        return None
    largest = f", but the largest free piece is {human(block)}" if block is not None else ", but not in one piece"
    return OomCause(
        cause="fragmentation",
        summary=f"{human(case.free)} is free, more than the {human(case.wanted)} wanted{largest}.",
        advice="Make the large arrays first and keep them; donate the state so that it is replaced in place; avoid "
        "many sizes. On a GPU, TF_GPU_ALLOCATOR=cuda_malloc_async moves memory together; keep preallocation on.",
        evidence=(f"Free {human(case.free)}, wanted {human(case.wanted)}{largest}.", *_flags(case)),
    )


def _other_process(case: Case) -> OomCause | None:
    if case.on_host or case.event.stage in ("start", "compile") or case.limit is None:
        return None
    evidence = []
    if case.total is not None and case.limit < FOREIGN_LIMIT * case.total and "FRACTION" not in str(case.event.flags):
        evidence.append(f"JAX may use {human(case.limit)} of the device's {human(case.total)}.")
    off = str(case.event.flags.get("XLA_PYTHON_CLIENT_PREALLOCATE", "")).lower() in ("false", "0")
    if off and case.wanted is not None and case.in_use is not None and case.in_use + case.wanted <= case.limit:
        evidence.append(
            f"In use {human(case.in_use)} and wanted {human(case.wanted)} stay below JAX's limit of "
            f"{human(case.limit)}, and nothing was preallocated: the device itself had no more to give."
        )
    if not evidence:
        return None
    return OomCause(
        cause="other_process",
        summary="Another process probably holds part of this device's memory.",
        advice="See who with `nvidia-smi`. Give each process its share by XLA_CLIENT_MEM_FRACTION, or one device each "
        "by CUDA_VISIBLE_DEVICES.",
        evidence=(*evidence, *_flags(case)),
    )


def _executables(case: Case) -> OomCause | None:
    if case.on_host or case.in_use is None or case.live is None or not case.limit:
        return None
    gap = case.in_use - case.live
    if case.executables < MANY_EXECUTABLES or gap < LARGE_SHARE * case.limit:
        return None
    return OomCause(
        cause="executables",
        summary=f"{human(gap)} in use belongs to no live array, and {case.executables:,} programs were compiled: "
        "each keeps memory on the device.",
        advice="Stop the recompilations first (`jaxobs explain`, or the findings in /api/v1/events?kind=finding): "
        "bucket the shapes. jax.clear_caches() frees what is there.",
        evidence=(f"In use {human(case.in_use)}, live arrays {human(case.live)}.",),
    )


def _host_limit(case: Case) -> OomCause | None:
    host = case.event.host
    limit, total = host.get("limit"), host.get("total")
    if not case.on_host or limit is None or total is None or limit >= total:
        return None
    if case.wanted is not None and case.wanted > total:
        return None
    return OomCause(
        cause="host_limit",
        summary=f"This process may use {human(limit)} of the host's {human(total)}.",
        advice="Raise the limit of the container (resources.limits.memory) or of the process (ulimit -v), or use "
        "less: see the live arrays below.",
        evidence=(f"Resident {human(host.get('resident', 0))}, limit {human(limit)}.",),
    )


def _live_arrays(case: Case) -> OomCause | None:
    if not case.groups or not _live_matters(case):
        return None
    held = case.live or sum(each.bytes for each in case.groups)
    state = case.event.program.get("argument", 0) + case.event.program.get("output", 0)
    evidence = [_group(each) for each in case.groups[:3]]
    if state:
        evidence.append(f"The program's own arguments and outputs are {human(state)} of it.")
    return OomCause(
        cause="live_arrays",
        summary=f"Live arrays hold {human(held)}{'' if case.limit is None else f' of {human(case.limit)}'}.",
        advice="Delete what is no longer needed, donate what a step replaces (donate_argnums), keep copies on the "
        "host, use bfloat16 where it suffices, or shard over more devices.",
        evidence=tuple(evidence),
    )


def _unknown(case: Case) -> OomCause:
    return OomCause(
        cause="unknown",
        summary="The figures at hand do not show why.",
        advice="Compare the wanted bytes with the devices and the live arrays in this report. For the program's own "
        "needs: `jitted.lower(*args).compile().memory_analysis()`.",
        evidence=tuple(each for each in (_wanted(case),) if each),
    )


RULES: tuple[Callable[[Case], OomCause | None], ...] = (
    _cannot_start,
    _absurd_request,
    _program_too_large,
    _leaked_arrays,
    _replicated_arrays,
    _fragmentation,
    _other_process,
    _executables,
    _host_limit,
    _live_arrays,
)
"""In the order of how sure they are when they speak."""


# --------------------------------------------------------------------------------------------------- sentences


def _live_matters(case: Case) -> bool:
    """Whether live arrays fill a good part of what there is, and the request was none that never could be met."""
    most = case.limit or case.total
    if case.wanted is not None and most is not None and case.wanted > most:
        return False
    return case.live is not None and (most is None or case.live >= LARGE_SHARE * most)


def _place(case: Case) -> str:
    return "host" if case.on_host else "device"


def _wanted(case: Case) -> str:
    return "" if case.wanted is None else f"Wanted {human(case.wanted)}."


def _group(group: Group) -> str:
    where = f" on each of {group.devices} devices" if group.devices > 1 else ""
    return (
        f"{group.count:,} x {group.shape} ({group.sharding}): {human(group.bytes)}{where}, "
        f"{group.share:.0%} of the live arrays."
    )


def _buffers(case: Case) -> list[str]:
    return [
        f"Buffer of {human(each.size)}: {each.shape or 'shape not told'}, {each.operator or each.allocation or '?'}."
        for each in case.event.buffers[:3]
    ]


def _signature(case: Case) -> list[str]:
    return [f"Called with {case.event.signature}."] if case.event.signature else []


def _flags(case: Case) -> list[str]:
    return [f"{name}={value}" for name, value in case.event.flags.items() if name != "XLA_FLAGS"]
