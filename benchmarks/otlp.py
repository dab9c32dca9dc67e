"""`python -m benchmarks.otlp`: what exporting every second adds to a program, whatever the collector does.

It needs a quiet machine and some minutes: the difference of two blocks of a few seconds is to be told from none.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import Figure, interval

STEPS = 3000
PAIRS = 20
QUICK_PAIRS = 6
LIMIT = 2.0
"""Percent. By default metrics are exported every 60 s, not every second as here."""
_RECEIVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@contextlib.contextmanager
def _answers() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", _RECEIVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def _is_silent() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@contextlib.contextmanager
def _is_dead() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    yield port


MOODS = {"answers": _answers, "accepts and never answers": _is_silent, "is not there": _is_dead}


def measured(quick: bool) -> list[Figure]:
    """Steps of a small training loop with a recompilation in each block, with the export and without, by turns."""
    import jax.numpy as jnp

    import jaxobs
    from jaxobs.exporters import otlp

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    os.environ.update(OTEL_METRIC_EXPORT_INTERVAL="1000", OTEL_BSP_SCHEDULE_DELAY="1000")
    otlp.END_SECONDS = 0.2
    step = jaxobs.jit(lambda x: jnp.tanh(x @ x))
    sizes = itertools.count(10)
    x = jnp.ones((256, 256))

    def block(export: bool) -> float:
        """Seconds of a block: its steps, and one compilation."""
        jaxobs.install(otlp=export)
        started = time.perf_counter()
        _steps(jaxobs, step, x)
        size = next(sizes)
        step(x[:size, :size])
        seconds = time.perf_counter() - started
        jaxobs.install(otlp=False)
        return seconds

    block(export=False)
    figures = []
    for mood, receiver in MOODS.items():
        with receiver() as port:
            os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
            block(export=True)
            shares = []
            for _, swapped in zip(range(QUICK_PAIRS if quick else PAIRS), itertools.cycle((False, True)), strict=False):
                first, second = block(export=swapped), block(export=not swapped)
                exported, bare = (first, second) if swapped else (second, first)
                shares.append((exported / bare - 1) * 100)
        low, high = interval(shares)
        figures += [
            Figure(
                name=f"a collector that {mood} adds", value=statistics.median(shares), unit="%",
                note=f"95 % confidence: {low:+.1f} to {high:+.1f}", compared=False,
            ),
            Figure(
                name=f"a collector that {mood} surely adds", value=max(0.0, low), unit="%", limit=LIMIT,
                note="lower end of the confidence interval", compared=False,
            ),
        ]  # fmt: skip
    jaxobs.uninstall()
    return figures


def _steps(jaxobs: Any, step: Any, x: Any) -> None:
    for _ in range(STEPS):
        with jaxobs.step("train"):
            step(x).block_until_ready()


if __name__ == "__main__":
    for each in measured("--quick" in sys.argv):
        print(f"{each.name}: {each.value:.2f} {each.unit} ({each.note})")
