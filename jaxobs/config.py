"""Every setting once: its name, type, default and sentence.

A field of `Settings` gives the keyword of `jaxobs.install` and `jaxobs.start`, the environment
variable `JAXOBS_<NAME>` and the flag `--<name>`; the reference page is printed from it.
The keyword wins over the variable, the variable over the default.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxobs.errors import SettingError

PREFIX = "JAXOBS_"
SWITCHES = ("DISABLED", "RAISE_INTERNAL_ERRORS")
"""Variables that are no settings: the first turns the library off, the second is for our own tests."""

_DAY = 86400.0


def _setting(
    default: Any, help: str, *, choices: tuple[str, ...] = (), least: float | None = None, most: float = math.inf,
    secret: bool = False,
) -> Any:  # fmt: skip
    metadata = {"help": help, "choices": choices, "least": least, "most": most, "secret": secret}
    if isinstance(default, list):
        return field(default_factory=lambda: tuple(default), metadata=metadata)
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set. See `docs/reference/settings.md` for the printed list."""

    port: int = _setting(
        9464, "Port of the HTTP endpoint; 0 means none for `run` and a free one for `serve`.", least=0, most=65535
    )
    addr: str = _setting("127.0.0.1", "Address that the HTTP endpoint listens on; loopback unless you open it.")
    event_log: str | None = _setting(
        None, "File that receives every event as one JSON object a line; it is appended to."
    )
    flight_recorder: str | None = _setting(
        None, "Directory that receives a text file when memory runs out, at most 10 a process, and one with the last "
        "minutes when the process ends in trouble; the event log's unless given; `off` for none.",
    )  # fmt: skip
    event_log_max_bytes: int = _setting(
        256 * 2**20, "Size at which the event log stops growing; later events are counted as dropped.",
        least=0,
    )  # fmt: skip
    metrics_file: str | None = _setting(
        None, "File that receives the metrics as Prometheus text at exit, replaced atomically."
    )
    metrics_interval: float = _setting(
        0.0, "Seconds between writes of the metrics file; 0 writes it at exit only.", least=0, most=_DAY
    )
    instrument: tuple[str, ...] = _setting(
        [], "MODULE:FUNCTION whose calls are counted and timed as well; may be given several times."
    )
    sample_interval: float = _setting(
        5.0,
        "Seconds between samples of device memory and live arrays; more where they are dear, so that they take 0.4 % "
        "of a core, and in proportion more of it for a shorter interval, up to 5 %.",
        least=0.05,
        most=_DAY,
    )
    array_call_sites: bool = _setting(
        False,
        "Whether groups of live arrays tell the lines that made the newest of them; those that pile up always do.",
    )
    tpu_monitoring: bool = _setting(True, "Whether libtpu's monitoring SDK is asked where the program uses TPUs.")
    dispatch_timing: str = _setting(
        "sampled", "Which calls of instrumented functions are timed: the first 1,024 and then some of each "
        "sample interval (`sampled`), all of them (`all`), or none (`off`).",
        choices=("sampled", "all", "off"),
    )  # fmt: skip
    max_functions: int = _setting(
        200, 'Functions with series of their own; later ones share function="<other>".', least=1, most=100_000
    )
    max_events: int = _setting(
        1000, "Recent events of each kind kept in memory for the live page and the API.", least=1, most=1_000_000
    )
    actions: bool = _setting(
        False,
        "Whether the endpoint takes captures, at `POST /api/v1/actions/<name>`, from whoever knows `action_token`.",
    )
    action_token: str | None = _setting(
        None, "Text that a request for an action has to bring; give it by the variable, for others can read a command "
        "line. Without it there are no actions over HTTP.",
        secret=True,
    )  # fmt: skip
    capture_directory: str | None = _setting(
        None,
        "Directory that receives captures; the event log's unless given, else a private one among temporary files.",
    )
    capture_max_bytes: int = _setting(
        2**30, "Size of all captures in the directory at which there are no more.", least=0
    )
    capture_interval: float = _setting(
        10.0, "Seconds from the start of a capture to the next one of its kind.", least=0, most=_DAY
    )
    capture_signal: str = _setting(
        "auto", "What SIGUSR2 captures: what holds the memory (`memory`), a trace of 5 steps (`profile`), or `both`; "
        "`auto` is both where nobody handles the signal, which would end the program; `off` leaves it alone.",
        choices=("auto", "off", "memory", "profile", "both"),
    )  # fmt: skip
    transfers: bool = _setting(
        False,
        "Whether arrays that move between host and devices are counted, by the line that moves them.",
    )
    find_loops: bool = _setting(
        False, "Whether calls of functions that are not instrumented are seen, by a hook of JAX's own, to find the "
        "loops of a program that tells of none; `jaxobs run` does unless told not to. It takes 0.2 % of the time.",
    )  # fmt: skip
    peak_flops: float | None = _setting(
        None, "FLOP/s that one device can do at most, for the MFU of steps; by its data sheet (bfloat16, dense) unless "
        "given. Give it for devices that jaxobs does not know, and for other number formats.",
        least=1,
    )  # fmt: skip
    stuck_steps: float = _setting(
        20.0, "Times its usual step time without a step after which a process of a distributed job, or one inside a "
        "declared step, is told to be stuck; 0 for never.",
        least=0,
    )  # fmt: skip
    stuck_seconds: float = _setting(
        60.0, "Seconds that it takes at least, however short the steps are.", least=0.5, most=_DAY
    )
    run_id: str | None = _setting(
        None, "Name of a run that goes on over several processes, one after the other, such as the job's; the time of "
        "all of them is added up in a file beside the event log, with that between them and the work that was lost.",
    )  # fmt: skip
    static_values: bool = _setting(
        True,
        "Whether reasons quote static arguments and pytree metadata by a bounded repr, and signatures in the "
        "event log have them.",
    )


