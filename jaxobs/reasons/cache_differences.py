"""Why the persistent cache missed what an earlier process had compiled: which part of the key differs, as a sentence.

Works on the sidecar's records alone (`cache_records`), so that it can be tested with records made by hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from jaxobs.facts.compilations import KEY_PARTS
from jaxobs.reasons.cache_records import KeyRecord

_MOST_NAMED = 3


def nearest(mine: KeyRecord, others: Iterable[KeyRecord]) -> KeyRecord | None:
    """Returns the earlier record to compare with.

    A record of the same key wins; else one of the same program, so that a function that was compiled for several
    signatures is not said to have changed; then the one with the same argument types, the fewest parts that differ and
    the fewest flags and options; then one of the same place in the job; then the latest.
    """

    def distance(other: KeyRecord) -> tuple[bool, bool, bool, int, int, int, bool, bool, float]:
        parts = differing(mine, other)
        return (
            other.key != mine.key,
            "program" in parts,
            "program" in parts and other.arguments != mine.arguments,
            len(parts),
            len(_changed_flags(mine, other) or ()) if "flags" in parts else 0,
            len(_changed_options(mine, other) or ()) if "options" in parts else 0,
            other.directory != mine.directory,
            other.process_index != mine.process_index,
            -other.time,
        )

    return min((each for each in others if each.process != mine.process), key=distance, default=None)


def differing(mine: KeyRecord, other: KeyRecord) -> tuple[str, ...]:
    """Returns the parts that are known of both and differ."""
    if mine.key == other.key:
        return ()
    known = [part for part in KEY_PARTS if part in mine.parts and part in other.parts]
    return tuple(part for part in known if mine.parts[part] != other.parts[part])


def sentence(mine: KeyRecord, other: KeyRecord, *, evicts: bool = False) -> str:
    """Returns why `mine` missed although `other` had been compiled. `evicts`: the cache is kept to a size."""
    process = f"process {other.pid}" + (f" (index {other.process_index})" if _other_place(mine, other) else "")
    when = _ago(mine.time - other.time)
    if mine.key == other.key:
        return f"`{mine.function}` missed: {process} {_same_key(mine, other, when, evicts)}"
    parts = differing(mine, other)
    if not parts:
        return (
            f"`{mine.function}` missed; {process} compiled it {when} under another key; no known part of the key "
            "differs."
        )
    if "flags" in parts and "options" in parts and _changed_options(mine, other) == []:
        parts = tuple(part for part in parts if part != "options")  # the same, said twice
    told = "; and with ".join(_TELL[part](mine, other).rstrip(".") for part in parts)
    return f"`{mine.function}` missed; {process} compiled it {when} with {told}."


def _other_place(mine: KeyRecord, other: KeyRecord) -> bool:
    return mine.process_index != other.process_index


# ------------------------------------------------------------------------------------------- the same key


def _same_key(mine: KeyRecord, other: KeyRecord, when: str, evicts: bool) -> str:
    if mine.uncached_because == "error" and "entry is there" in (mine.uncached_detail or ""):
        return f"compiled the same program {when}. {mine.uncached_detail}"
    if other.stored is False:
        detail = other.uncached_detail or f"It was not stored ({other.uncached_because})."
        detail = detail.replace("This is process", "It was process")
        return f"compiled the same program {when}, but did not store it. {detail}"
    had = "loaded" if other.result == "hit" else "stored" if other.stored else "compiled"
    if other.directory != mine.directory:
        return (
            f"{had} the same program {when} in another directory, {other.directory}; "
            f"this process looks in {mine.directory}."
        )
    gone = "has since been evicted (jax_compilation_cache_max_size) or deleted" if evicts else "has since been deleted"
    if _other_place(mine, other):
        gone += f", or {mine.directory} is not shared between the processes"
    return f"{had} the same program {when}; its entry {gone}."


# ---------------------------------------------------------------------------------------- part by part


def _program(mine: KeyRecord, other: KeyRecord) -> str:
    both = f"{other.parts['program']} then, {mine.parts['program']} now"
    if mine.jax != other.jax:
        return f"a different program ({both}), which JAX {other.jax} produced; this is JAX {mine.jax}."
    if mine.fingerprint and mine.fingerprint == other.fingerprint:
        return (
            "a different address in the same program, which refers to a custom partitioning by its address: "
            "set jax_remove_custom_partitioning_ptr_from_cache_key to leave it out of the key."
        )
    if mine.arguments != other.arguments:
        return (
            f"a different program ({both}), for different arguments: `{other.arguments}` then, `{mine.arguments}` now."
        )
    return (
        f"a different program ({both}) for the same argument types: its code, a constant in it, "
        "a sharding or JAX's configuration differs."
    )


def _plain(what: str) -> Any:
    def tell(mine: KeyRecord, other: KeyRecord, part: str) -> str:
        then, now = other.values.get(part), mine.values.get(part)
        if then is None or now is None:
            return f"a different {what}."
        if then == now:
            return f"a different {what}, although both read `{now}`."
        return f"a different {what}: `{then or 'none'}` then, `{now or 'none'}` now."

    return tell


def _flags(mine: KeyRecord, other: KeyRecord) -> str:
    told = _changed_flags(mine, other)
    if told is None:
        return "different XLA flags."
    return (
        f"{'a different XLA flag' if len(told) == 1 else 'different XLA flags'}: "
        f"{_listed(told) or 'a different number of them'}."
    )


def _changed_flags(mine: KeyRecord, other: KeyRecord) -> list[str] | None:
    then, now = other.values.get("flags"), mine.values.get("flags")
    if not isinstance(then, list) or not isinstance(now, list):
        return None
    before, after = _by_name(then), _by_name(now)
    told = [f"`{_flag(name, after[name])}` is new" for name in after if name not in before]
    told += [f"`{_flag(name, before[name])}` is missing" for name in before if name not in after]
    return told + [
        f"`{_flag(name, before[name])}` is now `{after[name]}`"
        for name in after
        if name in before and before[name] != after[name]
    ]


def _by_name(flags: list[Any]) -> dict[str, str]:
    return {str(flag).partition("=")[0]: str(flag).partition("=")[2] for flag in flags}


def _flag(name: str, value: str) -> str:
    return f"{name}={value}" if value else name


def _options(mine: KeyRecord, other: KeyRecord) -> str:
    told = _changed_options(mine, other)
    if told is None:
        return "different compile options."
    if not told:
        return "different compile options, in a field that jaxobs cannot read."
    return f"{'a different compile option' if len(told) == 1 else 'different compile options'}: {_listed(told)}."


def _changed_options(mine: KeyRecord, other: KeyRecord) -> list[str] | None:
    then, now = other.values.get("options"), mine.values.get("options")
    if not isinstance(then, Mapping) or not isinstance(now, Mapping):
        return None
    try:
        differ = {str(name) for name, _ in then.items() ^ now.items()}
    except TypeError:  # written by something else than jaxobs
        return None
    # XLA has its flags among its options as well: what is named there need not be named again.
    before, after = (_by_name(each.values.get("flags") or []) for each in (other, mine))
    differ -= {name.lstrip("-") for name in {**before, **after} if before.get(name) != after.get(name)}
    return [_change(name, then.get(name), now.get(name)) for name in sorted(differ)]


_IN_THE_DIRECTORY = ("xla_gpu_per_fusion_autotune_cache_dir", "xla_gpu_kernel_cache_file")
"""XLA's own caches lie inside JAX's, and up to JAX 0.10 their paths are hashed."""


def _change(name: str, then: Any, now: Any) -> str:
    if name in _IN_THE_DIRECTORY and then and now:
        return (
            f"the cache's directory was `{os.path.dirname(str(then))}` and is `{os.path.dirname(str(now))}`, and this "
            'version of JAX hashes its name (unless jax_persistent_cache_enable_xla_caches is "none")'
        )
    return f"`{name}` was {_value(then)} and is {_value(now)}"


def _value(value: Any) -> str:
    return "not set" if value is None else f"`{value}`"


def _listed(told: list[str]) -> str:
    more = len(told) - _MOST_NAMED
    return ", ".join(told[:_MOST_NAMED]) + (f", and {more} more" if more > 0 else "")


def _devices(mine: KeyRecord, other: KeyRecord) -> str:
    then, now = other.values.get("devices"), mine.values.get("devices")
    if then == now and _other_place(mine, other):
        return (
            f"the devices of another process of the job, which are part of this backend's key ({now}): "
            "every process needs its own entry, and only process 0 writes."
        )
    return str(_plain("set of devices")(mine, other, "devices"))


_TELL: Mapping[str, Any] = {
    "program": _program,
    "jaxlib": lambda mine, other: _plain("jaxlib")(mine, other, "jaxlib"),
    "backend": lambda mine, other: _plain("backend version")(mine, other, "backend"),
    "flags": _flags,
    "options": _options,
    "devices": _devices,
    "compression": lambda mine, other: (
        _plain("compression")(mine, other, "compression").rstrip(".")
        + "; it depends on whether the package `zstandard` is installed."
    ),
    "custom_hook": lambda mine, other: _plain("result of JAX's custom_hook")(mine, other, "custom_hook"),
}


def _ago(seconds: float) -> str:
    for unit, size, least in (("days", 86400, 2), ("h", 3600, 2), ("min", 60, 2)):
        if seconds >= least * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(0, round(seconds))} s ago"
