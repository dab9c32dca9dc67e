"""The typed keywords of `jaxobs.install`, `jaxobs.start` and `jaxobs.serve`, from the declaration of the settings.

python -m tools.settings_types            writes jaxobs/base/settings_types.py
python -m tools.settings_types --check    writes nothing; says whether it is stale, and exits with 1
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import textwrap
from pathlib import Path
from typing import Any

from jaxobs.base.config import PROTECTION, Settings

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "jaxobs" / "base" / "settings_types.py"

_HEAD = '''\
"""Keywords of `jaxobs.install`, `jaxobs.start` and `jaxobs.serve`, with their types, for editors and type checkers.

Generated from `base/config.py` by `python -m tools.settings_types`. Do not edit. None leaves a setting as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider
'''
_PROVIDERS = '''

class InstallSettings(SettingsTypes, total=False):
    """Every setting, and the program's own providers of OpenTelemetry."""

    meter_provider: MeterProvider | None
    tracer_provider: TracerProvider | None
    logger_provider: LoggerProvider | None
'''
_PATHS = ("File", "Directory", "PEM")
"""First words of the sentence of a setting that names a file or a folder."""


def source() -> str:
    """Returns the text of the module."""
    fields = dataclasses.fields(Settings)
    protection = [field for field in fields if field.name in PROTECTION]
    others = [field for field in fields if field.name not in PROTECTION]
    return (
        _HEAD
        + _class("ProtectionTypes(TypedDict, total=False)", "Settings that protect the endpoint.", protection)
        + _class("SettingsTypes(ProtectionTypes, total=False)", "Every setting.", others)
        + _PROVIDERS
    )


def _class(head: str, about: str, fields: list[dataclasses.Field[Any]]) -> str:
    lines = ["", "", f"class {head}:", f'    """{about}"""', ""]
    for field in fields:
        lines.append(f"    {field.name}: {_type(field)}")
        sentence = " ".join(field.metadata["help"].split())
        lines += textwrap.wrap(f'"""{sentence}"""', 120, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([*lines, ""])


def _type(field: dataclasses.Field[Any]) -> str:
    kind = str(field.type).removesuffix(" | None")
    if field.metadata["choices"]:
        kind = f"Literal[{', '.join(map(_quoted, field.metadata['choices']))}]"
    elif kind == "tuple[str, ...]":
        kind = "Sequence[str]"
    elif field.metadata["help"].split()[0] in _PATHS:
        kind = "str | PathLike[str]"
    return f"{kind} | None"


def _quoted(choice: str) -> str:
    return f'"{choice}"'


def main(arguments: list[str] | None = None) -> int:
    """Writes the module, or checks it. Exit code 1: `--check` found it stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.settings_types", description="Types the settings' keywords.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the module is stale")
    check = parser.parse_args(arguments).check
    if MODULE.exists() and MODULE.read_text(encoding="utf-8") == source():
        return 0
    shown = MODULE.relative_to(ROOT)
    if check:
        print(f"{shown} is stale. Write it with: python -m tools.settings_types", file=sys.stderr)
        return 1
    MODULE.write_text(source(), encoding="utf-8")
    print(f"wrote {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
