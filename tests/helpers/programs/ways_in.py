"""Way into jaxobs, and a stopwatch: `ways_in.py WAY` prints what the program measured and what the account says."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

import jaxobs

WAY = sys.argv[1] if len(sys.argv) > 1 else "run"
TURNS, TURN = 120, 0.02
measured: dict[str, float] = {}
late = [0.0]
"""How much longer naps took than they should: so late may the looks of jaxobs have been, too."""

CELLS = [
    "import jax, jax.numpy as jnp",
    "@jax.jit\ndef train_step(w):\n    return jnp.tanh(w @ w)",
    "w = train_step(jnp.ones((32, 32)))",
    "with watch('step'):\n    for _ in range(TURNS):\n        w = train_step(w)\n        time.sleep(TURN)",
    "rest()",
]


@contextmanager
def watch(name: str) -> Iterator[None]:
    """The stopwatch."""
    began = time.perf_counter()
    yield
    measured[name] = measured.get(name, 0.0) + time.perf_counter() - began


def doze() -> None:
    while True:
        began = time.perf_counter()
        time.sleep(0.01)
        late[0] += time.perf_counter() - began - 0.01


def rest() -> None:
    """After the loop; until the end."""
    measured["idle"] = -time.perf_counter()
    time.sleep(1.5)


def square(w: Any) -> Any:
    return jnp.tanh(w @ w)


def train(step: Callable[[Any], Any]) -> None:
    """A loop, and then nothing."""
    w = step(jnp.ones((32, 32)))
    with watch("step"):
        for _ in range(TURNS):
            w = step(w)
            time.sleep(TURN)
    rest()


def work() -> None:
    """In a process of its own."""
    threading.Thread(target=doze, daemon=True).start()
    jaxobs.install(sample_interval=0.5)
    train(jax.jit(square))
    tell()


def serve(app: Any, threaded: bool) -> None:
    """Requests over HTTP, some of which compile."""
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    class Threads(ThreadingMixIn, WSGIServer): ...

    with make_server("127.0.0.1", 0, app, Threads if threaded else WSGIServer, Quiet) as server:

        def ask() -> None:
            for number in range(60):
                urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{size(number)}", timeout=60).read()
                time.sleep(TURN)
            server.shutdown()

        client = threading.Thread(target=ask)
        client.start()
        server.serve_forever()
        client.join()


def size(number: int) -> int:
    return 60 + min(number, 8)


jitted = jax.jit(lambda x: sum((jnp.tanh(x @ x.T) @ x for _ in range(20)), x).sum())


def application(environ: Any, start_response: Any) -> list[bytes]:
    """A model behind WSGI."""
    answer = float(jitted(jnp.ones((32, int(environ["PATH_INFO"][1:])))))
    start_response("200 OK", [])
    return [str(answer).encode()]


async def asgi_application(scope: Any, receive: Any, send: Any) -> None:
    """A model behind ASGI, computed on a thread as frameworks do."""
    await asyncio.to_thread(lambda: float(jitted(jnp.ones((32, int(scope["path"][1:]))))))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def asked(app: Any) -> None:
    """Requests to an ASGI application."""

    async def nothing(*_: Any) -> Any:
        return {"type": "http.request"}

    for number in range(60):
        scope = {"type": "http", "method": "GET", "path": f"/{size(number)}", "route": None, "headers": []}
        await app(scope, nothing, nothing)
        await asyncio.sleep(TURN)


def tell() -> None:
    """Prints both."""
    from jaxobs.session import lifecycle

    if lifecycle._session is not None:
        lifecycle._session.sample()
    if "idle" in measured:
        measured["idle"] += time.perf_counter()
    snapshot = jaxobs.snapshot()
    assert snapshot.wall is not None
    told = {
        "measured": measured,
        "seconds": dict(snapshot.wall.seconds),
        "wall": snapshot.wall.wall_seconds,
        "late": late[0],
        "loops": {each.name: each.steps for each in snapshot.loops},
        "phases": sum(sum(each.phase_seconds.values()) for each in snapshot.functions),
        "errors": dict(snapshot.observer.internal_errors),
    }
    print(json.dumps(told), flush=True)


def main() -> None:
    """The way in."""
    threading.Thread(target=doze, daemon=True).start()
    if WAY == "start":
        jaxobs.start(port=0, sample_interval=0.5)
    elif WAY not in ("run", "worker"):
        jaxobs.install(sample_interval=0.5)
    if WAY == "decorated":
        train(jaxobs.jit(square))
    elif WAY == "thread":
        trainer = threading.Thread(target=train, args=(jax.jit(square),))
        trainer.start()
        trainer.join()
    elif WAY == "cells":
        namespace = {"watch": watch, "rest": rest, "time": time, "TURNS": TURNS, "TURN": TURN, "__name__": "__main__"}

        def run_cell(number: int) -> None:
            exec(compile(CELLS[number], f"<cell {number}>", "exec"), namespace)

        list(map(run_cell, range(len(CELLS))))  # no loop of the program's own: a notebook has none around its cells
    elif WAY == "worker":
        process = multiprocessing.get_context("spawn").Process(target=work)
        process.start()
        process.join()
        return
    elif WAY in ("wsgi", "wsgi threads"):
        serve(jaxobs.wsgi(application), WAY == "wsgi threads")
    elif WAY == "wsgi, not wrapped":
        serve(application, True)
    elif WAY == "asgi":
        asyncio.run(asked(jaxobs.asgi(asgi_application)))
    else:
        train(jax.jit(square))
    tell()


if __name__ == "__main__":
    main()
