"""The serving example under load: of all requests exactly those that met a new batch size are marked cold."""

from __future__ import annotations

import contextlib
import http.client
import json
import pathlib
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.matrix import interpreter
from helpers.paths import ROOT
from helpers.requirements import package
from helpers.served_example import running
from helpers.waiting import HANG_SECONDS, until

from tools.environments import RAY
from tools.ports import free_port

THREADS = 8
PER_THREAD = 50

pytestmark = pytest.mark.slow


@dataclass
class Served:
    """The example in a process of its own."""

    port: int
    metrics_port: int

    def ask_all(self, sizes: Iterable[int]) -> list[tuple[int, bool, float]]:
        """A request of each size over one connection: status, whether it says it was cold, seconds for the client."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            return [self._ask(connection, rows) for rows in sizes]

    def _ask(self, connection: http.client.HTTPConnection, rows: int) -> tuple[int, bool, float]:
        body = json.dumps({"rows": [[0.5, 0.1, 0.7, 0.2]] * rows})
        began = time.perf_counter()
        connection.request("POST", "/predict", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        seconds = time.perf_counter() - began
        if answer.status == 200:
            assert len(told["classes"]) == rows
        return answer.status, told.get("cold", False), seconds

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/{path}", timeout=120) as answer:
            return str(answer.read().decode())

    def routes(self) -> dict[str, Any]:
        return {each["route"]: each for each in json.loads(self.get("api/v1/snapshot"))["routes"]}


@pytest.fixture
def served() -> Iterator[Served]:
    """The example, with the batch sizes 1, 2 and 4 compiled before."""
    package("fastapi")
    package("uvicorn")
    found = Served(free_port(), free_port())
    arguments = ("--port", str(found.port), "--warm", "1,2,4")
    with running("serve_fastapi.py", *arguments, ready=found.port, JAXOBS_PORT=str(found.metrics_port)):
        yield found


def test_exactly_the_cold_requests_are_marked_cold(served: Served) -> None:
    """Cold starts by one client, then eight clients that want a new size at once, then a steady load of all sizes."""
    assert [cold for _, cold, _ in served.ask_all((1, 2, 3, 4))] == [False] * 4  # warmed up
    assert [cold for _, cold, _ in served.ask_all((7, 8, 5, 16, 9))] == [True, False, False, True, False]
    with ThreadPoolExecutor(THREADS) as pool:
        at_once = [each for (each,) in pool.map(served.ask_all, [(30,)] * THREADS)]
        assert Counter(cold for _, cold, _ in at_once) == {True: 1, False: THREADS - 1}
        sizes = [[1 + (client + n) % 32 for n in range(PER_THREAD)] for client in range(THREADS)]
        answers = [each for client in pool.map(served.ask_all, sizes) for each in client]
    assert {(status, cold) for status, cold, _ in answers} == {(200, False)}
    steady = sorted(seconds for _, _, seconds in answers)
    assert served.ask_all([33])[0][0] == 422

    requests = 4 + 5 + THREADS + THREADS * PER_THREAD
    found = served.routes()
    assert found["model"]["requests"] == {"true": {"ok": 3}, "false": {"ok": requests - 3}}
    assert found["/predict"]["requests"] == {"true": {"ok": 3}, "false": {"ok": requests - 3, "client_error": 1}}
    told = found["/predict"]["latest_cold"]
    reasons = [each["compiled"][0]["reason"] for each in told]
    assert [re.findall(r"float32\[(\d+),4\]", each)[-1] for each in reasons] == ["32", "16", "8"]
    assert {each["compiled"][0]["function"] for each in told} == {"__main__.classify"}
    assert 0 < found["/predict"]["waited"] < THREADS

    warm, cold = found["/predict"]["warm"], found["/predict"]["cold"]
    assert warm["p50"] <= steady[len(steady) // 2]
    assert cold["longest"] >= max(each["compiled"][0]["seconds"] for each in told)
    assert found["model"]["batches"] == requests
    text = served.get("metrics")
    assert 'jax_requests_total{route="/predict",cold="true",outcome="ok"} 3' in text.replace(".0\n", "\n")


@pytest.mark.ray
def test_ray_serve(tmp_path: pathlib.Path) -> None:
    """A replica of Ray Serve, in an environment of its own, tells its requests at an endpoint of its own."""
    python = interpreter(RAY)
    found = Served(free_port(), free_port())
    arguments = ("--port", str(found.port), "--endpoint-port", str(found.metrics_port))
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    with running("serve_ray.py", *arguments, ready=found.metrics_port, python=python, **quiet):

        def ask(size: int) -> bool:
            with urllib.request.urlopen(f"http://127.0.0.1:{found.port}/?size={size}", timeout=120) as answer:
                return bool(json.loads(answer.read())["cold"])

        wait_until_routed(f"http://127.0.0.1:{found.port}/-/healthz")
        assert [ask(size) for size in (1, 2, 3, 3, 1, 4, 4)] == [False, False, True, False, False, True, False]
        assert found.routes()["doubled"]["requests"] == {"true": {"ok": 2}, "false": {"ok": 5}}


def wait_until_routed(url: str) -> None:
    until(lambda: answers(url))


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=HANG_SECONDS).close()
    except OSError:
        return False
    return True