def names() -> list[str]:
    """The names of all settings, in the order of their declaration."""
    return [each.name for each in dataclasses.fields(Settings)]


def resolve(given: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in force: keywords in `given` first, then `JAXOBS_<NAME>`, then the defaults.

    Raises:
      SettingError: a keyword is unknown, or a value does not fit its setting.
    """
    environment = os.environ if environment is None else environment
    unknown = sorted(set(given) - set(names()))
    if unknown:
        raise SettingError(
            f"Unknown setting{'s' * (len(unknown) > 1)} {', '.join(f'`{name}`' for name in unknown)}. "
            f"{_meant(unknown[0], names())}Known settings: {', '.join(names())}."
        )
    values: dict[str, Any] = {}
    for each in dataclasses.fields(Settings):
        variable = PREFIX + each.name.upper()
        if given.get(each.name) is not None:
            values[each.name] = _checked(each, given[each.name], f"`{each.name}`")
        elif environment.get(variable):
            values[each.name] = _checked(each, environment[variable], f"`{variable}`")
    return Settings(**values)


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """A sentence for each variable `JAXOBS_...` that is none of ours: a misspelt one would be ignored in silence."""
    environment = os.environ if environment is None else environment
    known = [PREFIX + name.upper() for name in (*names(), *SWITCHES)]
    return [
        f"The variable `{name}` is set, but jaxobs has no such setting. {_meant(name, known)}"
        "The variables are listed in docs/reference/settings.md."
        for name in sorted(environment)
        if name.startswith(PREFIX) and name not in known
    ]


def _meant(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"Did you mean `{close[0]}`? " if close else ""


def disabled(environment: Mapping[str, str] | None = None) -> bool:
    """Whether `JAXOBS_DISABLED` turns the library into a no-op."""
    environment = os.environ if environment is None else environment
    return environment.get(PREFIX + "DISABLED", "").lower() in ("1", "true", "yes", "on")


def _checked(each: dataclasses.Field[Any], value: Any, source: str) -> Any:
    """`value` in the type of the setting, or a SettingError that names where it came from."""
    try:
        parsed = _parsed(str(each.type), value)
    except (KeyError, OverflowError, TypeError, ValueError):
        shown = "secret" if each.metadata["secret"] else f"{value!r:.100}"
        raise SettingError(
            f"{source} is {shown}, which is no {_KINDS[str(each.type)]}. {each.metadata['help']}"
        ) from None
    least, most, choices = (each.metadata[name] for name in ("least", "most", "choices"))
    if least is not None and not least <= parsed <= most:
        bounds = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:.15g}"
        raise SettingError(f"{source} is {value!r:.100}, but must be {bounds}. {each.metadata['help']}")
    if choices and parsed not in choices:
        raise SettingError(f"{source} is {value!r:.100}. Known values: {', '.join(choices)}.")
    return parsed


_KINDS = {
    "int": "whole number",
    "float": "number",
    "float | None": "number",
    "str": "text",
    "str | None": "text",
    "bool": "truth value (1/0, true/false, yes/no, on/off)",
    "tuple[str, ...]": "list of texts",
}
_TRUTH = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def _parsed(kind: str, value: Any) -> Any:
    if kind == "int":
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError
        return int(value)
    if kind in ("float", "float | None"):
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    if kind == "bool":
        return _TRUTH[_text(value).lower()] if not isinstance(value, int) else _TRUTH[str(int(value))]
    if kind == "tuple[str, ...]":
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return tuple(_text(part) for part in value)
    return _text(value)


def _text(value: Any) -> str:
    """A text or a path; a number that somebody put in the place of a file name is a mistake."""
    text = os.fsdecode(value) if isinstance(value, str | os.PathLike) else None
    if text is None or "\0" in text:
        raise TypeError
    return text
