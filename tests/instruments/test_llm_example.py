"""The example of a language model under load: what it exposes against what its clients count and time themselves."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from helpers.requirements import package
from helpers.served_example import running
from helpers.waiting import until

from tools.ports import free_port

CLIENTS, QUESTIONS = 8, 40

pytestmark = pytest.mark.slow


@dataclass
class Answer:
    """Times that a client has seen: how many tokens, and how many seconds after it asked the first."""

    first: float
    tokens: int


@dataclass
class Server:
    """The example in a process of its own."""

    port: int
    metrics_port: int

    def ask(self, prompt: str, tokens: int) -> Answer:
        with self.asked(prompt, tokens) as (began, answer):
            assert answer.status == 200
            seen = [time.perf_counter() for line in answer if line.startswith(b"data: {")]
            return Answer(seen[0] - began, len(seen))

    @contextlib.contextmanager
    def asked(self, prompt: str, tokens: int) -> Iterator[tuple[float, http.client.HTTPResponse]]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            began = time.perf_counter()
            body = json.dumps({"prompt": prompt, "max_tokens": tokens})
            connection.request("POST", "/generate", body, {"content-type": "application/json"})
            with contextlib.closing(connection.getresponse()) as answer:
                yield began, answer

    def metrics(self) -> dict[str, float]:
        """By name and labels, as exposed."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=120) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


@contextlib.contextmanager
def served(*options: str) -> Iterator[Server]:
    package("fastapi")
    package("uvicorn")
    found = Server(free_port(), free_port())
    arguments = ("--port", str(found.port), *options)
    with running("serve_llm.py", *arguments, ready=found.port, JAXOBS_PORT=str(found.metrics_port)):
        yield found


def ended(server: Server, requests: int) -> dict[str, float]:
    """The metrics when so many requests of the route have ended and the engine is at rest."""

    def known() -> bool:
        found = server.metrics()
        all_ended = sum(value for name, value in found.items() if name.startswith("jax_requests_total")) == requests
        return all_ended and found['jax_engine_requests{engine="engine",state="running"}'] == 0

    until(known)
    return server.metrics()


def test_figures_are_those_of_the_clients() -> None:
    """Every token, request and reason; and times that lie within those that the clients have measured around them."""
    with served() as server:
        questions = [("x" * (5 + 3 * number), 2 + number) for number in range(QUESTIONS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(pool.map(lambda question: server.ask(*question), questions))
        found = ended(server, QUESTIONS)
        route = '{route="/generate"}'
        ok = '{route="/generate",cold="false",outcome="ok"}'
        tokens = sum(answer.tokens for answer in answers)
        assert found[f"jax_requests_total{ok}"] == QUESTIONS
        assert found['jax_request_tokens_total{route="/generate",direction="output"}'] == tokens
        asked = sum(len(prompt) for prompt, _ in questions)
        assert found['jax_request_tokens_total{route="/generate",direction="input"}'] == asked
        reasons = {name: value for name, value in found.items() if name.startswith("jax_request_finish_reasons_total")}
        assert sum(reasons.values()) == QUESTIONS
        assert tokens == sum(wanted for _, wanted in questions) or any("stop" in name for name in reasons)
        for name in ("first_token", "output_token", "queue"):
            assert found[f"jax_request_{name}_seconds_count{route}"] == QUESTIONS
        assert found[f"jax_request_batch_size_count{route}"] == QUESTIONS

        # A client's clock starts before the server's, and has a token after it.
        first = found[f"jax_request_first_token_seconds_sum{route}"]
        assert found[f"jax_request_queue_seconds_sum{route}"] < first < sum(answer.first for answer in answers)
        assert first < found['jax_request_seconds_sum{route="/generate",cold="false"}']
        assert found["jax_requests_in_flight"] == 0
        assert found['jax_engine_requests{engine="engine",state="waiting"}'] == 0
        assert found['jax_engine_kv_cache_ratio{engine="engine"}'] == 0
        # What an engine computes is no step: a server that is idle has no goodput to lose.
        assert not any(name.startswith("jax_steps_total") for name in found)


def test_a_client_that_goes_in_the_middle_frees_its_place_and_cold_requests_are_told() -> None:
    """With nothing compiled before: prompts of two sizes, each compiled in its own request; one that is given up."""
    with served("--cold") as server:
        for prompt in ("short", "short", "long" * 10, "long" * 10):
            server.ask(prompt, 4)
        with server.asked("given up", 128) as (_, answer):
            assert answer.readline().startswith(b"data: {")
        found = ended(server, 5)
        assert found['jax_requests_total{route="/generate",cold="true",outcome="ok"}'] == 2
        assert found['jax_requests_total{route="/generate",cold="false",outcome="ok"}'] == 2
        assert found['jax_requests_total{route="/generate",cold="false",outcome="cancelled"}'] == 1
        assert found['jax_request_first_token_seconds_count{route="/generate"}'] == 5
        assert found['jax_request_output_token_seconds_count{route="/generate"}'] == 4
        assert found['jax_request_tokens_total{route="/generate",direction="output"}'] > 16
        assert found["jax_requests_in_flight"] == 0
