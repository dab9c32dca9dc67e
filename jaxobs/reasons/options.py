"""The options of `jax.jit` that are part of the key, as texts, and what differs between those of two signatures."""

import functools
import hashlib
import re
from typing import Any

from jaxobs.facts.compilations import Change
from jaxobs.internals import shardings
from jaxobs.reasons import texts

MOST_TEXT = 4000

_OPTIONS = (
    "donate_argnums", "donate_argnames", "static_argnums", "static_argnames", "in_shardings_leaves",
    "out_shardings_leaves", "in_layouts_leaves", "out_layouts_leaves", "device", "backend", "keep_unused",
    "inline", "compiler_options_kvs",
)  # fmt: skip
_NAMES = {
    "in_shardings_leaves": "in_shardings",
    "out_shardings_leaves": "out_shardings",
    "in_layouts_leaves": "in_shardings",
    "out_layouts_leaves": "out_shardings",
    "compiler_options_kvs": "compiler_options",
}

Options = tuple[tuple[str, str], ...]


def taken(jit_info: Any) -> Options:
    """Returns name and text of each, where JAX reports the options of the call."""
    if jit_info is None:
        return ()
    return tuple([(name, _text(getattr(jit_info, name, None))) for name in _OPTIONS])


def _text(value: Any) -> str:
    try:
        return _known_text(value)
    except TypeError:  # it cannot be hashed
        return _bounded(shardings.text(value))


@functools.lru_cache(maxsize=256, typed=True)
def _known_text(value: Any) -> str:
    """Returns one object for equal values."""
    return _bounded(shardings.text(value))


def _bounded(text: str) -> str:
    """Returns a text that can be compared; a long one ends in a hash of the whole."""
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}… ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


def changes(old: Options, new: Options) -> list[Change]:
    """Returns the options whose texts differ."""
    before = dict(old)
    return [
        Change(_NAMES.get(name, name), "jit_options", *_difference(before[name], value))
        for name, value in new
        if before.get(name, value) != value
    ]


def _difference(before: str, after: str) -> tuple[str, str]:
    """As short as distinguishes them: shardings by their specs, then with their devices, then whole."""
    both = before, after
    for plain in (_specs(before), _specs(after)), (_with_devices(before), _with_devices(after)):
        if plain[0] != plain[1]:
            both = plain
            break
    return texts.difference(*both)


def _specs(text: str) -> str:
    return re.sub(r" devices [\d,-]+\d", "", _with_devices(text))


def _with_devices(text: str) -> str:
    text = re.sub(r"NamedSharding\(mesh=.*?spec=(P(?:artitionSpec)?\(.*?\)), memory_kind=\w+\)", r"\1", text)
    text = re.sub(
        r"SingleDeviceSharding\(device=\w+\(id=(\d+)\), memory_kind=\w+\)(?: devices \d+)?", r"device \1", text
    )
    return text.replace("UnspecifiedValue", "unspecified").replace("PartitionSpec(", "P(").replace(",)", ")")
