"""Program with greenlets as threads: `greenlets.py gevent|eventlet first|late FOLDER` replaces them, and computes."""

# ruff: noqa: E402
from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

library, when, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def patch() -> None:
    """Replaces threads by greenlets."""
    if library == "gevent":
        from gevent import monkey

        monkey.patch_all()
    else:
        import eventlet

        eventlet.monkey_patch()


if when == "first":
    patch()

import jaxobs

jaxobs.start(port=0, event_log=str(folder / "events.jsonl"))

import time
import urllib.request

import jax
import numpy as np

if when == "late":
    patch()

import greenlet

switches: list[str] = []


def on_switch(event: str, given: Any) -> None:
    """Notes where a greenlet of the program lets others run: nowhere in jaxobs, which JAX calls while it compiles."""
    frame = given[0].gr_frame
    stack = traceback.extract_stack(frame) if frame is not None else []
    switches.extend(each.filename for each in stack[-12:] if "/jaxobs/" in each.filename)


@jax.jit
def step(x: Any) -> Any:
    return (x @ x).sum()


def train(width: int) -> float:
    """A loop that lets other greenlets run between its steps."""
    total = 0.0
    for _ in range(20):
        total += float(step(np.ones((width, width), np.float32)))
        time.sleep(0.01)
    return total


greenlet.settrace(on_switch)
if library == "gevent":
    import gevent

    started = [gevent.spawn(train, width) for width in (1, 2, 3)]
    gevent.joinall(started)
    found = [each.value for each in started]
else:
    import eventlet

    found = list(eventlet.GreenPool().imap(train, (1, 2, 3)))
greenlet.settrace(None)
url = jaxobs.serve().url
metrics = urllib.request.urlopen(f"{url}metrics", timeout=60).read().decode()
compiled = sum(
    float(line.rpartition(" ")[2])
    for line in metrics.splitlines()
    if line.startswith('jax_compilations_total{function="__main__.step"')
)
print(found, compiled, switches, dict(jaxobs.snapshot().observer.internal_errors), flush=True)
