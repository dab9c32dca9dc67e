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


class ProtectionTypes(TypedDict, total=False):
    """Settings that protect the endpoint."""

    tls_certificate: str | PathLike[str] | None
    """PEM file with the endpoint's certificate and those that lead to its authority; with it, the endpoint speaks HTTPS
    only. A renewed file is read again within a minute."""
    tls_key: str | PathLike[str] | None
    """PEM file with the private key of `tls_certificate`, without a passphrase; by default in the same file."""
    tls_client_ca: str | PathLike[str] | None
    """PEM file with the authorities that sign client certificates (mutual TLS)."""
    read_token: str | None
    """Token that each request must carry, as a bearer token or as the password in a browser. Only /healthz answers
    without it."""
    allowed_hosts: Sequence[str] | None
    """Host names for which the endpoint answers requests, in addition to loopback and `addr`; by default, all of them
    unless `addr` is a loopback address."""
    request_timeout: float | None
    """Seconds that a client has to send its request, with the TLS handshake, and to read the response, before jaxobs
    closes the connection."""
    max_request_bytes: int | None
    """Size of a request, with its headers, that the endpoint reads."""
    max_connections: int | None
    """Connections that the endpoint serves at once, at most an eighth of the process's descriptors; when there are
    more, it closes the one that has waited longest to send its request."""


class SettingsTypes(ProtectionTypes, total=False):
    """Every setting."""

    port: int | None
    """Port of the HTTP endpoint; 0 turns the endpoint off in `jaxobs run`, and means any free port everywhere else."""
    addr: str | None
    """Address that the HTTP endpoint listens on; loopback by default."""
    event_log: str | PathLike[str] | None
    """File to which every event is appended as one JSON object per line. Processes on one host may share it; put
    `{pid}` or `{host}` into the name to separate them."""
    flight_recorder: str | PathLike[str] | None
    """Directory for text reports: when memory runs out, at most 10 per process, and one about the last minutes when the
    process crashes; by default the event log's directory; `off` for none."""
    event_log_max_bytes: int | None
    """Size at which the event log stops growing, and later events are counted as dropped; with `event_log_files`, the
    size at which another file begins."""
    event_log_files: int | None
    """Number of full event logs that are kept as FILE.1 (the latest), FILE.2, and so on; 0 for no rotation."""
    event_log_fsync: Literal["never", "interval", "always"] | None
    """Moment to flush the event log to disk, so that it survives a crash of the machine: after each write (`always`),
    each second (`interval`), or when the system does it (`never`)."""
    metrics_file: str | PathLike[str] | None
    """File to which the metrics are written as Prometheus text at exit, atomically. Each process needs its own: put
    `{process_index}`, `{pid}` or `{host}` into the name."""
    metrics_interval: float | None
    """Seconds between writes of the metrics file; 0 writes it only at exit."""
    otlp: bool | None
    """Whether metrics, traces and findings are sent to an OpenTelemetry collector; by default if OpenTelemetry's own
    variables ask for OTLP and its packages are installed."""
    pushgateway: str | None
    """URL of a Prometheus Pushgateway to which a batch job pushes its outcome at exit; it may contain a user, a
    password and a grouping key (/metrics/job/NAME), by default the program and `run_id`."""
    pushgateway_token: str | None
    """Bearer token for the Pushgateway."""
    tensorboard: str | PathLike[str] | None
    """Directory for TensorBoard event files with figures and parameters."""
    wandb: str | None
    """Project of Weights & Biases in which jaxobs begins a run; or 'active', for the program's own run."""
    mlflow: str | None
    """Experiment of MLflow in which jaxobs begins a run; or 'active', for the program's own run."""
    instrument: Sequence[str] | None
    """MODULE:FUNCTION whose calls are also counted and timed; repeatable."""
    sample_interval: float | None
    """Seconds between samples of device memory and live arrays. Expensive samples are taken less often, so that they
    use 0.4 % of a core; a shorter interval raises that in proportion, up to 5 %."""
    array_call_sites: bool | None
    """Whether groups of live arrays include the lines that created their newest arrays; leaking groups always do."""
    tpu_monitoring: bool | None
    """Whether libtpu's monitoring SDK is queried if the program uses TPUs."""
    dispatch_timing: Literal["sampled", "all", "off"] | None
    """Which calls of instrumented functions are timed: the first 1,024 and then some of each sample interval
    (`sampled`), all of them (`all`), or none (`off`)."""
    max_functions: int | None
    """Number of functions with their own series; later ones share function="<other>"."""
    max_events: int | None
    """Number of recent events of each kind kept in memory for the live page and the API."""
    actions: bool | None
    """Whether the endpoint accepts captures, at `POST /api/v1/actions/<name>`, from anyone with the `action_token`."""
    action_token: str | None
    """Token that a request for an action must carry. Without it there are no actions over HTTP."""
    capture_directory: str | PathLike[str] | None
    """Directory for captures; by default the event log's directory, otherwise a private temporary one."""
    capture_max_bytes: int | None
    """Total size of the captures in the directory above which no more are taken."""
    capture_interval: float | None
    """Seconds from the start of a capture to the next one of its kind."""
    capture_signal: Literal["auto", "off", "memory", "profile", "both"] | None
    """Capture that SIGUSR2 takes: what holds the memory (`memory`), a trace of 5 steps (`profile`), or `both`; `auto`
    means both if nobody else handles the signal, which would end the program; `off` ignores the signal."""
    transfers: bool | None
    """Whether arrays that move between host and devices are counted, by the line that moves them."""
    find_loops: bool | None
    """Whether calls of functions that are not instrumented are observed, through a hook of JAX, to find the loops of a
    program that marks none. It takes at most 0.2 % of the time."""
    profile_interval: float | None
    """Seconds between two profiles of a few steps; 0 turns profiling off. Profiles that cost more than 0.1 % of the
    time are taken less often."""
    peak_flops: float | None
    """Peak FLOP/s of one device, for the MFU of steps; by default from its data sheet (bfloat16, dense). Set it for
    devices that jaxobs does not know, and for other number formats."""
    stuck_steps: float | None
    """Number of typical step times without a step after which a process of a distributed job, or one inside a declared
    step, is reported as stuck; 0 for never."""
    stuck_seconds: float | None
    """Minimum seconds before a process is reported as stuck, however short its steps."""
    run_id: str | None
    """Name of a run that spans several processes, one after the other, such as the job's name. A file next to the event
    log adds up the time of all of them, the time between them, and lost work."""
    static_values: bool | None
    """Whether reasons quote static arguments and pytree metadata by a short text, and signatures in the event log
    include them."""


class InstallSettings(SettingsTypes, total=False):
    """Every setting, and the program's own providers of OpenTelemetry."""

    meter_provider: MeterProvider | None
    tracer_provider: TracerProvider | None
    logger_provider: LoggerProvider | None
