"""What to do about a recompilation, in this very case."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jaxobs.facts import Change

_TYPED = re.compile(r"^(?P<dtype>[\w<>]+)\[(?P<sizes>[^\]]*)\]")


def cure(cause: str, changes: Sequence[Change]) -> str:
    """One or two sentences for the changes of that cause, or for the cause where none is listed."""
    of_cause = [change for change in changes if change.what == cause]
    found = _CURES.get(cause)
    if found is not None and of_cause:
        return found(of_cause)
    return _GENERAL[cause]


def _named(changes: Sequence[Change]) -> str:
    """The arguments that changed, a few of them by their path."""
    paths = list(dict.fromkeys(change.path for change in changes if change.path))
    if not paths:
        return "the arguments"
    return ", ".join(f"`{path}`" for path in paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _sizes(text: str) -> list[int] | None:
    found = _TYPED.match(text)
    sizes = found["sizes"].split(",") if found and found["sizes"] else []
    return [int(size) for size in sizes] if all(size.strip().isdigit() for size in sizes) else None


def _shape(changes: Sequence[Change]) -> str:
    before, after = _sizes(changes[0].before), _sizes(changes[0].after)
    whose = _named(changes)
    if "key<" in changes[0].before + changes[0].after:
        return f"Make {whose} in one way: new-style keys (jax.random.key) in every call, or raw ones."
    if before is None or after is None or before == after:
        return _GENERAL["shape"]
    if len(before) != len(after):
        return f"Give {whose} one number of dimensions in every call: reshape it before."
    places = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    place = places[0]
    old, new = before[place], after[place]
    if place == 0 and new < old:
        return (
            f"If this is the last batch, drop it (`drop_remainder=True`), or pad {whose} to {old} rows and mask the "
            "rest; else pad it to one of a fixed set of sizes."
        )
    bucket = 1 << max(0, max(old, new) - 1).bit_length()
    return (
        f"Pad dimension {place} of {whose} to one size, or to a few buckets such as powers of two "
        f"({new} to {1 << max(0, new - 1).bit_length()}), and mask the rest; both calls fit into {bucket}."
    )


def _dtype(changes: Sequence[Change]) -> str:
    before = _TYPED.match(changes[0].before)
    kind = before["dtype"] if before else "dtype"
    if kind.startswith("key<"):
        return f"Make the keys of {_named(changes)} with one implementation: jax.random.key(seed, impl=...)."
    if all("weak_type=True" in text for text in (changes[0].before, changes[0].after)):
        wider = "float32" if "float" in changes[0].before + changes[0].after else kind
        return (
            f"{_named(changes)} is a Python number: write it as one type in every call (1.0, not 1), "
            f"or pass jnp.asarray(x, jnp.{wider})."
        )
    return f"Convert {_named(changes)} once, before the loop: jnp.asarray(x, jnp.{kind})."


def _weak_type(changes: Sequence[Change]) -> str:
    first = changes[0]
    typed = _TYPED.match(first.before)
    kind = typed["dtype"] if typed else "float32"
    if "weak_type=True" in first.before:
        return (
            f"{_named(changes)} began as a Python scalar and came back as an array: "
            f"begin with jnp.asarray(value, jnp.{kind})."
        )
    return f"{_named(changes)} is a Python scalar now: pass jnp.asarray(value, jnp.{kind}) in every call."


def _structure(changes: Sequence[Change]) -> str:
    first = changes[0]
    whose = _named(changes)
    if "given by" in first.before:
        return f"Pass {whose} in one way in every call, by position or by keyword."
    if "None" in (first.before, first.after):
        return f"Pass an array for {whose} in every call (ones or zeros where it has no part), or jit two functions."
    if "absent" in (first.before, first.after):
        return f"Pass {whose} in every call, or in none."
    if first.before.startswith(("a ", "an ")) and first.after.startswith(("a ", "an ")):
        return f"Pass {whose} as one type of container in every call."
    if "compares by identity" in first.after:
        return (
            f"What stands beside the arrays of {whose} is made again: make it once, before the loop, "
            "or let it compare by value."
        )
    return f"Keep what stands beside the arrays of {whose} the same in every call; what varies belongs into an array."


def _static_argument(changes: Sequence[Change]) -> str:
    first = changes[0]
    whose = _named(changes)
    if "NaN" in first.after:
        return f"Pass None for {whose} where there is no number, or pass it as an array."
    if "compares by identity" in first.after:
        if "lambda" in first.after or "<locals>" in first.after:
            return f"Define the function {whose} once, at module level or before the loop, and pass that."
        return (
            f"Give the type of {whose} `__eq__` and `__hash__` by value (a frozen dataclass has them), "
            "make the object once, or make it a pytree and unmark it as static."
        )
    if all(_is_number(text) for text in (first.before, first.after)):
        return (
            f"If {whose} varies, unmark it as static and pass it as an array; keep it static if it shapes the program."
        )
    return f"Keep {whose} to a few values, each compiled once, or pass what varies as an array."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sharding(changes: Sequence[Change]) -> str:
    return (
        f"Place {_named(changes)} before the first call as it comes back: "
        f"jax.device_put(x, {_as_code(changes[0].after)}), or fix it with in_shardings and out_shardings."
    )


def _placement(changes: Sequence[Change]) -> str:
    first = changes[0]
    whose = _named(changes)
    if first.before == "uncommitted":
        where = first.after.removeprefix("committed to ")
        return f"Commit {whose} before the first call, too: jax.device_put(x, {_as_code(where)})."
    if first.after == "uncommitted":
        where = first.before.removeprefix("committed to ")
        return f"Commit {whose} in every call: jax.device_put(x, {_as_code(where)})."
    where = first.after if first.after.startswith("P(") else first.before
    return f"Keep {whose} in one place from the first call on: jax.device_put(x, {_as_code(where)})."


def _as_code(text: str) -> str:
    """A sharding's text as what a user writes."""
    spec, _, _ = text.partition(" on ")
    return f"NamedSharding(mesh, {spec})" if spec.startswith("P(") else "device"


