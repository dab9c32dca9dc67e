"""Beginning of the programs of test_persistent_cache.py: a function to compile, and the truth beside jaxobs' facts.

The truth comes from JAX's own log lines and warnings, from the compiler's entry, counted as it is called, and from the
files in the cache's directory.
"""

from __future__ import annotations

import json
import logging
import os
import re
import warnings
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs
from benchmarks.corpus import truth

REASONS = {
    "because it took <": "too_fast",
    "since its size": "too_small",
    "since process_id != 0": "not_writer",
    "because it uses host callbacks": "callbacks",
    "cache is disabled/not initialized": "disabled",
}
"""Why JAX does not write, by a piece of its log line."""

lines: list[str] = []


class _Keep(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        lines.append(record.getMessage())


def begin(cache: str | None, log: str | None = None, **options: Any) -> None:
    """Sets the cache up with its thresholds at nothing, keeps what JAX logs, and installs jaxobs."""
    for name in ("compiler", "compilation_cache", "cache_key"):
        logger = logging.getLogger(f"jax._src.{name}")
        logger.addHandler(_Keep())
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    warnings.showwarning = lambda message, *_, **__: lines.append(str(message))
    chosen = {"compilation_cache_dir": cache, "persistent_cache_min_compile_time_secs": 0.0}
    for name, value in {**chosen, "persistent_cache_min_entry_size_bytes": -1, **options}.items():
        jax.config.update(f"jax_{name}", value)
    truth.count_truth()
    jaxobs.install(event_log=log)


def step(size: int, factor: float = 1.0, *, say: bool = False, **jit_options: Any) -> Any:
    """Compiles a function of that size and factor, as if this were a fresh process."""

    def train_step(x: Any) -> Any:
        y = jnp.sin(x) @ x * factor
        if say:
            jax.debug.callback(lambda value: None, y.sum())
        return y

    jax.clear_caches()
    return jax.jit(train_step, **jit_options)(jax.device_put(np.ones((size, size), np.float32)))


def end() -> None:
    """Prints what jaxobs told, and the truth."""
    from jaxobs.state import store

    events = [event for event in store.current().events()[0] if "train_step" in getattr(event, "function", "")]
    told = [next((reason for piece, reason in REASONS.items() if piece in line), None) for line in lines]
    snapshot = jaxobs.snapshot()
    report = {
        "pid": os.getpid(),
        "compilations": [_facts(event) for event in events if event.kind == "compilation"],
        "lookups": [_facts(event) for event in events if event.kind == "cache_lookup"],
        "unsaved": dict(snapshot.cache.unsaved),
        "saved_seconds": snapshot.cache.saved_seconds,
        "enabled": snapshot.cache.enabled,
        "internal_errors": dict(snapshot.observer.internal_errors),
        "dropped": dict(snapshot.observer.dropped),
        "true_reasons": Counter(reason for reason in told if reason),
        "true_sizes": [int(m[1]) for line in lines if (m := re.search(r"since its size \((\d+) bytes\)", line))],
        "true_compiles": truth.compiled["train_step"],
        "warnings": [line for line in lines if line.startswith("Error ")],
        "digests": [m[1] for line in lines if (m := re.match(r"get_cache_key hash of serialized .*: (\w+)", line))],
    }
    print(json.dumps(report))


def _facts(event: Any) -> dict[str, Any]:
    from jaxobs.facts.events import as_event

    return as_event(event)
