"""The serving examples under load: what they expose against what their clients count and time themselves."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from helpers.matrix import interpreter
from helpers.paths import ROOT
from helpers.requirements import package
from helpers.waiting import HANG_SECONDS, until

from tools.environments import BENTOML, RAY, TRITON
from tools.ports import free_port

THREADS, PER_THREAD = 8, 50
CLIENTS, QUESTIONS = 8, 40

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def running(
    program: str, *arguments: str, ready: int, python: str | pathlib.Path = sys.executable, **variables: str
) -> Iterator[None]:
    """An example in a process group of its own, from when its port `ready` answers until it is interrupted."""
    with running_command([str(python), str(ROOT / "examples" / program), *arguments], ready, variables):
        yield


@contextlib.contextmanager
def running_command(command: Sequence[str], ready: int, variables: Mapping[str, str]) -> Iterator[None]:
    known = {**os.environ, "JAX_PLATFORMS": "cpu", **variables}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=known, stdout=output, stderr=output, start_new_session=True)
        try:
            wait_for(ready, process)
            if process.poll() is not None:
                output.seek(0)
                pytest.fail(output.read())
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + 120
    while (process is None or process.poll() is None) and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)


@dataclass
class Served:
    """An example in a process of its own."""

    port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)

    @contextlib.contextmanager
    def running(self, program: str, *options: str) -> Iterator[Served]:
        package("fastapi")
        package("uvicorn")
        arguments = ("--port", str(self.port), *options)
        with running(program, *arguments, ready=self.port, JAXOBS_PORT=str(self.metrics_port)):
            yield self

    def connected(self) -> contextlib.closing[http.client.HTTPConnection]:
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120))

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/{path}", timeout=120) as answer:
            return str(answer.read().decode())

    def routes(self) -> dict[str, Any]:
        return {each["route"]: each for each in json.loads(self.get("api/v1/snapshot"))["routes"]}

    def metrics(self) -> dict[str, float]:
        """By name and labels, as exposed."""
        lines = (line.rpartition(" ") for line in self.get("metrics").splitlines() if line[0] != "#")
        return {name: float(value) for name, _, value in lines}


def post(connection: http.client.HTTPConnection, path: str, **body: object) -> http.client.HTTPResponse:
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    return connection.getresponse()


# ------------------------------------------------------------------------------------------------- a classifier


def predict(
    served: Served, sizes: Iterable[int], connected: Callable[[], object] = lambda: None
) -> list[tuple[int, bool, float]]:
    """A request of each size over one connection: status, whether it says it was cold, seconds for the client."""
    found = []
    with served.connected() as connection:
        connection.connect()
        connected()
        for rows in sizes:
            began = time.perf_counter()
            answer = post(connection, "/predict", rows=[[0.5, 0.1, 0.7, 0.2]] * rows)
            told = json.loads(answer.read())
            found.append((answer.status, told.get("cold", False), time.perf_counter() - began))
            assert answer.status != 200 or len(told["classes"]) == rows
    return found


def test_exactly_the_cold_requests_are_marked_cold() -> None:
    """Cold starts by one client, eight clients that want a new size at once, twice, and a steady load of all sizes."""
    with Served().running("serve_fastapi.py", "--warm", "1,2,4") as served:

        def ask_all(sizes: Iterable[int]) -> list[tuple[int, bool, float]]:
            return predict(served, sizes)

        assert [cold for _, cold, _ in ask_all((1, 2, 3, 4))] == [False] * 4  # warmed up
        assert [cold for _, cold, _ in ask_all((7, 8, 5))] == [True, False, False]
        with ThreadPoolExecutor(THREADS) as pool:
            for size in (16, 30):
                together = threading.Barrier(THREADS)
                asked = pool.map(lambda size, wait=together.wait: predict(served, [size], wait), [size] * THREADS)
                at_once = [each for (each,) in asked]
                assert Counter(cold for _, cold, _ in at_once) == {True: 1, False: THREADS - 1}
            assert [cold for _, cold, _ in ask_all((9,))] == [False]
            sizes = [[1 + (client + n) % 32 for n in range(PER_THREAD)] for client in range(THREADS)]
            answers = [each for client in pool.map(ask_all, sizes) for each in client]
        assert {(status, cold) for status, cold, _ in answers} == {(200, False)}
        steady = sorted(seconds for _, _, seconds in answers)
        assert ask_all([33])[0][0] == 422

        requests = 4 + 3 + 2 * THREADS + 1 + THREADS * PER_THREAD
        found = served.routes()
        assert found["model"]["requests"] == {"true": {"ok": 3}, "false": {"ok": requests - 3}}
        assert found["/predict"]["requests"] == {"true": {"ok": 3}, "false": {"ok": requests - 3, "client_error": 1}}
        told = found["/predict"]["latest_cold"]
        reasons = [each["compiled"][0]["reason"] for each in told]
        assert [re.findall(r"float32\[(\d+),4\]", each)[-1] for each in reasons] == ["32", "16", "8"]
        assert {each["compiled"][0]["function"] for each in told} == {"__main__.classify"}
        assert 0 < found["/predict"]["waited"] < 2 * THREADS

        assert found["/predict"]["warm"]["p50"] <= steady[len(steady) // 2]
        assert found["/predict"]["cold"]["longest"] >= max(each["compiled"][0]["seconds"] for each in told)
        assert found["model"]["batches"] == requests
        assert served.metrics()['jax_requests_total{route="/predict",cold="true",outcome="ok"}'] == 3


def test_exported_programs(tmp_path: pathlib.Path) -> None:
    """Programs of `jax.export`, read from files, are known by the name of the function that they were made from."""
    package("flatbuffers")
    write = [sys.executable, str(ROOT / "examples" / "serve_exported.py"), "--export", str(tmp_path)]
    subprocess.run(write, env={**os.environ, "JAX_PLATFORMS": "cpu"}, check=True)
    with Served().running("serve_exported.py", str(tmp_path), "--warm", "1,4") as served:
        assert [cold for _, cold, _ in predict(served, (1, 3, 5, 16, 2))] == [False, False, True, False, False]
        assert served.routes()["model"]["requests"] == {"true": {"ok": 1}, "false": {"ok": 4}}
        compiled = 'jax_compilations_total{function="classify",cause="first_call",cache="disabled"}'
        assert served.metrics()[compiled] == 3
        assert served.metrics()['jax_checkpointed_bytes_total{operation="restore"}'] == 4 * (4 * 256 + 256 * 3)


ASKED = (1, 2, 3, 3, 1, 4, 4)
COLD = [False, False, True, False, False, True, False]
"""Sizes of requests, of which the servers below compile the first two before, and the answers that were cold."""


def told_exactly(found: Served) -> None:
    assert found.routes()["doubled"]["requests"] == {"true": {"ok": 2}, "false": {"ok": 5}}


@pytest.mark.ray
def test_ray_serve(tmp_path: pathlib.Path) -> None:
    """A replica of Ray Serve, in an environment of its own, tells its requests at an endpoint of its own."""
    python = interpreter(RAY)
    found = Served()
    arguments = ("--port", str(found.port), "--endpoint-port", str(found.metrics_port))
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }

    def ask(path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{found.port}/{path}", timeout=HANG_SECONDS) as answer:
            return bytes(answer.read())

    def routed() -> bool:
        with contextlib.suppress(OSError):
            return bool(ask("-/healthz"))
        return False

    with running("serve_ray.py", *arguments, ready=found.metrics_port, python=python, **quiet):
        until(routed)
        assert [json.loads(ask(f"?size={size}"))["cold"] for size in ASKED] == COLD
        told_exactly(found)


@pytest.mark.ray
def test_bentoml(tmp_path: pathlib.Path) -> None:
    """The worker of a service of BentoML counts what its method computes and what its HTTP server answers."""
    python, found = interpreter(BENTOML), Served()
    quiet = {"BENTOML_DO_NOT_TRACK": "1", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with running(
        "serve_bentoml.py", "--port", str(found.port), ready=found.metrics_port, python=python,
        JAXOBS_PORT=str(found.metrics_port), **quiet,
    ):  # fmt: skip
        wait_for(found.port)
        with found.connected() as connection:
            answers = [json.loads(post(connection, "/predict", size=size).read()) for size in ASKED]
        assert [each["cold"] for each in answers] == COLD
        told_exactly(found)
        assert found.routes()["/predict"]["requests"] == {"true": {"ok": 2}, "false": {"ok": 5}}


@pytest.mark.ray
def test_triton(tmp_path: pathlib.Path) -> None:
    """A model of Triton's Python backend, in a real server of Triton."""
    python, found = interpreter(TRITON), Served()
    asked = "import pytriton as p, sysconfig as s; print(p.__path__[0], *s.get_config_vars('LIBDIR', 'VERSION'))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    package, libraries, version = map(pathlib.Path, done.stdout.split())
    server, stub = package / "tritonserver", "triton_python_backend_stub"
    shutil.copytree(server / "backends", tmp_path / "backends")
    shutil.copy(server / "python_backend_stubs" / version / stub, tmp_path / "backends" / "python" / stub)
    shutil.copytree(ROOT / "examples" / "triton", tmp_path / "models")
    (tmp_path / "models" / "doubled" / "1" / "jaxobs").symlink_to(ROOT / "jaxobs")
    program = [
        str(server / "bin" / "tritonserver"), "--model-repository", str(tmp_path / "models"),
        "--backend-directory", str(tmp_path / "backends"), "--http-port", str(found.port),
        "--allow-grpc", "false", "--allow-metrics", "false",
    ]  # fmt: skip
    quiet = {
        "JAXOBS_PORT": str(found.metrics_port),
        "PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{package.parent / 'nvidia_pytriton.libs'}:{libraries}",
    }
    with running_command(program, found.port, quiet), found.connected() as connection:
        cold = []
        for size in ASKED:
            rows = {"name": "rows", "datatype": "FP32", "shape": [size], "data": [1.0] * size}
            answer = json.loads(post(connection, "/v2/models/doubled/infer", inputs=[rows]).read())
            cold.append({each["name"]: each["data"][0] for each in answer["outputs"]}["cold"])
        assert cold == COLD
        told_exactly(found)


