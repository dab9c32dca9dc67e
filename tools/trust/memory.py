"""Resident memory of a busy server: without jaxobs, and scraped 10 and 100 times a second with the page open."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tools.trust import page

SERVER = """
import contextlib, os, sys, threading, time
import jax, jax.numpy as jnp
request = lambda route: contextlib.nullcontext()
if sys.argv[1] == "with":
    import jaxobs
    print(jaxobs.start(port=0).url, flush=True)
    request = jaxobs.request
else:
    print("", flush=True)
predict = jax.jit(lambda weights, x: jnp.tanh(x @ weights).sum(-1))
weights = jnp.ones((64, 64))
def serve():
    for number in range(10**9):
        with request(f"/predict/{number % 3}"):
            predict(weights, jnp.full((8, 64), 1.0 * number)).tolist()
        time.sleep(0.02)
for _ in range(2):
    threading.Thread(target=serve, daemon=True).start()
threading.Event().wait()
"""
BETWEEN_SAMPLES = 5.0
WARM_UP = 0.25
"""The first part of the time: buffers, pools and the ring of events fill."""
PAGE_POLLS = 1.0
ACCEPT = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
TOLERATED = 0.03
"""MiB a minute above the control: 43 MiB a day."""


@dataclass
class Server:
    """A busy server, and what was seen of its memory."""

    name: str
    scrapes: int = 0
    """A second; 0 is without jaxobs."""
    minutes: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)
    """MiB at these minutes."""
    answered: int = 0

    def slope(self) -> float:
        """Returns by how many MiB a minute the resident memory grew after the warm-up, by least squares."""
        kept = len(self.minutes) - int(len(self.minutes) * WARM_UP)
        times, values = self.minutes[-kept:], self.resident[-kept:]
        middle, mean = sum(times) / kept, sum(values) / kept
        spread = sum((time - middle) ** 2 for time in times)
        return sum((t - middle) * (v - mean) for t, v in zip(times, values, strict=True)) / spread

    def growth(self) -> float:
        """Returns MiB between the end of the warm-up and the end."""
        return self.resident[-1] - self.resident[int(len(self.resident) * WARM_UP)]


def measure(minutes: float) -> list[Server]:
    """Runs the three servers at one time, for so long."""
    servers = [Server("without jaxobs"), Server("10 scrapes a second", 10), Server("100 scrapes a second", 100)]
    ended = threading.Event()
    began = time.monotonic()
    processes, threads = [], []
    try:
        for server in servers:
            way = "with" if server.scrapes else "without"
            process = subprocess.Popen(
                [sys.executable, "-c", SERVER, way], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=os.environ | {"JAX_PLATFORMS": "cpu"},
            )  # fmt: skip
            processes.append(process)
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if server.scrapes:
                threads.append(threading.Thread(target=_ask, args=(server, url, "metrics", server.scrapes, ended)))
                threads.append(threading.Thread(target=_ask, args=(server, url, "api/v1/snapshot", PAGE_POLLS, ended)))
        for thread in threads:
            thread.start()
        while time.monotonic() < began + minutes * 60:
            time.sleep(BETWEEN_SAMPLES)
            for server, process in zip(servers, processes, strict=True):
                server.minutes.append((time.monotonic() - began) / 60)
                server.resident.append(_resident(process.pid))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        for process in processes:
            process.kill()
            process.wait()
    return servers


def _ask(server: Server, url: str, path: str, a_second: float, ended: threading.Event) -> None:
    """Asks so often; an answer that is late delays the next question and is not made up for."""
    asked = urllib.request.Request(url.rstrip("/") + f"/{path}", headers={"Accept": ACCEPT, "Accept-Encoding": "gzip"})
    began, skipped = time.monotonic(), 0.0
    for number in count(1):
        with urllib.request.urlopen(asked, timeout=30) as answer:
            answer.read()
        server.answered += path == "metrics"
        late = time.monotonic() - (began + skipped + number / a_second)
        skipped += max(0.0, late)
        if ended.wait(max(0.0, -late)):
            return


def _resident(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(minutes: float, markdown: Path | None = None) -> int:
    """Measures, prints the table and writes it into the page; returns 1 if memory grew more than without jaxobs."""
    servers = measure(minutes)
    text = table(servers, minutes)
    print(text)
    if markdown is not None:
        page.put(markdown, "memory", text)
    return 1 if any(_grew(server, servers[0]) for server in servers) else 0


def _grew(server: Server, control: Server) -> bool:
    return server.slope() - control.slope() > TOLERATED


def table(servers: Sequence[Server], minutes: float) -> str:
    """Returns the table of Markdown, and the course of each server's memory."""
    lines = [
        f"{minutes:g} minutes, of which the first {minutes * WARM_UP:g} are the warm-up:",
        "",
        "| server | scrapes answered | resident at the end | growth after the warm-up | slope | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for server in servers:
        lines.append(
            f"| {server.name} | {server.answered:,} | {server.resident[-1]:.1f} MiB | {server.growth():+.2f} MiB "
            f"| {server.slope():+.4f} MiB/min | {'**not held**' if _grew(server, servers[0]) else 'held'} |"
        )
    lines += ["", "MiB at the end of each tenth of the time:", ""]
    for server in servers:
        tenths = [server.resident[len(server.resident) * part // 10 - 1] for part in range(1, 11)]
        lines.append(f"- {server.name}: {', '.join(f'{tenth:.1f}' for tenth in tenths)}")
    return "\n".join(lines)
