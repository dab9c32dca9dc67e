"""The Pushgateway: how a batch job ended, which no scrape would see any more. A few outcomes, never all series.

Pushed once, when the process records its end, within a bounded time; a gateway that is gone costs the push and is
counted. The last success stays on the gateway while later runs fail, because only what is pushed is replaced.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jaxobs import internals
from jaxobs.base.config import Settings
from jaxobs.base.errors import SettingError
from jaxobs.base.files.patience import Patience
from jaxobs.base.guard import internal_error, logger
from jaxobs.facts.process import Exit
from jaxobs.facts.snapshot import Snapshot
from jaxobs.state.store import Store

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

PUSH_SECONDS = 3.0
"""Seconds that a push is waited for, and so the program's end."""
MOST_LOOPS = 8

METRICS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "jax_batch_last_end_timestamp_seconds": ("When the process ended.", ()),
    "jax_batch_last_success_timestamp_seconds": ("When it ended normally; failures leave it as it was.", ()),
    "jax_batch_success": ("1 if it ended normally, 0 otherwise.", ()),
    "jax_batch_exit_info": ("How it ended: `normal`, `exception` or `signal`, and the exception or signal.",
                            ("reason", "detail")),
    "jax_batch_duration_seconds": ("Wall time of the process.", ()),
    "jax_batch_time_seconds": ("Where that time went: the categories of `jax_time_seconds_total`.", ("category",)),
    "jax_batch_goodput_ratio": ("Share of the time that went into steps; absent without steps.", ()),
    "jax_batch_steps": ("Steps by loop, of the 8 loops with most steps.", ("loop",)),
    "jax_batch_compilations": ("Executables by what the persistent cache did.", ("cache",)),
    "jax_batch_compile_seconds": ("Time in compilations, by phase.", ("phase",)),
}  # fmt: skip
"""Everything that is pushed: help and labels by name."""

Values = list[tuple[tuple[str, ...], float]]


class Pushgateway:
    """Pushes at the end of the process."""

    every = math.inf

    def __init__(self, store: Store, settings: Settings, url: str) -> None:
        self._store = store
        self._gateway, self._key, self._authorization = _target(url, settings.pushgateway_token)
        self._run_id = settings.run_id
        self._owner = os.getpid()

    def sample(self) -> None:
        """Nothing to do before the end."""

    def after_fork(self) -> None:
        """The outcome is the parent's."""

    def close(self) -> None:
        """Pushes if the process has recorded its end; no other reason to close ends a job."""
        ends, _, _ = self._store.events(kind=Exit.kind)
        if os.getpid() != self._owner or not ends or not isinstance(ends[-1], Exit):
            return
        if internals.process_index_and_count()[0] != 0:
            return
        from prometheus_client import pushadd_to_gateway

        registry = _registry(outcome(self._store.snapshot(), ends[-1]))
        job, key = self._key or (self._store.program or "jax", {"run": self._run_id} if self._run_id else {})
        try:
            Patience(PUSH_SECONDS).do(
                lambda: pushadd_to_gateway(
                    self._gateway, job, registry, key, timeout=PUSH_SECONDS, handler=self._handler
                )
            )
        except Exception as error:
            self._store.drop("pushgateway")
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, OSError):
            internal_error("pushgateway", error)
            return
        reason = getattr(error, "reason", None) or error.strerror or error
        # The program's own handlers and filters run here, and they may raise.
        with contextlib.suppress(Exception):
            if isinstance(error, TimeoutError):
                reason = f"no answer within {PUSH_SECONDS:g} s"
            logger.warning("The outcome was not pushed to %s: %s.", self._gateway, reason)

    def _handler(
        self, url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        def push() -> None:
            request = urllib.request.Request(url, data=data, method=method, headers=dict(headers))
            if self._authorization is not None:
                request.add_unredirected_header("Authorization", self._authorization)
            try:
                urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout).close()
            except urllib.error.HTTPError as error:
                error.close()
                raise OSError(f"HTTP {error.code} {error.reason}") from None

        return push


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: what is pushed is for the gateway that was named."""

    def redirect_request(self, *_: object) -> None:
        return None


def outcome(snapshot: Snapshot, end: Exit) -> dict[str, Values]:
    """The values of `METRICS`; one that is not known is absent."""
    succeeded = end.reason == "normal" and not end.code
    values: dict[str, Values] = {
        "jax_batch_last_end_timestamp_seconds": [((), end.time)],
        "jax_batch_success": [((), float(succeeded))],
        "jax_batch_exit_info": [((end.reason, end.detail or ""), 1.0)],
        "jax_batch_compile_seconds": [((phase,), each.sum) for phase, each in snapshot.phases.items()],
    }
    if succeeded:
        values["jax_batch_last_success_timestamp_seconds"] = [((), end.time)]
    wall = snapshot.wall
    if wall is not None:
        values["jax_batch_duration_seconds"] = [((), wall.wall_seconds)]
        values["jax_batch_time_seconds"] = [((name,), seconds) for name, seconds in wall.seconds.items()]
        if wall.goodput is not None:
            values["jax_batch_goodput_ratio"] = [((), wall.goodput)]
    loops = sorted(snapshot.loops, key=lambda each: each.steps, reverse=True)[:MOST_LOOPS]
    values["jax_batch_steps"] = [((each.name,), float(each.steps)) for each in loops]
    compiled: dict[str, float] = {}
    for function in snapshot.functions:
        for by_cache in function.compilations.values():
            for cache, count in by_cache.items():
                compiled[cache] = compiled.get(cache, 0.0) + count
    values["jax_batch_compilations"] = [((cache,), count) for cache, count in compiled.items()]
    return values


def _registry(values: Mapping[str, Iterable[tuple[tuple[str, ...], float]]]) -> CollectorRegistry:
    from prometheus_client import CollectorRegistry, Gauge

    registry = CollectorRegistry()
    for name, samples in values.items():
        help, labels = METRICS[name]
        gauge = Gauge(name, help, labels, registry=registry)
        for label_values, value in samples:
            (gauge.labels(*label_values) if labels else gauge).set(value)
    return registry


def _target(url: str, token: str | None) -> tuple[str, tuple[str, dict[str, Any]] | None, str | None]:
    """The gateway; job and grouping key if the address names them; and the header that opens it."""
    try:
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise SettingError(
            "`pushgateway` is not an address. Give a URL such as http://pushgateway:9091, or with your own grouping "
            "key: http://pushgateway:9091/metrics/job/nightly/run/7"
        )
    authorization = None
    if token:
        authorization = f"Bearer {token}"
    elif parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    before, found, after = parts.path.partition("/metrics/job/")
    names = [urllib.parse.unquote(each) for each in after.strip("/").split("/")]
    if found and (len(names) % 2 == 0 or not names[0]):
        raise SettingError(
            "`pushgateway` has a path that is not a grouping key. Give /metrics/job/NAME, then label and value pairs."
        )
    key = (names[0], dict(zip(names[1::2], names[2::2], strict=True))) if found else None
    gateway = urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], before.rstrip("/"), "", ""))
    return gateway, key, authorization


def exporter(store: Store, settings: Settings) -> Pushgateway | None:
    """Returns the exporter to a Pushgateway; None if the settings do not want it."""
    return Pushgateway(store, settings, settings.pushgateway) if settings.pushgateway else None
