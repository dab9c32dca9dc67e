"""The state of the persistent compilation cache: whether it is in use, where, and what of its files can be seen.

`jax._src.compilation_cache` decides once, at the first compile, whether the cache is used (`_cache_checked`,
`_cache_used`), and opens it once (`_cache_initialized`, `_cache`). What fails then is known by a warning only, whose
text Python keeps in the registry of the module that warned (`__warningregistry__`), unless its filters hide it.
"""

import contextlib
import os
import sys
from typing import Any

ENTRY_SUFFIX = "-cache"
"""An entry's file is its key and this; what else lies in the directory are times of access, locks and XLA's own."""

_PLATFORMS = ("tpu", "gpu", "cpu", "neuron")


def persistent_cache() -> tuple[bool, str | None]:
    """Returns whether compiles are looked up in a persistent cache, and its directory."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "config"):
        return False, None
    directory = _setting("compilation_cache_dir")
    cache = _cache()
    if cache is not None:
        path = getattr(cache, "_path", getattr(cache, "path", None))
        return True, str(path) if path is not None else directory
    if _state("_cache_checked") and not _state("_cache_used"):
        return False, directory
    return bool(_setting("enable_compilation_cache", True) and directory and not _failed_to_open()), directory


def why_disabled(asked: bool) -> str:
    """Why a program was not looked up: a sentence. `asked`: JAX had made a key for it."""
    on, directory = _setting("enable_compilation_cache", True), _setting("compilation_cache_dir")
    if not on:
        return "The persistent cache is off: jax_enable_compilation_cache is False."
    if not asked and _state("_cache_checked") and not _state("_cache_used"):
        return _why_not_used()
    if not directory:
        return "The persistent cache has no directory: set jax_compilation_cache_dir (JAX_COMPILATION_CACHE_DIR)."
    if _failed_to_open():
        return f"The persistent cache in {directory} could not be opened: {_why_not_opened(directory)}."
    if not asked:
        return "JAX could not compute a cache key for it; its log says why."
    return "The persistent cache does not support this backend's runtime."


def _why_not_used() -> str:
    client = getattr(sys.modules.get("jax._src.xla_bridge"), "_default_backend", None)
    platform = getattr(client, "platform", None)
    if client is not None and (
        platform not in _PLATFORMS or not getattr(client, "supports_executable_serialization", True)
    ):
        return f"The persistent cache does not support the backend `{platform}`."
    return (
        "The persistent cache was off when the first program was compiled, and JAX decides once: "
        "configure it earlier, or call "
        "jax.experimental.compilation_cache.compilation_cache.reset_cache()."
    )


_why_failed: dict[str, str] = {}


def _why_not_opened(directory: str) -> str:
    """The text of JAX's warning, which comes once; else what the path itself shows."""
    if directory not in _why_failed:
        _why_failed.clear()
        _why_failed[directory] = warned("compiler", "Error reading persistent compilation cache entry for ")
    text = _why_failed[directory]
    if text:
        return text
    if _setting("compilation_cache_max_size", -1) != -1 and sys.modules.get("filelock") is None:
        return "jax_compilation_cache_max_size needs the package `filelock`"
    if local(directory) is None:
        return "a directory that is not local needs the package `etils[epath]`"
    if os.path.exists(directory) and not os.path.isdir(directory):
        return "it is a file"
    return "JAX's warning was filtered out, so the error is unknown"


def is_open() -> bool:
    """Returns whether JAX has opened the cache: whatever it asked for was looked up there."""
    return _cache() is not None if _can_see() else persistent_cache()[0]


def checks_contents() -> bool:
    """Returns whether JAX compiles what it finds once more, to compare (`jax_compilation_cache_check_contents`)."""
    return hasattr(_cache(), "base_cache_hits")


def most_bytes() -> int | None:
    """The size to which JAX keeps the cache by evicting entries; None where it grows without bound."""
    size = _setting("compilation_cache_max_size", -1)
    return None if size == -1 else int(size)


def entry_file(key: str) -> str | None:
    """The file of an entry, if the cache lies in the local file system."""
    directory = local(persistent_cache()[1])
    return None if directory is None else os.path.join(directory, key + ENTRY_SUFFIX)


def local(directory: str | None) -> str | None:
    """The directory as a local path; None if it is not one: in a bucket, or not set."""
    if not directory:
        return None
    directory = directory.removeprefix("file://")
    return None if "://" in directory else directory


def warned(module: str, beginning: str) -> str:
    """The rest of the latest warning of JAX's `module` that begins so; empty if none was kept.

    Python keeps the texts of warnings that its filters show once; those that are ignored or always shown it does not.
    """
    registry = getattr(sys.modules.get(f"jax._src.{module}"), "__warningregistry__", None) or {}
    found = ""
    with contextlib.suppress(RuntimeError):  # another thread warns
        for key in list(registry):
            text = key[0] if isinstance(key, tuple) else ""
            if isinstance(text, str) and text.startswith(beginning):
                found = text[len(beginning) :]
    # Such a warning names the program first: `'jit_f': OSError: ...`.
    return " ".join((found.partition("': ")[2] if found.startswith("'") else found).split())[:300]


def _cache() -> Any:
    return _state("_cache")


def _can_see() -> bool:
    return hasattr(sys.modules.get("jax._src.compilation_cache"), "_cache")


def _failed_to_open() -> bool:
    return _can_see() and bool(_state("_cache_initialized")) and _cache() is None


def _state(name: str) -> Any:
    return getattr(sys.modules.get("jax._src.compilation_cache"), name, None)


def _setting(name: str, default: Any = None) -> Any:
    jax = sys.modules.get("jax")
    return getattr(getattr(jax, "config", None), f"jax_{name}", default)


def minimum_compile_seconds() -> float:
    """Programs that compile faster are not stored (`jax_persistent_cache_min_compile_time_secs`)."""
    return float(_setting("persistent_cache_min_compile_time_secs", 1.0))


def minimum_entry_bytes() -> int:
    """Entries that are smaller are not stored (`jax_persistent_cache_min_entry_size_bytes`)."""
    return int(_setting("persistent_cache_min_entry_size_bytes", 0))
