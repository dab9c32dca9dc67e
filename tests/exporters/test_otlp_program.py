"""Programs whose metrics, spans and findings go out by OTLP, to a receiver that reads the messages."""

import json
import os
import pathlib
import subprocess
import sys
from collections import Counter

import pytest
from helpers.otlp_receiver import Receiver, attributes, receiver

__all__ = ["receiver"]  # a fixture that the tests take by name

PROGRAM = """
import jax, jax.numpy as jnp
import jaxobs

jaxobs.install({settings})
f = jax.jit(lambda x: jnp.sin(x) @ x)
for size in (4, 8):
    f(jnp.ones((size, size)))
for _ in range(3):
    with jaxobs.step("train"):
        f(jnp.ones((4, 4)))
with jaxobs.request("/v1/chat/completions") as request:
    f(jnp.ones((16, 16)))
    request.first_token()
    request.tokens(input=10, output=20)
"""


def run(folder: pathlib.Path, settings: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("{settings}", settings))
    return subprocess.run(
        [sys.executable, str(program)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "environment"),
    [("", {}), ("otlp=True", {"OTEL_METRICS_EXPORTER": "otlp"})],
    ids=["variables", "keyword"],
)
def test_what_a_program_did_is_delivered(
    receiver: Receiver, tmp_path: pathlib.Path, settings: str, environment: dict[str, str]
) -> None:
    """The figures of the metrics and the spans are those of the event log."""
    log = tmp_path / "events.jsonl"
    done = run(
        tmp_path, settings, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, JAXOBS_EVENT_LOG=str(log),
        OTEL_RESOURCE_ATTRIBUTES="team=vision,host.name=here", OTEL_SERVICE_NAME="trainer", **environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    compiled = [each for each in events if each["event"] == "compilation"]
    assert len(compiled) > 3

    spans = [each for each in receiver.spans() if each.name.startswith("jax compile ")]
    told = sorted((attributes(each) for each in spans), key=lambda each: each["jax.event.sequence"])
    assert [
        (each["jax.function"], each["jax.compile.cause"], each["jax.compile.reason"], each["jax.compile.cache"])
        for each in told
    ] == [(each["function"], each["cause"], each["reason"], each["cache"]) for each in compiled]
    by_number = {attributes(each)["jax.event.sequence"]: each for each in spans}
    for event in compiled:
        span = by_number[event["sequence"]]
        children = {
            child.name: (child.end_time_unix_nano - child.start_time_unix_nano) / 1e9
            for child in receiver.spans() if child.parent_span_id == span.span_id
        }  # fmt: skip
        assert children == pytest.approx({f"jax {phase}": took for phase, took in event["phases"].items()}, abs=2e-6)

    metrics = receiver.metrics()
    counted = Counter((each["cause"], each["cache"]) for each in compiled)
    points = metrics["jax.compilations"].sum.data_points
    found: Counter[tuple[str, str]] = Counter()
    for point in points:
        labels = attributes(point)
        found[labels["cause"], labels["cache"]] += int(point.as_double or point.as_int)
    assert found == counted
    for point in metrics["jax.compile.phase"].histogram.data_points:
        seconds = [each["phases"][attributes(point)["phase"]] for each in compiled]
        assert point.count == len(seconds)
        assert point.sum == pytest.approx(sum(seconds), rel=1e-12)
    [steps] = metrics["jax.steps"].sum.data_points
    assert (steps.as_int, attributes(steps)) == (3, {"loop": "train"})
    assert metrics["jax.compile.phase"].unit == "s"
    resource = receiver.resource()
    assert (resource["service.name"], resource["team"], resource["host.name"]) == ("trainer", "vision", "here")
    assert resource["process.runtime.name"] == "cpython"


def test_a_cold_request_is_linked_to_what_compiled_in_it(receiver: Receiver, tmp_path: pathlib.Path) -> None:
    """The request's span names the compilations, and its tokens are in the instruments of the `gen_ai` conventions."""
    done = run(tmp_path, "otlp=True", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert done.returncode == 0, done.stderr
    by_name = {each.name: each for each in receiver.spans()}
    request = by_name["jax request /v1/chat/completions"]
    linked = {each.span_id for each in request.links}
    inside = {each.span_id: each for each in receiver.spans() if each.span_id in linked}
    assert linked and len(inside) == attributes(request)["jax.compilations"]
    for each in inside.values():
        assert request.start_time_unix_nano <= each.end_time_unix_nano <= request.end_time_unix_nano + 1_000_000

    metrics = receiver.metrics()
    [first] = metrics["gen_ai.server.time_to_first_token"].histogram.data_points
    assert first.count == 1
    assert attributes(first)["gen_ai.operation.name"] == "chat"
    usage = {
        attributes(each)["gen_ai.token.type"]: each.sum
        for each in metrics["gen_ai.client.token.usage"].histogram.data_points
    }
    assert usage == {"input": 10, "output": 20}


@pytest.mark.parametrize("environment", [{"OTEL_SDK_DISABLED": "true"}, {"JAXOBS_OTLP": "0"}, {"JAXOBS_DISABLED": "1"}])
def test_what_is_turned_off_sends_nothing(
    receiver: Receiver, tmp_path: pathlib.Path, environment: dict[str, str]
) -> None:
    """Either switch is enough."""
    done = run(tmp_path, "", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **environment)
    assert (done.returncode, done.stderr, receiver.requests) == (0, "", [])
