"""Parts of the key of the persistent cache.

JAX hashes eight things into one key (`jax._src.cache_key.get`). While `compile_or_get_cached` reports its request,
its frame holds them; the digests here are made by JAX's own functions of that module, each into a hash of its own, and
are the beginnings of those that JAX logs itself (`get_cache_key hash of serialized ...`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from jaxobs.base.guard import guarded

_DIGITS = 12
_MOST_TEXT = 300
_MOST_FIELDS = 400
_MOST_REMEMBERED = 64


@dataclass(slots=True)
class Request:
    """A question of JAX to the cache. Live objects: use them until the compile ends, keep none."""

    key: str
    module: str
    """JAX's name of the program: `jit_train_step`."""
    callbacks: int
    """Host callbacks that the program makes."""
    program: Any = None
    devices: Any = None
    options: Any = None
    backend: Any = None


def read_request(frame: FrameType | None) -> Request | None:
    """The request that `compile_or_get_cached` reports to the listener called from `frame`."""
    for _ in range(4):
        if frame is None:
            return None
        local = frame.f_locals
        key = local.get("cache_key")
        if isinstance(key, str):
            return Request(
                key=key, module=str(local.get("module_name", "")), callbacks=len(local.get("host_callbacks") or ()),
                program=local.get("computation"), devices=local.get("devices"), options=local.get("compile_options"),
                backend=local.get("backend"),
            )  # fmt: skip
        frame = frame.f_back
    return None


def jax_version() -> str:
    """Version of JAX, which is not part of the key, but makes the program."""
    return str(getattr(sys.modules.get("jax"), "__version__", ""))


def can_tell() -> bool:
    """Returns whether this JAX has the functions that the parts are made by."""
    try:
        from jax._src import cache_key
    except ImportError:
        return False
    names = "_hash_platform", "_hash_xla_flags", "_hash_serialized_compile_options", "_hash_accelerator_config"
    return all(hasattr(cache_key, name) for name in names)


def parts(request: Request) -> tuple[dict[str, str], dict[str, Any]]:
    """Digests of the parts but the program, and the same as a person reads them. What cannot be reported is absent."""
    digests: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, read in _READERS.items():
        with guarded(f"cache_key {name}"):
            digests[name], values[name] = read(request)
    return digests, values


def program(request: Request, fingerprint: str | None, in_key: bool) -> str | None:
    """Digest of the program as JAX's key has it; its fingerprint, where that is made of the same bytes."""
    from jax._src import cache_key, config

    if in_key and not config.compilation_cache_include_metadata_in_key.value:
        return fingerprint
    with guarded("cache_key program"):
        remove = bool(config.remove_custom_partitioning_ptr_from_cache_key.value)
        callbacks = getattr(cache_key, "IgnoreCallbacks", None)
        if callbacks is None:
            return _by("_hash_computation", request.program, remove)
        ignored = callbacks.CUSTOM_PARTITIONING if remove else callbacks.NO
        return _by("_hash_computation", request.program, ignored)
    return None


def types(program: Any) -> str:
    """The types that a lowered program takes and returns, shortened to a beginning and a hash of all."""
    for operation in program.body.operations:
        if "sym_name" in operation.attributes and operation.attributes["sym_name"].value == "main":
            return _short(str(operation.attributes["function_type"]), 120)
    return ""


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 10]} #{_digest(text)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _by(name: str, *arguments: Any, **options: Any) -> str:
    """The digest that JAX's own function of that name makes."""
    from jax._src import cache_key

    made = hashlib.sha256()
    getattr(cache_key, name)(made, *arguments, **options)
    return made.hexdigest()[:_DIGITS]


_remembered: dict[Any, tuple[str, Any]] = {}


def _once(known_by: Any, make: Callable[[], tuple[str, Any]]) -> tuple[str, Any]:
    """Parts that are the same from one program to the next, made once."""
    found = _remembered.get(known_by)
    if found is None:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        found = _remembered[known_by] = make()
    return found


def _jaxlib(request: Request) -> tuple[str, Any]:
    from jax._src.lib import version_str

    return _digest(version_str), version_str


