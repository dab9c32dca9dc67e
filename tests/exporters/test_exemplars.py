"""Exemplars in OpenMetrics: which span they name, that the client library reads them, and Prometheus keeps them."""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.made_by_hand import compilation
from helpers.requirements import program
from helpers.waiting import until
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from jaxobs.exporters.forms.exposition import OPENMETRICS, TEXT, Renderer
from jaxobs.session import lifecycle
from jaxobs.sources.exemplars import CompileExemplars
from jaxobs.state import exemplars, store
from jaxobs.state.exemplars import Exemplar, Exemplars
from jaxobs.state.store import Store
from tools.ports import free_port

pytestmark = pytest.mark.usefixtures("fresh")


def read(store: Store) -> dict[tuple[str, str], Any]:
    """The exemplars of the compile phases, by phase and upper bound, as the client library reads them."""
    families = text_string_to_metric_families(Renderer(store).render(OPENMETRICS).decode())
    return {
        (sample.labels["phase"], sample.labels["le"]): sample.exemplar
        for family in families if family.name == "jax_compile_phase_seconds"
        for sample in family.samples if sample.exemplar is not None
    }  # fmt: skip


@pytest.fixture
def looked_at() -> Iterator[Store]:
    """A store whose compilations get exemplars."""
    known = Store()
    source = CompileExemplars(known)
    source.start()
    yield known
    source.stop()


def test_the_span_that_was_active_is_the_exemplar_of_its_bucket(looked_at: Store) -> None:
    """With value and time; the text format has none; what compiles outside of a span has none."""
    looked_at.record(compilation(phases={"compile": 0.3}))
    assert read(looked_at) == {}
    with TracerProvider().get_tracer("user").start_as_current_span("predict") as span:
        event = looked_at.record(compilation(phases={"compile": 0.07, "trace": 0.002}))
        looked_at.record(compilation(phases={"compile": 0.08}))
    found = read(looked_at)
    assert set(found) == {("compile", "0.1"), ("trace", "0.0025")}
    context = span.get_span_context()
    ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
    assert [each.labels for each in found.values()] == [ids, ids]
    assert found["compile", "0.1"].value == 0.08
    assert float(found["trace", "0.0025"].timestamp) == pytest.approx(event.time, abs=1e-3)
    assert b"trace_id" not in Renderer(looked_at).render(TEXT)


def test_a_later_exemplar_is_rendered(looked_at: Store) -> None:
    """A rendered text is not kept if only the exemplar is new."""
    looked_at.record(compilation(phases={"compile": 0.07}))
    renderer = Renderer(looked_at)
    assert b"trace_id" not in renderer.render(OPENMETRICS)
    bounds = (0.05, 0.1)
    looked_at.part(Exemplars).put("jax_compile_phase_seconds", ("compile",), bounds, Exemplar("a", "b", 0.01, 1.0))
    assert b'trace_id="a"' in renderer.render(OPENMETRICS)


def test_a_span_that_is_not_sampled_is_none(looked_at: Store) -> None:
    """A trace that is not sampled is nowhere to be found."""
    with TracerProvider(sampler=ALWAYS_OFF).get_tracer("user").start_as_current_span("predict"):
        looked_at.record(compilation(phases={"compile": 0.07}))
    assert read(looked_at) == {}


def test_exemplars_are_bounded() -> None:
    """The oldest one goes."""
    kept = Exemplars()
    for number in range(exemplars.MOST + 3):
        kept.put("m", (str(number),), (1.0,), Exemplar("a", "b", 0.5, 1.0))
    found = kept.of("m")
    assert len(found) == exemplars.MOST
    assert (("2",), 0) not in found and (("3",), 0) in found


def test_the_compilation_has_a_span_of_its_own() -> None:
    """If jaxobs makes spans, the exemplar leads to the one that has the reason."""
    import jax
    import jax.numpy as jnp

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    lifecycle.install(tracer_provider=provider)
    try:
        jax.jit(lambda x: x * 7 + 1)(jnp.ones(9)).block_until_ready()
        compiled = {
            f"{each.context.span_id:016x}" for each in spans.get_finished_spans()
            if each.context is not None and each.name.startswith("jax compile ")
        }  # fmt: skip
        found = read(store.current())
        assert found and {each.labels["span_id"] for each in found.values()} <= compiled
    finally:
        lifecycle.uninstall()
        lifecycle.forget_providers()


PROGRAM = """
import sys, time
import jax, jax.numpy as jnp
from opentelemetry.sdk.trace import TracerProvider
import jaxobs

handle = jaxobs.start(port=int(sys.argv[1]))
with TracerProvider().get_tracer("user").start_as_current_span("predict") as span:
    jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((5, 5)))
print(f"{span.get_span_context().trace_id:032x}", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_prometheus_stores_them(tmp_path: pathlib.Path) -> None:
    """A real Prometheus, with its feature on, answers with the trace."""
    port, prometheus = free_port(), free_port()
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    config = {"scrape_configs": [
        {"job_name": "jax", "scrape_interval": "1s", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    ]}  # fmt: skip
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                program("prometheus"), "--enable-feature=exemplar-storage",
                f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{prometheus}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    observed = subprocess.Popen(
        [sys.executable, str(script), str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env={**os.environ}, text=True,
    )  # fmt: skip
    try:
        assert observed.stdout is not None
        trace = observed.stdout.readline().strip()
        assert len(trace) == 32
        query = (
            f"http://127.0.0.1:{prometheus}/api/v1/query_exemplars?query=jax_compile_phase_seconds_bucket"
            "&start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z"
        )

        def stored() -> set[str]:
            try:
                with urllib.request.urlopen(query, timeout=60) as answer:
                    data = json.load(answer)["data"]
            except OSError:
                return set()
            return {each["labels"]["trace_id"] for series in data for each in series["exemplars"]}

        assert until(stored) == {trace}
    finally:
        observed.kill()
        observed.communicate(timeout=60)
        server.terminate()
        server.wait(60)
