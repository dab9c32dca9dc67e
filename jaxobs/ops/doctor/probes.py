"""Programs that a check runs in a process of its own, because the answer may be that the process dies."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 60.0
"""How long a probe may take: `import jax` from a cold network disk."""
NO_ANSWER = f"no answer within {SECONDS:.0f} s"
MOST_TEXT = 2000
_MARK = "jaxobs-doctor:"
_ALL_FLAGS = re.compile(r"^\t--xla_.*\n?", re.MULTILINE)
"""XLA's list of its flags, behind the line that says which one is wrong."""
_SLOW = ("PYTHONTRACEMALLOC", "PYTHONMALLOC", "PYTHONDEVMODE", "PYTHONPROFILEIMPORTTIME")
"""With these a probe takes minutes; a check of its own reports them."""
_READ_AT_IMPORT = ("JAX_", "XLA_", "TF_", "TPU_", "CUDA_", "ENABLE_PJRT_")

_IMPORT = f"""
import json, sys
import jax, jaxlib

values, meanings = {{}}, {{}}
for name, value in jax.config.values.items():
    value = getattr(value, "value", value)
    values[name] = value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
    try:
        _, positional, named = jax.config.meta[name]
        meanings[name] = named.get("help") or next(each for each in positional if isinstance(each, str))
    except Exception:
        pass
try:
    from jaxlib import xla_client

    refused = ""
    xla_client.generate_pjrt_gpu_plugin_options()
except ValueError as error:
    refused = str(error)
except Exception:
    pass
print("{_MARK}" + json.dumps({{
    "jax": jax.__version__, "jaxlib": jaxlib.__version__, "file": jax.__file__, "settings": values,
    "minimum_jaxlib": getattr(jax.version, "_minimum_jaxlib_version", None), "meanings": meanings,
    "refused_for_gpus": refused,
}}))
"""
_FLAGS = f"""
import jax
jax.devices()
print("{_MARK}{{}}")
"""


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of `import jax`."""

    jax: str | None = None
    jaxlib: str | None = None
    file: str = ""
    minimum_jaxlib: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of `jax.config`, as the environment sets them."""
    meanings: dict[str, str] = field(default_factory=dict)
    """JAX's own words for each setting."""
    refused_for_gpus: str = ""
    """Reason why the variables for XLA's client of GPUs are refused; empty if they aren't."""
    trouble: str | None = None
    """The error's text, if it failed."""
    variables: tuple[str, ...] = ()
    """The variables without any of which it would have worked."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """Whether a client could be made with these flags."""

    trouble: str | None = None
    unknown: tuple[str, ...] = ()
    """The flags that XLA refuses."""
    refused: tuple[str, ...] = ()
    """The names of flags whose values it refuses, without hyphens."""


def import_jax(environment: Mapping[str, str], directory: Path) -> Imported:
    """Imports JAX as the job would, and reads its settings. If that fails, tries whether a variable is the reason."""
    answer, trouble = _run(_IMPORT, environment, directory)
    if answer is not None:
        return Imported(**answer)
    # Each trial would take as long again, and no answer is no error.
    return Imported(trouble=trouble, variables=() if trouble == NO_ANSWER else _to_blame(environment, directory))


def _to_blame(environment: Mapping[str, str], directory: Path) -> tuple[str, ...]:
    """Returns the variables that keep JAX from being imported: each one is enough."""
    suspects = [name for name in environment if name.startswith(_READ_AT_IMPORT)]

    def works(without: Sequence[str]) -> bool:
        left = {name: value for name, value in environment.items() if name not in without}
        return _run(_IMPORT, left, directory)[0] is not None

    if not suspects or not works(suspects):
        return ()
    blamed: list[str] = []
    for name in suspects:
        if not works([each for each in suspects if each != name]):
            blamed.append(name)
            if works(blamed):
                break
    return tuple(blamed)


def parse_flags(environment: Mapping[str, str], directory: Path) -> Parsed:
    """Has XLA read `XLA_FLAGS`, on the CPU: it aborts the process where it knows one of them not."""
    answer, trouble = _run(_FLAGS, {**environment, "JAX_PLATFORMS": "cpu"}, directory)
    if answer is not None:
        return Parsed()
    unknown = re.search(r"Unknown flags? in XLA_FLAGS: (.*)", trouble or "")
    refused = re.findall(r"Couldn't interpret value .* for flag (\w+)", trouble or "")
    return Parsed(
        trouble=trouble, unknown=tuple(unknown[1].split()) if unknown else (), refused=tuple(dict.fromkeys(refused))
    )  # fmt: skip


def _run(program: str, environment: Mapping[str, str], directory: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Returns what a program prints behind the mark; or why it printed nothing."""
    # Without jaxobs in the process: a variable of ours may be what is wrong.
    variables = {name: value for name, value in environment.items() if name not in _SLOW} | {"JAXOBS_DISABLED": "1"}
    command: Sequence[str] = (sys.executable, "-c", program)
    try:
        done = subprocess.run(
            command, env=variables, cwd=directory, capture_output=True, text=True, errors="replace", timeout=SECONDS,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, NO_ANSWER
    except OSError as error:
        return None, str(error)
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            try:
                answer = json.loads(line.removeprefix(_MARK))
            except ValueError:
                continue
            return (answer, None) if isinstance(answer, dict) else (None, "no answer")
    return None, (_ALL_FLAGS.sub("", done.stderr).strip()[-MOST_TEXT:] or f"exit code {done.returncode}")