def _layout(changes: Sequence[Change]) -> str:
    return (
        f"Give {_named(changes)} one layout before the loop (jax.device_put with a Format, or the plain array), "
        "or let the compiler choose it with in_shardings=Format(Layout.AUTO)."
    )


def _jit_options(changes: Sequence[Change]) -> str:
    return f"Jit the function once and keep that object; this one has another {_named(changes)}."


def _context(changes: Sequence[Change]) -> str:
    first = changes[0]
    name = first.path
    if name.startswith("jax_"):
        return (
            f'Set it once, before the first call: jax.config.update("{name}", ...), or be inside the same context '
            "manager in every call."
        )
    return "Be inside the same context manager in every call, or in none."


_CURES: dict[str, Callable[[Sequence[Change]], str]] = {
    "shape": _shape,
    "dtype": _dtype,
    "weak_type": _weak_type,
    "structure": _structure,
    "static_argument": _static_argument,
    "sharding": _sharding,
    "placement": _placement,
    "layout": _layout,
    "jit_options": _jit_options,
    "context": _context,
}

_GENERAL = {
    "shape": "Pad or bucket it to a fixed set of sizes, or drop the remainder batch.",
    "dtype": "Convert it once, before the loop: jnp.asarray(x, dtype).",
    "weak_type": "Make it an array of a fixed type once, before the loop: jnp.asarray(x, dtype).",
    "structure": "Keep one structure: the same keys, containers and None fields in every call.",
    "static_argument": "Pass what varies as an array; keep static only what rarely changes and compares by value.",
    "sharding": "Place it before the first call as the function returns it: jax.device_put(x, sharding).",
    "placement": "Keep it on one placement from the first call on: jax.device_put(x, device_or_sharding).",
    "layout": "Keep one layout from the first call on.",
    "jit_options": "Keep one jitted object for each function instead of jitting it again with other options.",
    "context": "Set it once, before the first call, or around every call alike.",
    "cache_cleared": "Clear caches rarely: every function that is called afterwards compiles again.",
    "new_function": "Make the function and its jit once, outside the loop, and reuse them.",
}
