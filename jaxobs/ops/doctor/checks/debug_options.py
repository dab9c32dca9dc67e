"""Options for debugging that were left on."""

import re
from collections.abc import Iterator, Mapping

from jaxobs.ops.doctor.machine import TABLES, Finding, Machine, ok


def check(machine: Machine) -> Iterator[Finding]:
    """By JAX's settings as the environment sets them, and by variables."""
    found = [*_on(machine, TABLES["debugging"], "on"), *_on(machine, TABLES["logging"], "set")]
    looked = f"{len(TABLES['debugging']) + len(TABLES['logging'])} options of JAX, its libraries and Python"
    yield from found or [ok("No option for debugging is on", looked)]


def _on(machine: Machine, table: Mapping[str, tuple[str, str, str]], state: str) -> Iterator[Finding]:
    for name, (pattern, severity, why) in table.items():
        variable, is_setting = name.upper(), name.islower()
        set_to = machine.environment.get(variable)
        value = "" if is_setting and machine.setting(name) is None else str(machine.setting(name) or set_to or "")
        # JAX turns its own level up for the modules that are named.
        implied = name == "jax_logging_level" and machine.setting("jax_debug_log_modules")
        if re.fullmatch(pattern, value.strip(), re.IGNORECASE) and not implied:
            yield Finding(
                severity=severity, title=f"{name} is {state if is_setting else 'set'}", entity=name, why=why,
                fix=f"unset {variable}", evidence=f"{variable}={set_to}" if set_to is not None else
                f"jax.config.{name} is {value} at the start",
            )  # fmt: skip