def _backend(request: Request) -> tuple[str, Any]:
    backend = request.backend
    text = f"{backend.platform} {backend.platform_version}"
    readable = _short(" ".join(text.split()), _MOST_TEXT)
    return _once(("backend", text), lambda: (_by("_hash_platform", backend), readable))


def _flags(request: Request) -> tuple[str, Any]:
    from jax._src import cache_key

    prefixes = cache_key.get_flag_prefixes()
    texts = os.getenv("XLA_FLAGS") or "", os.getenv("LIBTPU_INIT_ARGS") or "", *_arguments(prefixes)

    def make() -> tuple[str, Any]:
        unhashed = cache_key.xla_flags_to_exclude_from_cache_key
        given = sorted([*texts[0].split(), *texts[1].split(), *texts[2:]])
        hashed = [_short(flag, _MOST_TEXT) for flag in given if flag.split("=")[0] not in unhashed]
        return _by("_hash_xla_flags", prefixes), hashed[:_MOST_FIELDS]

    return _once(("flags", *texts), make)


def _arguments(prefixes: list[str]) -> list[str]:
    beginnings = ("--xla", *prefixes)
    return [argument for argument in sys.argv if argument.startswith(beginnings)]


def _options(request: Request) -> tuple[str, Any]:
    # As JAX does: processes of a job on GPUs shall have one key.
    strip = request.backend.platform == "gpu"
    digest = _by("_hash_serialized_compile_options", request.options, strip_device_assignment=strip)
    return _once(("options", digest), lambda: (digest, _fields(request.options)))


_FIELDS_OF_THEIR_OWN = ("executable_build_options", "debug_options", "env_option_overrides")


def _fields(options: Any) -> dict[str, str]:
    """Compile options by name, as far as they can be read; those of XLA that are not its defaults."""
    from jax._src import cache_key

    build = options.executable_build_options
    found = dict[str, str]()
    for owner in (options, build):
        for name in dir(owner):
            if not name.startswith("_") and name not in _FIELDS_OF_THEIR_OWN:
                with contextlib.suppress(Exception):  # a field that cannot be turned into Python is left out
                    value = getattr(owner, name)
                    if not callable(value) and value not in (None, "", b"", []):
                        found[name] = _short(" ".join(str(value).split()), _MOST_TEXT)
    unhashed = {flag.strip("-") for flag in cache_key.xla_flags_to_exclude_from_cache_key}
    for line in repr(build.debug_options).splitlines():
        name, colon, text = line.partition(": ")
        if colon and name.isidentifier() and name not in unhashed:
            found[name] = _short(text.strip('"'), _MOST_TEXT)
    for name, value in options.env_option_overrides:
        if name not in unhashed:
            found[str(name)] = _short(str(value), _MOST_TEXT)
    return dict(list(found.items())[:_MOST_FIELDS])


def _devices(request: Request) -> tuple[str, Any]:
    devices, client = request.devices, request.backend

    def make() -> tuple[str, Any]:
        kinds = Counter(str(device.device_kind) for device in devices.flat)
        processes = len({device.process_index for device in devices.flat})
        text = ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()))
        where = f" in {processes} processes" if processes > 1 else ""
        return _by("_hash_accelerator_config", devices), f"{text}{where}, of {client.device_count()}"

    return _once(("devices", client.platform, client.device_count(), *(device.id for device in devices.flat)), make)


def _compression(request: Request) -> tuple[str, Any]:
    from jax._src import compilation_cache

    name = "zstandard" if getattr(compilation_cache, "zstandard", None) is not None else "zlib"
    return _digest(name), name


def _custom_hook(request: Request) -> tuple[str, Any]:
    from jax._src import cache_key

    text = cache_key.custom_hook()
    return _digest(text.strip()), _short(text, _MOST_TEXT)


_READERS: dict[str, Callable[[Request], tuple[str, Any]]] = {
    "jaxlib": _jaxlib, "backend": _backend, "flags": _flags, "options": _options, "devices": _devices,
    "compression": _compression, "custom_hook": _custom_hook,
}  # fmt: skip
