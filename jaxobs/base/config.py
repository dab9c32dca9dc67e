"""Every setting once: its name, type, default and sentence.

A field of `Settings` gives the keyword of `jaxobs.install` and `jaxobs.start`, the environment
variable `JAXOBS_<NAME>` and the flag `--<name>`; the reference page is printed from it.
The keyword wins over the variable, the variable over the default.
"""

from __future__ import annotations

import dataclasses
import math
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base.errors import SettingError, did_you_mean

PREFIX = "JAXOBS_"
SWITCHES = ("DISABLED", "RAISE_INTERNAL_ERRORS", "ENDPOINT_CA", "ENDPOINT_CERTIFICATE", "ENDPOINT_KEY")
"""Variables that are not settings: the first turns the library off, the second is for our own tests, the others are for
commands that read an endpoint (`jaxobs.views.access`)."""

PROCESS_INDEX = "{process_index}"
"""Placeholder in the metrics file's name for JAX's index of the process, which is known when the file is written."""

PROTECTION = (
    "tls_certificate", "tls_key", "tls_client_ca", "read_token", "allowed_hosts", "request_timeout",
    "max_request_bytes", "max_connections",
)  # fmt: skip
"""The settings that say what the endpoint asks of its clients, and how much it gives them."""

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
    """Every setting. `jaxobs run --help` prints the list."""

    port: int = _setting(
        9464, ("Port of the HTTP endpoint; 0 turns the endpoint off in `jaxobs run`, and means any free port "
              "everywhere else."),
        least=0, most=65535,
    )  # fmt: skip
    addr: str = _setting("127.0.0.1", "Address that the HTTP endpoint listens on; loopback by default.")
    tls_certificate: str | None = _setting(
        None, "PEM file with the endpoint's certificate and those that lead to its authority; with it, "
              "the endpoint speaks HTTPS only. A renewed file is read again within a minute.",
    )  # fmt: skip
    tls_key: str | None = _setting(
        None, "PEM file with the private key of `tls_certificate`, without a passphrase; by default in the same file."
    )
    tls_client_ca: str | None = _setting(
        None, "PEM file with the authorities that sign client certificates (mutual TLS)."
    )
    read_token: str | None = _setting(
        None, "Token that each request must carry, as a bearer token or as the password in a browser. Only /healthz "
              "answers without it.",
        secret=True,
    )  # fmt: skip
    allowed_hosts: tuple[str, ...] = _setting(
        [], "Host names for which the endpoint answers requests, in addition to loopback and `addr`; by default, all "
            "of them unless `addr` is a loopback address.",
    )  # fmt: skip
    request_timeout: float = _setting(
        30.0, "Seconds that a client has to send its request, with the TLS handshake, and to read the response, before "
              "jaxobs closes the connection.",
        least=0.1, most=3600,
    )  # fmt: skip
    max_request_bytes: int = _setting(
        2**16, "Size of a request, with its headers, that the endpoint reads.", least=1, most=2**24
    )
    max_connections: int = _setting(
        64, "Connections that the endpoint serves at once, at most an eighth of the process's descriptors; when there "
            "are more, it closes the one that has waited longest to send its request.",
        least=4, most=10_000,
    )  # fmt: skip
    event_log: str | None = _setting(
        None,
        "File to which every event is appended as one JSON object per line. Processes on one host may "
        "share it; put `{pid}` or `{host}` into the name to separate them.",
    )  # fmt: skip
    flight_recorder: str | None = _setting(
        None, "Directory for text reports: when memory runs out, at most 10 per process, and one "
              "about the last minutes when the process crashes; by default the event log's "
              "directory; `off` for none.",
    )  # fmt: skip
    event_log_max_bytes: int = _setting(
        256 * 2**20, "Size at which the event log stops growing, and later events are counted as dropped; with "
                     "`event_log_files`, the size at which another file begins.",
        least=0,
    )  # fmt: skip
    event_log_files: int = _setting(
        0, "Number of full event logs that are kept as FILE.1 (the latest), FILE.2, and so on; 0 for no rotation.",
        least=0, most=1000,
    )  # fmt: skip
    event_log_fsync: str = _setting(
        "never", "Moment to flush the event log to disk, so that it survives a crash of the machine: after each write "
                 "(`always`), each second (`interval`), or when the system does it (`never`).",
        choices=("never", "interval", "always"),
    )  # fmt: skip
    metrics_file: str | None = _setting(
        None,
        "File to which the metrics are written as Prometheus text at exit, atomically. Each process "
        "needs its own: put `{process_index}`, `{pid}` or `{host}` into the name.",
    )  # fmt: skip
    metrics_interval: float = _setting(
        0.0, "Seconds between writes of the metrics file; 0 writes it only at exit.", least=0, most=_DAY
    )
    otlp: bool | None = _setting(
        None, "Whether metrics, traces and findings are sent to an OpenTelemetry collector; by default if "
              "OpenTelemetry's own variables ask for OTLP and its packages are installed.",
    )  # fmt: skip
    pushgateway: str | None = _setting(
        None, "URL of a Prometheus Pushgateway to which a batch job pushes its outcome at exit; it may contain "
              "a user, a password and a grouping key (/metrics/job/NAME), by default the program and `run_id`.",
        secret=True,
    )  # fmt: skip
    pushgateway_token: str | None = _setting(None, "Bearer token for the Pushgateway.", secret=True)
    tensorboard: str | None = _setting(None, "Directory for TensorBoard event files with figures and parameters.")
    wandb: str | None = _setting(
        None, "Project of Weights & Biases in which jaxobs begins a run; or 'active', for the program's own run."
    )
    mlflow: str | None = _setting(
        None, "Experiment of MLflow in which jaxobs begins a run; or 'active', for the program's own run."
    )
    instrument: tuple[str, ...] = _setting([], "MODULE:FUNCTION whose calls are also counted and timed; repeatable.")
    sample_interval: float = _setting(
        5.0,
        "Seconds between samples of device memory and live arrays. Expensive samples are taken less "
        "often, so that they use 0.4 % of a core; a shorter interval raises that in proportion, up "
        "to 5 %.",
        least=0.05,
        most=_DAY,
    )
    array_call_sites: bool = _setting(
        False,
        ("Whether groups of live arrays include the lines that created their newest arrays; leaking groups always do."),
    )
    tpu_monitoring: bool = _setting(True, "Whether libtpu's monitoring SDK is queried if the program uses TPUs.")
    dispatch_timing: str = _setting(
        "sampled", "Which calls of instrumented functions are timed: the first 1,024 and then some "
                   "of each sample interval (`sampled`), all of them (`all`), or none (`off`).",
        choices=("sampled", "all", "off"),
    )  # fmt: skip
    max_functions: int = _setting(
        200, 'Number of functions with their own series; later ones share function="<other>".', least=1, most=100_000
    )
    max_events: int = _setting(
        1000,
        "Number of recent events of each kind kept in memory for the live page and the API.",
        least=1,
        most=1_000_000,
    )
    actions: bool = _setting(
        False,
        (
            "Whether the endpoint accepts captures, at `POST /api/v1/actions/<name>`, from anyone with "
            "the `action_token`."
        ),
    )
    action_token: str | None = _setting(
        None, "Token that a request for an action must carry. Without it there are no actions over HTTP.",
        secret=True,
    )  # fmt: skip
    capture_directory: str | None = _setting(
        None, "Directory for captures; by default the event log's directory, otherwise a private temporary one."
    )
    capture_max_bytes: int = _setting(
        2**30, "Total size of the captures in the directory above which no more are taken.", least=0
    )
    capture_interval: float = _setting(
        10.0, "Seconds from the start of a capture to the next one of its kind.", least=0, most=_DAY
    )
    capture_signal: str = _setting(
        "auto", "Capture that SIGUSR2 takes: what holds the memory (`memory`), a trace of 5 steps "
                "(`profile`), or `both`; `auto` means both if nobody else handles the signal, which "
                "would end the program; `off` ignores the signal.",
        choices=("auto", "off", "memory", "profile", "both"),
    )  # fmt: skip
    transfers: bool = _setting(
        False, "Whether arrays that move between host and devices are counted, by the line that moves them."
    )
    find_loops: bool = _setting(
        True, "Whether calls of functions that are not instrumented are observed, through a hook of "
              "JAX, to find the loops of a program that marks none. It takes at most 0.2 % of the time.",
    )  # fmt: skip
    profile_interval: float = _setting(
        0.0, "Seconds between two profiles of a few steps; 0 turns profiling off. Profiles that cost more than 0.1 % "
             "of the time are taken less often.",
        least=0, most=_DAY,
    )  # fmt: skip
    peak_flops: float | None = _setting(
        None, "Peak FLOP/s of one device, for the MFU of steps; by default from its data sheet "
              "(bfloat16, dense). Set it for devices that jaxobs does not know, and for other number "
              "formats.",
        least=1,
    )  # fmt: skip
    stuck_steps: float = _setting(
        20.0, "Number of typical step times without a step after which a process of a distributed "
              "job, or one inside a declared step, is reported as stuck; 0 for never.",
        least=0,
    )  # fmt: skip
    stuck_seconds: float = _setting(
        60.0, "Minimum seconds before a process is reported as stuck, however short its steps.", least=0.5, most=_DAY,
    )  # fmt: skip
    run_id: str | None = _setting(
        None, "Name of a run that spans several processes, one after the other, such as the job's "
              "name. A file next to the event log adds up the time of all of them, the time between "
              "them, and lost work.",
    )  # fmt: skip
    static_values: bool = _setting(
        True,
        "Whether reasons quote static arguments and pytree metadata by a short text, and "
        "signatures in the event log include them.",
    )