# -------------------------------------------------------------------------------------------- a language model


def generate(served: Served, prompt: str, tokens: int) -> tuple[float, int]:
    """Seconds until the client has the first token, and how many tokens it got."""
    with served.connected() as connection:
        began = time.perf_counter()
        with contextlib.closing(post(connection, "/generate", prompt=prompt, max_tokens=tokens)) as answer:
            assert answer.status == 200
            seen = [time.perf_counter() for line in answer if line.startswith(b"data: {")]
    return seen[0] - began, len(seen)


def ended(served: Served, requests: int) -> dict[str, float]:
    """The metrics when so many requests of the route have ended and the engine is at rest."""

    def known() -> dict[str, float] | None:
        found = served.metrics()
        all_ended = sum(value for name, value in found.items() if name.startswith("jax_requests_total")) == requests
        return found if all_ended and not found['jax_engine_requests{engine="engine",state="running"}'] else None

    found = until(known)
    assert found is not None and found["jax_requests_in_flight"] == 0
    return found


def test_figures_are_those_of_the_clients() -> None:
    """Every token, request and reason; and times that lie within those that the clients have measured around them."""
    with Served().running("serve_llm.py") as served:
        questions = [("x" * (5 + 3 * number), 2 + number) for number in range(QUESTIONS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(pool.map(lambda question: generate(served, *question), questions))
        found = ended(served, QUESTIONS)
    route = '{route="/generate"}'
    tokens = sum(number for _, number in answers)
    reasons = {name: value for name, value in found.items() if name.startswith("jax_request_finish_reasons_total")}
    assert sum(reasons.values()) == QUESTIONS
    assert tokens == sum(wanted for _, wanted in questions) or any("stop" in name for name in reasons)
    expected = {
        'jax_requests_total{route="/generate",cold="false",outcome="ok"}': QUESTIONS,
        'jax_request_tokens_total{route="/generate",direction="output"}': tokens,
        'jax_request_tokens_total{route="/generate",direction="input"}': sum(len(prompt) for prompt, _ in questions),
        f"jax_request_first_token_seconds_count{route}": QUESTIONS,
        f"jax_request_output_token_seconds_count{route}": QUESTIONS,
        f"jax_request_queue_seconds_count{route}": QUESTIONS,
        f"jax_request_batch_size_count{route}": QUESTIONS,
        'jax_engine_requests{engine="engine",state="waiting"}': 0,
        'jax_engine_kv_cache_ratio{engine="engine"}': 0,
    }
    assert {name: found[name] for name in expected} == expected

    # A client's clock starts before the server's, and has a token after it.
    first = found[f"jax_request_first_token_seconds_sum{route}"]
    assert found[f"jax_request_queue_seconds_sum{route}"] < first < sum(seconds for seconds, _ in answers)
    assert first < found['jax_request_seconds_sum{route="/generate",cold="false"}']
    # What an engine computes is no step: a server that is idle has no goodput to lose.
    assert not any(name.startswith("jax_steps_total") for name in found)


def test_a_client_that_goes_in_the_middle_frees_its_place_and_cold_requests_are_told() -> None:
    """With nothing compiled before: prompts of two sizes, each compiled in its own request; one that is given up."""
    with Served().running("serve_llm.py", "--cold") as served:
        for prompt in ("short", "short", "long" * 10, "long" * 10):
            generate(served, prompt, 4)
        with (
            served.connected() as connection,
            contextlib.closing(post(connection, "/generate", prompt="given up", max_tokens=128)) as answer,
        ):
            assert answer.readline().startswith(b"data: {")
        found = ended(served, 5)
    expected = {
        'jax_requests_total{route="/generate",cold="true",outcome="ok"}': 2,
        'jax_requests_total{route="/generate",cold="false",outcome="ok"}': 2,
        'jax_requests_total{route="/generate",cold="false",outcome="cancelled"}': 1,
        'jax_request_first_token_seconds_count{route="/generate"}': 5,
        'jax_request_output_token_seconds_count{route="/generate"}': 4,
    }
    assert {name: found[name] for name in expected} == expected
    assert found['jax_request_tokens_total{route="/generate",direction="output"}'] > 16
