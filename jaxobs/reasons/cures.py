"""Advice on a recompilation, in the same case.

Advice has preconditions: where the facts do not meet them, something more general is said, which they cannot refute.
"""

import re
from collections.abc import Callable, Sequence

from jaxobs.facts.compilations import Change
from jaxobs.internals.source_files import owner as owner_of

_TYPED = re.compile(r"^(?P<dtype>[\w<>]+)\[(?P<sizes>[^\]]*)\]")
_PYTHON = re.compile(r"\(a Python (\w+)\)$")
_DTYPES = re.compile(r"^(bool|u?int(2|4|8|16|32|64)|b?float\w+|complex(64|128))$")

FEW_SIZES = 3
"""A function that was compiled for so many signatures before does not meet its last batch now: sizes vary."""

ALIKE = 4
"""Sizes that differ by more than so many times are hardly the same input, cut or grown: padding would waste most."""


def cure(
    cause: str, changes: Sequence[Change], *, earlier: int = 1, owner: str | None = None, serving: bool = False
) -> str:
    """Returns a sentence or two for the changes of that cause, or for the cause if none is listed.

    Args:
      earlier: how many signatures the function was compiled for before.
      owner: the installed library whose function it is; its code is not the user's to change.
      serving: whether it was called for a request, which has no last batch.
    """
    of_cause = [change for change in changes if change.what == cause]
    if owner is not None and cause in _OF_LIBRARY and not _made_by_the_user(of_cause):
        return f"The function belongs to {owner}: {_OF_LIBRARY[cause]}"
    if cause == "shape" and of_cause:
        return _shape(of_cause, FEW_SIZES if serving else earlier)
    found = _CURES.get(cause)
    text = found(of_cause) if found is not None and of_cause else _GENERAL[cause]
    return (
        f"{text} This applies to arguments that you create; the function belongs to {owner}."
        if (owner is not None and cause in _OF_ITS_CALLER)
        else text
    )