def names() -> list[str]:
    """Returns the names of all settings, in the order of their declaration."""
    return [each.name for each in dataclasses.fields(Settings)]


def resolve(
    given: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    complain: Callable[[str], None] | None = None,
) -> Settings:
    """Returns the settings in force: keywords in `given` first, then `JAXOBS_<NAME>`, then the defaults.

    Args:
      complain: called with a sentence for each variable whose value does not fit; then the default is in force. Without
        it, such a variable is an error.

    Raises:
      SettingError: a keyword is unknown, or a value does not fit its setting.
    """
    environment = os.environ if environment is None else environment
    unknown = sorted(set(given) - set(names()))
    if unknown:
        raise SettingError(
            f"Unknown setting{'s' * (len(unknown) > 1)} {', '.join(f'`{name}`' for name in unknown)}. "
            f"{did_you_mean(unknown[0], names())}Known settings: {', '.join(names())}."
        )
    values: dict[str, Any] = {}
    for setting in dataclasses.fields(Settings):
        variable = PREFIX + setting.name.upper()
        if given.get(setting.name) is not None:
            values[setting.name] = _checked(setting, given[setting.name], f"`{setting.name}`")
        elif environment.get(variable):
            try:
                values[setting.name] = _checked(setting, environment[variable], f"`{variable}`")
            except SettingError as error:
                if complain is None:
                    raise
                complain(f"{error} The variable is ignored.")
    for name in _PER_PROCESS & values.keys():
        values[name] = _of_this_process(name, values[name])
    return Settings(**values)


