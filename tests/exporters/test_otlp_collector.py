"""A real OpenTelemetry Collector: what it got, and what its Prometheus output makes of the names.

`make linters` builds it, of four components: OTLP and log files in, Prometheus and a file out.
"""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.requirements import built
from helpers.waiting import until
from prometheus_client.parser import text_string_to_metric_families

from jaxobs.exporters.otel import conventions
from jaxobs.metrics import otel_names
from jaxobs.metrics.catalogue import METRICS
from tools.ports import free_port

pytestmark = pytest.mark.linters

PROGRAM = """
import jax, jax.numpy as jnp, time
import jaxobs
from jaxobs.base.config import Settings

jaxobs.install()
f = jaxobs.jit(lambda x: jnp.sin(x) @ x)
for size in (4, 8, 16):
    f(jnp.ones((size, size)))
for batch in jaxobs.data([1, 2, 3]):
    with jaxobs.step("train", items=2):
        f(jnp.ones((4, 4))).block_until_ready()
with jaxobs.request("/v1/completions", queue_seconds=0.25, batch=(3, 4)) as request:
    f(jnp.ones((32, 32)))
    request.first_token()
    request.tokens(input=10, output=5)
    request.tokens(output=15)
    request.finish_reason("stop")
environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.url_scheme": "http"}
jaxobs.wsgi(lambda environ, start_response: start_response("200 OK", []) or [])(environ, lambda *_: None)
with jaxobs.phase("checkpoint"):
    time.sleep(0.01)
"""


@dataclass
class Collector:
    """A Collector that runs."""

    otlp: dict[str, str]
    """Endpoints by protocol."""
    prometheus: str
    file: pathlib.Path

    def scraped(self) -> dict[str, Any]:
        """The families of its Prometheus output, by name."""
        with urllib.request.urlopen(self.prometheus, timeout=60) as answer:
            return {each.name: each for each in text_string_to_metric_families(answer.read().decode())}

    def received(self, kind: str) -> list[dict[str, Any]]:
        """The spans or the metrics in its file: `resourceSpans`, `resourceMetrics`."""
        inside = {"resourceSpans": ("scopeSpans", "spans"), "resourceMetrics": ("scopeMetrics", "metrics")}[kind]
        lines = [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []
        return [
            each
            for line in lines
            for resource in line.get(kind, [])
            for scope in resource.get(inside[0], [])
            for each in scope.get(inside[1], [])
        ]


@pytest.fixture
def collector(tmp_path: pathlib.Path) -> Iterator[Collector]:
    """A Collector with OTLP in, Prometheus and a file out."""
    http, grpc, prometheus = free_port(), free_port(), free_port()
    received = tmp_path / "received.jsonl"
    config = tmp_path / "collector.yaml"
    listens = {"http": {"endpoint": f"127.0.0.1:{http}"}, "grpc": {"endpoint": f"127.0.0.1:{grpc}"}}
    hands_on = {"metrics": ["prometheus", "file"], "traces": ["file"], "logs": ["file"]}
    service = {
        "telemetry": {"metrics": {"level": "none"}},
        "pipelines": {signal: {"receivers": ["otlp"], "exporters": to} for signal, to in hands_on.items()},
    }
    exporters = {
        "prometheus": {"endpoint": f"127.0.0.1:{prometheus}"},
        "file": {"path": str(received), "flush_interval": "100ms"},
    }
    whole = {"receivers": {"otlp": {"protocols": listens}}, "exporters": exporters, "service": service}
    config.write_text(json.dumps(whole))
    with (tmp_path / "collector.log").open("wb") as log:
        process = subprocess.Popen([built("otelcol"), "--config", str(config)], stdout=log, stderr=log)
    found = Collector(
        {"http/protobuf": f"http://127.0.0.1:{http}", "grpc": f"http://127.0.0.1:{grpc}"},
        f"http://127.0.0.1:{prometheus}/metrics", received,
    )  # fmt: skip

    def up() -> bool:
        assert process.poll() is None, (tmp_path / "collector.log").read_text()
        try:
            return found.scraped() is not None
        except OSError:
            return False

    try:
        until(up)
        yield found
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_collector_gets_what_the_event_log_has(collector: Collector, tmp_path: pathlib.Path, protocol: str) -> None:
    """Spans and metrics agree with the log figure for figure, and Prometheus' names are those of the table."""
    program, log = tmp_path / "program.py", tmp_path / "events.jsonl"
    program.write_text(PROGRAM)
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.otlp[protocol], "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_SERVICE_NAME": "trainer", "JAXOBS_EVENT_LOG": str(log), "JAXOBS_PEAK_FLOPS": "1e12",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(program)], env={**os.environ, **variables}, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    compiled = [each for each in events if each["event"] == "compilation"]
    until(lambda: collector.received("resourceSpans") and collector.received("resourceMetrics"))

    _agree_on_spans(collector, compiled)
    scraped = until(lambda: "jax_compilations" in (found := collector.scraped()) and found)
    _agree_on_metrics(scraped, compiled)
    # Nothing comes out that the table does not name, and what the program did is there.
    ours = {each.name.removesuffix("_total") for each in METRICS} | {
        otel_names.in_prometheus(each.name, each.unit, each.kind).removesuffix("_total")
        for each in (*conventions.INSTRUMENTS, *conventions.HISTOGRAMS)
    }
    assert set(scraped) - ours == {"target_info"}
    assert {
        "jax_compile_phase_seconds", "jax_function_compile_seconds", "jax_function_calls", "jax_step_seconds",
        "jax_step_items", "jax_goodput_ratio", "jax_live_array_bytes", "jax_live_arrays", "jax_time_seconds",
        "jax_input_wait_seconds", "jax_input_batches", "jax_requests", "jax_requests_in_flight", "jax_request_seconds",
        "jax_request_tokens", "jax_request_first_token_seconds", "jax_request_inter_token_seconds",
        "jax_request_finish_reasons", "jax_request_queue_seconds", "jax_request_batch_size", "jax_request_batch_rows",
        "jax_checkpoint_seconds", "jax_program_flops", "jax_program_memory_bytes", "jax_build_info",
        "jax_process_start_timestamp_seconds", "jax_persistent_cache_requests", "jaxobs_capability",
        "gen_ai_server_request_duration_seconds", "gen_ai_server_time_to_first_token_seconds",
        "gen_ai_server_time_per_output_token_seconds", "gen_ai_client_token_usage",
        "http_server_request_duration_seconds", "jax_http_requests", "process_resident_memory_bytes",
    } <= set(scraped)  # fmt: skip
    for metric in METRICS:
        if (family := scraped.get(metric.name.removesuffix("_total"))) is not None:
            expected = {"info": "gauge", "summary": "histogram"}.get(metric.kind, metric.kind)
            assert (metric.name, family.type) == (metric.name, expected)
            assert set(metric.labels) <= set(family.samples[0].labels), metric.name


