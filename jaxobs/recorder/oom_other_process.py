"""Memory that another process holds: by the driver's own count where it says, else as JAX's figures betray it.

JAX's allocator may take a share of the whole device, whoever else is there (`XLA_CLIENT_MEM_FRACTION`, three quarters
unless set), and finds out only when the device has no more to give. What others hold beyond that share takes nothing
from us, and is not blamed.
"""

from collections.abc import Mapping

from jaxobs.facts.accelerators import AcceleratorProcess, AcceleratorState
from jaxobs.facts.errors import OomCause
from jaxobs.recorder.oom_case import Case, flag_lines
from jaxobs.recorder.oom_texts import human

FOREIGN_LIMIT = 0.6
"""JAX's allocator takes three quarters of a free device; a limit below this share was meant, or others were first."""
LEAST_SHARE = 0.1
"""Share of the device: contexts and libraries of a process that computes nothing take a few hundred MiB."""
LEAST_BYTES = 2 * 2**30
"""Bytes that our own context, kernels and libraries may take next to the allocator."""
MOST_AGE = 60.0
"""Seconds: an older sample of the driver's says nothing of this moment."""
_PREALLOCATED = (0.70, 0.80)
"""Shares of the device that look like JAX's own preallocation of three quarters."""
_MOST_NAMED = 4

_SHARE = (
    "To share the device, give each process its part with XLA_CLIENT_MEM_FRACTION, or one device "
    "each with CUDA_VISIBLE_DEVICES"
)


def cannot_start(case: Case) -> OomCause | None:
    """JAX could not even take the device."""
    if case.event.stage != "start":
        return None
    others = [] if case.accelerator is None else _others(case.accelerator)
    return OomCause(
        cause="other_process",
        summary="JAX could not acquire the device: another process holds its memory.",
        advice="Find it with `nvidia-smi` and end it, or share: XLA_PYTHON_CLIENT_PREALLOCATE=false, or "
        "XLA_CLIENT_MEM_FRACTION below 1 over the number of processes. Hide the GPUs from TensorFlow: "
        "tf.config.set_visible_devices([], 'GPU').",
        evidence=(
            "The error occurred while the backend was being initialized.",
            *(_named(each, case.accelerator) for each in others[:_MOST_NAMED]),
            *flag_lines(case),
        ),
    )


def seen_by_the_driver(case: Case) -> OomCause | None:
    """The driver counts memory on the device that is not ours, and it cuts into what JAX's allocator may take."""
    seen, event = case.accelerator, case.event
    if case.on_host or seen is None or event.stage in ("start", "compile") or event.time - seen.time > MOST_AGE:
        return None
    total = seen.memory_total_bytes
    if total is None or (case.wanted is not None and case.wanted > (case.limit or total)):
        return None
    others, used, ours = _others(seen), seen.memory_used_bytes or 0, _our_bytes(case, seen)
    foreign = sum(each.bytes or 0 for each in others) or max(0, used - ours)
    if foreign < max(LEAST_SHARE * total, 0 if others else LEAST_BYTES):
        return None
    if case.limit is not None and case.limit + foreign <= total:
        return None
    place = f"{human(foreign)} of {seen.device}'s {human(total)}"
    evidence = [_named(each, seen) for each in others[:_MOST_NAMED]]
    if not others:
        ours_at_most = f"at most {human(ours)} of it is this process's."
        evidence.append(f"In use according to the driver: {human(used)}; {ours_at_most}")
        unknown = [each for each in seen.processes or () if each.ours is None][:_MOST_NAMED]
        evidence += [f"{_named(each, seen)} It may be this process." for each in unknown if each.bytes]
    if case.limit is not None:
        left = max(0, total - foreign)
        evidence.append(f"JAX may use {human(case.limit)} of {seen.device}, and others leave {human(left)} of it.")
    numbers = ", ".join(str(each.pid) for each in others[:_MOST_NAMED])
    return OomCause(
        cause="other_process",
        summary=f"{_who(others)} {'hold' if len(others) > 1 else 'holds'} {place}.",
        advice=f"{_first(numbers)} {_SHARE}; a process that needs little and runs JAX wants "
        "XLA_PYTHON_CLIENT_PREALLOCATE=false.",
        evidence=(*evidence, *flag_lines(case)),
    )


def _first(numbers: str) -> str:
    if not numbers:
        return "See which one with `nvidia-smi`, and end what is not needed."
    return f"See what it is (`ps -fp {numbers.replace(' ', '')}`), and end it if it is not needed."


def _who(others: list[AcceleratorProcess]) -> str:
    if not others:
        return "Another process, which the driver does not name,"
    if len(others) == 1:
        return f"Another process, pid {others[0].pid},"
    names = ", ".join(str(each.pid) for each in others[:_MOST_NAMED])
    return f"{len(others)} other processes (pid {names}{', ...' if len(others) > _MOST_NAMED else ''})"


def _others(seen: AcceleratorState) -> list[AcceleratorProcess]:
    """Processes that are surely not this one and hold something, the largest first."""
    found = [each for each in seen.processes or () if each.ours is False and each.bytes]
    return sorted(found, key=lambda each: -(each.bytes or 0))


def _named(process: AcceleratorProcess, seen: AcceleratorState | None) -> str:
    device = "the device" if seen is None else seen.device
    total = None if seen is None else seen.memory_total_bytes
    sentence = f"pid {process.pid} holds {human(process.bytes or 0)} on {device}."
    if total and _PREALLOCATED[0] <= (process.bytes or 0) / total <= _PREALLOCATED[1]:
        sentence += " As much as JAX preallocates by default: probably another JAX process."
    return sentence


def _our_bytes(case: Case, seen: AcceleratorState) -> int:
    own = [each.bytes for each in seen.processes or () if each.ours and each.bytes is not None]
    if own:
        return sum(own)
    held = max(case.in_use or 0, case.live or 0)
    return held if _nothing_preallocated(case.event.flags) else max(held, case.limit or 0)


def _nothing_preallocated(flags: Mapping[str, str]) -> bool:
    return str(flags.get("XLA_PYTHON_CLIENT_PREALLOCATE", "")).lower() in ("false", "0")


def probably_another(case: Case) -> OomCause | None:
    """No driver says who is on the device, but it gave less than JAX's allocator was to have."""
    if case.on_host or case.event.stage in ("start", "compile") or case.limit is None:
        return None
    seen, evidence = case.accelerator, []
    if seen is not None and seen.processes and all(each.ours for each in seen.processes):
        return None
    if case.total is not None and case.limit < FOREIGN_LIMIT * case.total and "FRACTION" not in str(case.event.flags):
        evidence.append(f"JAX may use {human(case.limit)} of the device's {human(case.total)}.")
    off = _nothing_preallocated(case.event.flags)
    if off and case.wanted is not None and case.in_use is not None and case.in_use + case.wanted <= case.limit:
        evidence.append(
            f"In use {human(case.in_use)} and requested {human(case.wanted)} stay below JAX's limit of "
            f"{human(case.limit)}, and nothing was preallocated: the device itself had no more memory."
        )
    if not evidence:
        return None
    return OomCause(
        cause="other_process",
        summary="Another process probably holds part of this device's memory.",
        advice=f"See which with `nvidia-smi`. {_SHARE}.",
        evidence=(*evidence, *flag_lines(case)),
    )