def flag(name: str) -> str:
    """Returns the option for a setting. A token's names a file: other users can read command lines."""
    return f"--{name.replace('_', '-')}" + "-file" * name.endswith("_token")


def of_environment() -> Settings:
    """Returns the environment's settings; the defaults if a value is wrong, of which `install` warns."""
    try:
        return resolve({})
    except SettingError:
        return Settings()


_PER_PROCESS = {"event_log", "metrics_file", "flight_recorder", "capture_directory"}


def _of_this_process(name: str, path: str) -> str:
    """Returns the path with the number of this process and its host filled in."""
    if PROCESS_INDEX in path and name != "metrics_file":
        raise SettingError(
            f"`{name}` is {path!r:.100}, but JAX's process index is not known yet when it is opened. "
            "Put {pid} or {host} into the name."
        )
    if PROCESS_INDEX in os.path.dirname(path):
        raise SettingError(
            f"`{name}` is {path!r:.100}: {PROCESS_INDEX} may be in the name of the file, but not in its directory."
        )
    return path.replace("{pid}", str(os.getpid())).replace("{host}", platform.node())


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Returns a sentence for each unknown variable `JAXOBS_...`: a misspelt one would be ignored in silence."""
    environment = os.environ if environment is None else environment
    known = [PREFIX + name.upper() for name in (*names(), *SWITCHES)]
    return [
        f"The variable `{name}` is set, but jaxobs has no such setting. {_meant(name)}"
        "`jaxobs run --help` lists them all."
        for name in sorted(environment)
        if name.startswith(PREFIX) and name not in known
    ]


def _meant(variable: str) -> str:
    # Without the prefix, by which any two of them look alike.
    meant = did_you_mean(variable.removeprefix(PREFIX), [each.upper() for each in (*names(), *SWITCHES)])
    return meant.replace("`", f"`{PREFIX}", 1)


def disabled(environment: Mapping[str, str] | None = None) -> bool:
    """Returns whether `JAXOBS_DISABLED` turns the library into a no-op."""
    environment = os.environ if environment is None else environment
    return environment.get(PREFIX + "DISABLED", "").lower() in ("1", "true", "yes", "on")


def _checked(each: dataclasses.Field[Any], value: Any, source: str) -> Any:
    """Returns `value` in the type of the setting, or raises a SettingError that names where it came from."""
    try:
        parsed = _parsed(str(each.type), value)
    except (KeyError, OverflowError, TypeError, ValueError):
        shown = "secret" if each.metadata["secret"] else f"{value!r:.100}"
        raise SettingError(
            f"{source} is {shown}, which is not a valid {_KINDS[str(each.type)]}. {each.metadata['help']}"
        ) from None
    least, most, choices = (each.metadata[name] for name in ("least", "most", "choices"))
    if least is not None and not least <= parsed <= most:
        bounds = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:.15g}"
        raise SettingError(f"{source} is {value!r:.100}, but must be {bounds}. {each.metadata['help']}")
    if choices and parsed not in choices:
        raise SettingError(f"{source} is {value!r:.100}. Known values: {', '.join(choices)}.")
    return parsed


_KINDS = {
    "bool | None": "Boolean (1/0, true/false, yes/no, on/off)",
    "int": "integer",
    "float": "number",
    "float | None": "number",
    "str": "text",
    "str | None": "text",
    "bool": "Boolean (1/0, true/false, yes/no, on/off)",
    "tuple[str, ...]": "list of strings",
}
_TRUTH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _parsed(kind: str, value: Any) -> Any:
    if kind == "int":
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError
        return int(value)
    if kind in ("float", "float | None"):
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    if kind in ("bool", "bool | None"):
        return _TRUTH[_text(value).lower()] if not isinstance(value, int) else _TRUTH[str(int(value))]
    if kind == "tuple[str, ...]":
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return tuple(_text(part) for part in value)
    return _text(value)


def _text(value: Any) -> str:
    """Returns a text or path as text; a number instead of a file name is a mistake."""
    text = os.fsdecode(value) if isinstance(value, str | os.PathLike) else None
    if text is None or "\0" in text:
        raise TypeError
    return text