def _agree_on_spans(collector: Collector, compiled: list[dict[str, Any]]) -> None:
    spans = collector.received("resourceSpans")
    found = {}
    for span in spans:
        attributes = {each["key"]: each["value"] for each in span.get("attributes", [])}
        if "jax.event.sequence" in attributes:
            found[int(attributes["jax.event.sequence"]["intValue"])] = span, attributes
    assert sorted(found) == [each["sequence"] for each in compiled]
    for event in compiled:
        span, attributes = found[event["sequence"]]
        assert attributes["jax.compile.cause"]["stringValue"] == event["cause"]
        assert attributes["jax.compile.reason"]["stringValue"] == event["reason"]
        assert attributes["jax.compile.fingerprint"]["stringValue"] == event["fingerprint"]
        children = {
            child["name"]: (int(child["endTimeUnixNano"]) - int(child["startTimeUnixNano"])) / 1e9
            for child in spans if child.get("parentSpanId") == span["spanId"]
        }  # fmt: skip
        assert children == pytest.approx({f"jax {name}": took for name, took in event["phases"].items()}, abs=2e-6)


def _agree_on_metrics(scraped: dict[str, Any], compiled: list[dict[str, Any]]) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for sample in scraped["jax_compilations"].samples:
        counted[sample.labels["cause"], sample.labels["cache"]] += sample.value
    assert counted == Counter((each["cause"], each["cache"]) for each in compiled)
    for sample in scraped["jax_compile_phase_seconds"].samples:
        seconds = [each["phases"][sample.labels["phase"]] for each in compiled]
        if sample.name.endswith("_count"):
            assert sample.value == len(seconds)
        elif sample.name.endswith("_sum"):
            assert sample.value == pytest.approx(sum(seconds), rel=1e-12)
        else:
            assert sample.value == sum(took <= float(sample.labels["le"]) for took in seconds)
