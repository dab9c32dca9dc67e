"""The baseline file: what each test compiled when `pytest --jaxobs-update` last ran it. To be committed."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jaxobs.base import json_lines, private_files
from jaxobs.base.errors import JaxobsError
from jaxobs.testing.costs import Cost

VERSION = 1
MOST_BYTES = 16 * 2**20
ABOUT = "What each test compiles. Written by `pytest --jaxobs-update`."


class BaselineError(JaxobsError):
    """The baseline file cannot be read or written. The text says where, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The place of a measurement: versions and devices."""

    jax: str | None = None
    jaxlib: str | None = None
    platform: str | None = None
    """JAX's default backend; None where the test did not wake it."""
    device_kind: str | None = None
    devices: int | None = None

    @property
    def place(self) -> str:
        """The devices, for a person: `8 x cpu`."""
        if self.platform is None:
            return "no device"
        kind = "" if self.device_kind in (None, self.platform) else f" ({self.device_kind})"
        return f"{self.devices} x {self.platform}{kind}"

    @property
    def versions(self) -> str:
        """`jax 0.10.2, jaxlib 0.10.2`."""
        return f"jax {self.jax}, jaxlib {self.jaxlib}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The entry of a test."""

    environment: Environment = field(default_factory=Environment)
    functions: Mapping[str, Cost] = field(default_factory=dict)


def read(path: Path) -> dict[str, Entry]:
    """Returns the entries by the tests' node ids, none without a file; raises `BaselineError`."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"The baseline `{path}` cannot be read: {getattr(error, 'strerror', error)}.") from None
    again = "Restore it, or delete it and run all tests with: pytest --jaxobs-update"
    try:
        content = json_lines.loads(text)
    except ValueError as error:
        conflict = " It contains merge conflict markers." if "<<<<<<<" in text else ""
        raise BaselineError(f"The baseline `{path}` is not valid JSON: {error}.{conflict} {again}") from None
    version = content.get("version") if isinstance(content, dict) else None
    if version != VERSION:
        raise BaselineError(
            f"The baseline `{path}` has version {version!r:.50}, but this jaxobs reads {VERSION}. {again}"
        )
    name = "?"
    entries: dict[str, Entry] = {}
    try:
        for name, entry in content["tests"].items():
            entries[name] = entry_of(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BaselineError(
            f"The baseline `{path}` has an invalid entry for `{name}` ({error!r:.100}). {again}"
        ) from None
    return entries


def entry_of(content: Mapping[str, Any]) -> Entry:
    """Returns an entry from its plain form; raises `AttributeError`, `KeyError`, `TypeError`, `ValueError`."""
    functions = {name: Cost(**cost) for name, cost in content["functions"].items()}
    for cost in functions.values():
        figures = [cost.compilations, *cost.causes.values(), *cost.memory.values()]
        seconds = [each for each in (cost.flops, cost.compile_seconds) if each is not None]
        if not all(type(each) is int for each in figures) or not all(type(each) in (int, float) for each in seconds):
            raise ValueError("a figure is not a number")
    environment = Environment(**content["environment"])
    texts = (environment.jax, environment.jaxlib, environment.platform, environment.device_kind)
    is_count = type(environment.devices) in (int, type(None))
    if not is_count or not all(each is None or isinstance(each, str) for each in texts):
        raise ValueError("the environment is missing")
    return Entry(environment=environment, functions=functions)


def plain(entry: Entry) -> dict[str, Any]:
    """Returns an entry as dictionaries, texts and numbers."""
    found = asdict(entry)
    functions = sorted(found["functions"].items())
    flops = {name: cost["flops"] for name, cost in functions}
    whole = {name: int(each) for name, each in flops.items() if each is not None and each == int(each)}
    return found | {"functions": {name: cost | {"flops": whole.get(name, flops[name])} for name, cost in functions}}


def write(path: Path, entries: Mapping[str, Entry]) -> None:
    """Replaces the file, as a whole or not at all; raises `BaselineError` if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        private_files.write_whole(os.path.realpath(path), [rendered(entries).encode()], 0o644)
    except OSError as error:
        raise BaselineError(f"The baseline `{path}` cannot be written: {error.strerror or error}.") from None


def rendered(entries: Mapping[str, Entry]) -> str:
    """Returns the file's text: sorted, one line for each figure, so that a diff shows what changed and no more."""
    lines = ["{", f'  "about": {json.dumps(ABOUT)},', f'  "version": {VERSION},', '  "tests": {']
    for name, entry in sorted(entries.items()):
        content = plain(entry)
        lines += [f"    {json.dumps(name)}: {{", f'      "environment": {json.dumps(content["environment"])},']
        functions = [_function(function, cost) for function, cost in content["functions"].items()]
        lines += ['      "functions": {', ",\n".join(functions), "      }"] if functions else ['      "functions": {}']
        lines.append("    },")
    lines[-1] = lines[-1].removesuffix(",") if entries else '  "tests": {'
    return "\n".join([*lines, "  }", "}", ""])


def _function(name: str, cost: Mapping[str, Any]) -> str:
    figures = ",\n".join(f"          {json.dumps(key)}: {json.dumps(value)}" for key, value in cost.items())
    return f"        {json.dumps(name)}: {{\n{figures}\n        }}"