def returned_longer(paths: Sequence[str]) -> str:
    """Returns the advice on arguments that the function itself returns longer, which no padding helps."""
    whose = ", ".join(f"`{path}`" for path in paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return (
        f"Allocate {whose} once, with the largest size that is needed, and pass how much of it is used. Write with "
        "`jax.lax.dynamic_update_slice` at that place instead of concatenating, and mask the rest: one program remains."
    )


def operation_cure(cause: str, changes: Sequence[Change], *, varies: bool) -> str:
    """Returns the advice for an operation outside any jitted function; `varies` if the user's own line causes it."""
    if cause in ("context", "cache_cleared", "new_function", "sharding", "placement"):
        return cure(cause, changes)
    of_cause = [change for change in changes if change.what == cause]
    if cause == "shape" and varies and _padded(of_cause[0]) is not None:
        return _shape(of_cause, FEW_SIZES)
    what = {"shape": "shape", "dtype": "type", "weak_type": "type"}.get(cause, "value")
    return (
        f"Outside a jitted function, each new {what} compiles another program. "
        "Inside one, the operation is part of its program."
    )


_TRIAL = re.compile(r"\._*(auto_?tun|benchmark)\w*\.")


def is_trial(function: str, library_site: str | None = None) -> bool:
    """Returns whether a library compiles the function to measure it, as an autotuner does with each candidate.

    The line of the library, if it is known, says whose the function is: a log may be read without the library.
    """
    inside = (library_site or "").rpartition(".py:")[0].replace("/", ".")
    owned = function.startswith(f"{inside}.") if inside else owner_of(function) is not None
    return owned and _TRIAL.search(function) is not None


_OF_LIBRARY = {
    "structure": "pass values of the same structure to the call that leads to it.",
    "static_argument": "keep the object that you call and reuse it, instead of creating a new one for each call.",
    "jit_options": "keep the object that you call and reuse it, instead of creating a new one for each call.",
    "new_function": "keep the object that you call and reuse it, instead of creating a new one for each call.",
}

_FUNCTION = re.compile(r"^\w+(\.[\w<>]+)+ \(")
"""`__main__.train.<locals>.residuals (another object; it compares by identity)`: other objects print otherwise."""


def _made_by_the_user(changes: Sequence[Change]) -> bool:
    """Returns whether a function or an object of the user's own was created again, and given to the library."""
    if not changes or changes[0].what != "static_argument" or "compares by identity" not in changes[0].after:
        return False
    return owner_of(changes[0].after.lstrip("<")) is None


_OF_ITS_CALLER = frozenset({"dtype", "weak_type", "sharding", "placement", "layout"})
"""Causes that lie in the arguments, which a library may have made itself for a function of its own."""


def _named(changes: Sequence[Change]) -> str:
    """Returns the arguments that changed, a few of them by their path."""
    paths = list(dict.fromkeys(change.path for change in changes if change.path))
    if not paths:
        return "the arguments"
    return ", ".join(f"`{path}`" for path in paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _sizes(text: str) -> list[int] | None:
    found = _TYPED.match(text)
    sizes = found["sizes"].split(",") if found and found["sizes"] else []
    return [int(size) for size in sizes] if all(size.strip().isdigit() for size in sizes) else None


def _shape(changes: Sequence[Change], earlier: int = 1) -> str:
    before, after = _sizes(changes[0].before), _sizes(changes[0].after)
    whose = _named(changes)
    if "key<" in changes[0].before + changes[0].after:
        return f"Create {whose} the same way in every call: with new-style keys (jax.random.key), or with raw ones."
    if before is None or after is None or before == after:
        return _GENERAL["shape"]
    if len(before) != len(after):
        return f"Give {whose} the same number of dimensions in every call."
    varied = _varied(before, after)
    if len(varied) == 1 and varied[0][0] == 0 and after[0] < before[0] and earlier < FEW_SIZES:
        # The nearest of several earlier ones need not be a full batch: it may be the last one of another data set.
        rows = f"{before[0]} rows" if earlier == 1 else "a full batch"
        return (
            f"If this is the last batch, drop it (`drop_remainder=True`), or pad {whose} to {rows} and mask "
            "the padding; otherwise pad it to one of a fixed set of sizes."
        )
    if (padded := _padded(changes[0])) is None:
        return (
            f"If {whose} is the same input in both calls, pad it to one shape or a few. For different inputs, each "
            "shape compiles once."
        )
    place, large = padded
    bucket = 1 << (large - 1).bit_length()
    return (
        f"Pad dimension {place} of {whose} to one size, or to a few such as powers of two ({bucket} fits both calls), "
        "and mask the padding."
    )


def _padded(change: Change) -> tuple[int, int] | None:
    """Returns the only dimension that differs, and its larger size; None where padding would make little sense."""
    before, after = _sizes(change.before), _sizes(change.after)
    if before is None or after is None or len(before) != len(after):
        return None
    varied = _varied(before, after)
    if len(varied) != 1:
        return None
    place, small, large = varied[0]
    return (place, large) if small >= 1 and large <= ALIKE * small else None


def _varied(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int, int]]:
    """Returns the dimensions that differ, each with its smaller and its larger size."""
    pairs = enumerate(zip(before, after, strict=True))
    return [(place, min(pair), max(pair)) for place, pair in pairs if pair[0] != pair[1]]


def _dtype(changes: Sequence[Change]) -> str:
    first = changes[0]
    before = _TYPED.match(first.before)
    kind = before["dtype"] if before else ""
    if kind.startswith("key<"):
        return f"Create the keys of {_named(changes)} with the same implementation: jax.random.key(seed, impl=...)."
    was, now = _python_type(first.before), _python_type(first.after)
    if was and now:
        wider = "float32" if "float" in first.before + first.after else kind
        return (
            f"{_named(changes)} is a Python number: give it the same type in every call "
            f"({_example(was, now)}), or pass jnp.asarray(x, jnp.{wider})."
        )
    if not _DTYPES.match(kind):
        return f"Pass {_named(changes)} with the same type in every call."
    return f"Convert {_named(changes)} once, before the loop: jnp.asarray(x, {_jnp(kind)})."


def _python_type(text: str) -> str | None:
    found = _PYTHON.search(text)
    return found[1] if found else None


def _example(*types: str) -> str:
    return "1.0, not 1" if set(types) == {"int", "float"} else "not " + " and ".join(sorted(set(types)))


def _jnp(dtype: str) -> str:
    return "jnp.bool_" if dtype == "bool" else f"jnp.{dtype}"


def weak_type(changes: Sequence[Change]) -> str:
    """Returns the advice for arguments that were weakly typed in one call and not in another."""
    first = changes[0]
    typed = _TYPED.match(first.before)
    kind = typed["dtype"] if typed and _DTYPES.match(typed["dtype"]) else "float32"
    whose = _named(changes)
    array = f"jnp.asarray(value, {_jnp(kind)})"
    several = len({change.path for change in changes}) > 1
    if "weak_type=True" in first.before:
        if _python_type(first.before):
            was = "were each" if several else "was"
            return f"{whose} {was} a Python {_python_type(first.before)} before: pass {array} from the first call on."
        was = "were computed" if several else "was computed"
        return f"{whose} {was} from Python scalars only before: set the type there with {array}."
    if _python_type(first.after):
        now = "are each" if several else "is"
        return f"{whose} {now} a Python {_python_type(first.after)} now: pass {array} in every call."
    return (
        f"The code that computes {whose} now uses only Python scalars, as in jnp.where(x, 1.0, 0.0), or receives one: "
        f"set the type of the result there with {array}."
    )


def _structure(changes: Sequence[Change]) -> str:
    first = changes[0]
    whose = _named(changes)
    if "passed by" in first.before:
        return f"Pass {whose} the same way in every call, by position or by keyword."
    if "None" in (first.before, first.after):
        return (
            f"Pass an array for {whose} in every call (ones or zeros where it should have no effect), "
            "or jit two functions."
        )
    if "absent" in (first.before, first.after):
        return f"Pass {whose} in every call, or in none."
    if "another class of the same name" in first.after:
        return f"The class of {whose} was defined again, as when a notebook cell is rerun: define it once, in a module."
    if first.before.startswith(("a ", "an ")) and first.after.startswith(("a ", "an ")):
        return f"Use the same type of container for {whose} in every call."
    if "compares by identity" in first.after:
        return (
            f"The static part of {whose} is a new object each time: create it once, before the loop, "
            "or make it compare by value."
        )
    return (
        f"Keep the static part of {whose} (what is not an array) the same in every call; pass what varies as an array."
    )


def _static_argument(changes: Sequence[Change]) -> str:
    first = changes[0]
    whose = _named(changes)
    if "NaN" in first.after:
        return f"Pass None for {whose} if it has no value, or pass it as an array."
    if "compares by identity" in first.after:
        if _FUNCTION.match(first.after):
            if (owner := owner_of(first.after)) is not None:
                return (
                    f"{owner} creates the function {whose} again: keep the {owner} object that creates it, and reuse "
                    "it."
                )
            return f"Define the function {whose} once, at module level or before the loop, and pass that one."
        return (
            f"Give the type of {whose} an `__eq__` and a `__hash__` by value (a frozen dataclass has both), "
            "create the object once, or make it a pytree and pass it as an ordinary argument."
        )
    if all(_is_number(text) for text in (first.before, first.after)):
        return f"If {whose} varies, pass it as an array; keep it static if a shape or a Python branch depends on it."
    return f"Limit {whose} to a few values, each of which compiles once, or pass what varies as an array."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sharding(changes: Sequence[Change]) -> str:
    before, after = changes[0].before, changes[0].after
    if _SPEC.match(before) and _as_code(before) == _as_code(after):
        one = f"Create one mesh and use it for {_named(changes)} in every call"
        if " devices " in before + after:
            return f"{one}: these two list their devices in different orders."
        if " axis types " in before + after:
            return f"{one}: these two have different axis types."
    return (
        f"Before the first call, place {_named(changes)} the way later calls receive it: "
        f"{_put(changes, after)}, or fix it with in_shardings and out_shardings."
    )


def _put(changes: Sequence[Change], where: str) -> str:
    """Returns the call that places the arguments; if they belong in several places, that of the first."""
    several = len({change.after for change in changes}) > 1 and changes[0].path
    of = f" for `{changes[0].path}`, and likewise each of the others in its own place" if several else ""
    return f"jax.device_put(x, {_as_code(where)}){of}"


def _placement(changes: Sequence[Change]) -> str:
    first = changes[0]
    whose = _named(changes)
    if first.before == "uncommitted":
        where = first.after.removeprefix("committed to ")
        return f"Commit {whose} before the first call, too: {_put(changes, where)}."
    if first.after == "uncommitted":
        where = first.before.removeprefix("committed to ")
        return f"Commit {whose} in every call: jax.device_put(x, {_as_code(where)})."
    where = first.after if first.after.startswith("P(") else first.before
    return f"Keep {whose} in the same place from the first call on: jax.device_put(x, {_as_code(where)})."


_SPEC = re.compile(r"P\((?:[^()]|\([^()]*\))*\)")


def _as_code(text: str) -> str:
    """Returns a sharding's text as what a user writes."""
    spec = _SPEC.match(text)
    return f"NamedSharding(mesh, {spec[0]})" if spec else "device"


def _layout(changes: Sequence[Change]) -> str:
    return (
        f"Give {_named(changes)} a fixed layout before the loop (jax.device_put with a Format, or the plain array), "
        "or let the compiler choose it with in_shardings=Format(Layout.AUTO)."
    )


def _context(changes: Sequence[Change]) -> str:
    first = changes[0]
    name = first.path
    if {_plain_mesh(first.before), _plain_mesh(first.after)} == {"None"}:
        return (
            "Neither value names a mesh: JAX or a library entered an empty one, and nothing in your code has to change."
        )
    if name.startswith("jax_"):
        return (
            f'Set it once, before the first call: jax.config.update("{name}", ...), or use the same context '
            "manager in every call."
        )
    return "Use the same context manager in every call, or in none."


def _plain_mesh(text: str) -> str:
    """`None` for a mesh without axes, which is not one."""
    return "None" if re.match(r"^(Abstract)?Mesh\(\(\)|^(Abstract)?Mesh\(.*axis_names=\(\)", text) else text


_CURES: dict[str, Callable[[Sequence[Change]], str]] = {
    "shape": _shape,
    "dtype": _dtype,
    "weak_type": weak_type,
    "structure": _structure,
    "static_argument": _static_argument,
    "sharding": _sharding,
    "placement": _placement,
    "layout": _layout,
    "jit_options": lambda changes: (
        f"Jit the function once and reuse that object; this one has a different value of {_named(changes)}."
    ),
    "context": _context,
}

_GENERAL = {
    "shape": "Pad or bucket it to a fixed set of sizes, or drop the remainder batch.",
    "dtype": "Convert it once, before the loop: jnp.asarray(x, dtype).",
    "weak_type": "Make it an array of a fixed type once, before the loop: jnp.asarray(x, dtype).",
    "structure": "Keep the same structure in every call: the same keys, containers and None fields.",
    "static_argument": "Pass what varies as an array; make static only what rarely changes and compares by value.",
    "sharding": "Before the first call, place it the way later calls receive it: jax.device_put(x, sharding).",
    "placement": "Keep it in the same place from the first call on: jax.device_put(x, device_or_sharding).",
    "layout": "Keep the same layout from the first call on.",
    "jit_options": "Keep one jitted object for each function instead of jitting it again with different options.",
    "context": "Set it once, before the first call, or to the same value around every call.",
    "cache_cleared": "Clear caches rarely: every function that is called afterwards recompiles.",
    "new_function": "Create the function and its jit once, outside the loop, and reuse them.",
}
