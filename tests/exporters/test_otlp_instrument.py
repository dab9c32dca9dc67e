"""`opentelemetry-instrument` on a program that does not know of jaxobs, and the instrumentor by hand."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest
from helpers.otlp_receiver import Receiver, attributes, receiver
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from jaxobs.session import lifecycle
from jaxobs.session.instrumentor import JaxInstrumentor
from jaxobs.state import store

__all__ = ["receiver"]  # a fixture that the tests take by name

GROUP = "opentelemetry_instrumentor"
PROGRAM = """
import jax, jax.numpy as jnp

f = jax.jit(lambda x: jnp.sin(x) @ x)
for size in (4, 8):
    f(jnp.ones((size, size)))
print("done")
"""


@pytest.fixture
def command() -> list[str]:
    """The command, where the installed jaxobs has the entry point that it looks for."""
    if not importlib.metadata.entry_points(group=GROUP, name="jaxobs"):
        pytest.skip("the installed jaxobs is older than its entry point: pip install -e .")
    found = shutil.which("opentelemetry-instrument", path=str(pathlib.Path(sys.executable).parent))
    assert found is not None
    return [found, sys.executable]


def run(command: list[str], program: pathlib.Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, str(program)], env={**os.environ, **variables}, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip


def test_an_unchanged_program_is_observed(command: list[str], receiver: Receiver, tmp_path: pathlib.Path) -> None:
    """Compilations are spans with their causes, through the providers that OpenTelemetry set up."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run(
        command, program, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_SERVICE_NAME="unchanged",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    causes = [attributes(each).get("jax.compile.cause") for each in receiver.spans()]
    assert "first_call" in causes and "shape" in causes
    assert receiver.metrics()["jax.compilations"].sum.data_points
    assert receiver.resource()["service.name"] == "unchanged"


def test_by_hand_with_providers_of_ones_own_and_back(fresh: None) -> None:
    """`instrument` takes providers; `uninstrument` ends the observation and lets go of them."""
    import jax
    import jax.numpy as jnp

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    instrumentor: Any = JaxInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        with provider.get_tracer("user").start_as_current_span("predict") as request:
            jax.jit(lambda x: x * 3 + 1)(jnp.ones(7)).block_until_ready()
        inside = [each for each in spans.get_finished_spans() if each.name.startswith("jax compile ")]
        assert inside
        assert {each.parent.span_id for each in inside if each.parent} == {request.get_span_context().span_id}
    finally:
        instrumentor.uninstrument()
    assert not store.current().installed
    spans.clear()
    jax.jit(lambda x: x * 5 - 1)(jnp.ones(7)).block_until_ready()
    assert spans.get_finished_spans() == ()
    lifecycle.uninstall()


def test_instrumenting_swallows_what_fails(
    fresh: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception would end the instrumentation of everything else in the process."""

    def fails(**_: Any) -> None:
        raise RuntimeError("as a test wants it")

    monkeypatch.setattr(lifecycle, "install", fails)
    instrumentor: Any = JaxInstrumentor()
    instrumentor.instrument()
    try:
        assert "as a test wants it" in caplog.text
    finally:
        instrumentor.uninstrument()


def test_the_entry_point_is_declared() -> None:
    """The name that `opentelemetry-instrument` looks for leads to the class."""
    import tomllib

    from helpers.paths import ROOT

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    entry = importlib.metadata.EntryPoint("jaxobs", declared["jaxobs"], GROUP)
    assert entry.load() is JaxInstrumentor
