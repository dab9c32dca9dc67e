"""The OpenTelemetry exporter against providers that keep what they get in memory, and against a collector's moods."""

import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from helpers.made_by_hand import compilation, full_store
from helpers.otlp_receiver import Receiver, attributes
from helpers.waiting import until
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from jaxobs.base.config import Settings
from jaxobs.base.errors import MissingExtraError
from jaxobs.exporters import otlp
from jaxobs.exporters.forms.exposition import SnapshotCollector
from jaxobs.exporters.otel import conventions, counting, providers, wanted
from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.errors import OomCause, OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import Histogram as Counts
from jaxobs.facts.requests import RouteState
from jaxobs.facts.steps import Step
from jaxobs.metrics import otel_names
from jaxobs.metrics.catalogue import METRICS
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.routes import Routes
from jaxobs.state.store import Store

pytestmark = pytest.mark.usefixtures("fresh")

DELTA = dict.fromkeys((Counter, Histogram, ObservableCounter), AggregationTemporality.DELTA)


class Kept:
    """Providers that keep what they get."""

    def __init__(self, readers: int = 1) -> None:
        self.readers = [InMemoryMetricReader() for _ in range(readers)]
        self.delta = InMemoryMetricReader(preferred_temporality=DELTA)
        self.spans, self.logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
        providers.given.meter = MeterProvider([*self.readers, self.delta])
        providers.given.tracer = TracerProvider()
        providers.given.tracer.add_span_processor(SimpleSpanProcessor(self.spans))
        providers.given.logger = LoggerProvider()
        providers.given.logger.add_log_record_processor(SimpleLogRecordProcessor(self.logs))

    def metrics(self, reader: InMemoryMetricReader | None = None) -> dict[str, Any]:
        """The metrics of one collection, by name."""
        data = (reader or self.readers[0]).get_metrics_data()
        return {
            metric.name: metric
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def kept() -> Iterator[Kept]:
    """Providers in memory, handed in."""
    yield Kept(readers=2)
    providers.given.meter = providers.given.tracer = providers.given.logger = None


def opened(store: Store, **settings: Any) -> otlp.Otlp:
    """The exporter as the settings open it."""
    found = otlp.exporter(store, Settings(**settings))
    assert found is not None
    return found


# ------------------------------------------------------------------------------------------------------- metrics


def _points(metric: Any) -> dict[frozenset[tuple[str, str]], Any]:
    return {frozenset(point.attributes.items()): point for point in metric.data.data_points}


def test_the_whole_catalogue_agrees_with_a_scrape(kept: Kept) -> None:
    """Every metric that has something to say, every series, for each of two readers, and again."""
    store = full_store()
    exporter = opened(store)
    told = {metric.name: (metric, samples) for metric, samples in SnapshotCollector(store).samples() if samples}
    for reader in (*kept.readers, kept.readers[0]):
        found = kept.metrics(reader)
        for metric, every in told.values():
            if metric.name in ("jaxobs_collect_seconds", "jax_time_seconds_total", "jax_goodput_ratio"):
                continue  # they go on
            # A histogram is there from the first value on.
            samples = [each for each in every if not isinstance(each[1], tuple) or each[1][0]]
            points = _points(found[otel_names.name(metric)]) if samples else {}
            assert len(points) == len(samples), metric.name
            for labels, value in samples:
                point = points[frozenset(zip(metric.labels, labels, strict=True))]
                if isinstance(value, Counts):
                    assert tuple(point.bucket_counts) == value.counts
                    assert tuple(point.explicit_bounds) == value.bounds
                    assert point.sum == pytest.approx(value.sum, rel=1e-12)
                elif isinstance(value, tuple):
                    assert (point.count, point.sum) == (value[0], pytest.approx(value[1], rel=1e-12))
                else:
                    assert point.value == value, metric.name
    exporter.close()


def test_names_are_unique_and_lead_back_to_ours() -> None:
    """No two metrics become one, in OpenTelemetry or behind it, and units are UCUM's."""
    names = [otel_names.name(metric) for metric in METRICS] + [
        each.name for each in (*conventions.INSTRUMENTS, *conventions.HISTOGRAMS)
    ]
    assert len({each.lower() for each in names}) == len(names)
    assert [each for each in names for other in names if other.startswith(f"{each}.")] == [], "names and namespaces"
    for metric in METRICS:
        name, unit = otel_names.name(metric), otel_names.unit(metric)
        assert otel_names.in_prometheus(name, unit, metric.kind) == metric.name
        assert unit in ("", *otel_names.UCUM.values()) or (unit[0], unit[-1]) == ("{", "}")
        assert metric.kind != "gauge" or unit != "1" or metric.unit == "ratio"
    by_name = {metric.name: (otel_names.name(metric), otel_names.unit(metric)) for metric in METRICS}
    assert by_name["jax_compile_phase_seconds"] == ("jax.compile.phase", "s")
    assert by_name["jax_compilations_in_progress"] == ("jax.compilations_in_progress", "{compilation}")
    assert by_name["jax_persistent_cache_entries"] == ("jax.persistent_cache_entries", "{entry}")
    assert by_name["jaxobs_dropped_series_total"] == ("jaxobs.dropped.series", "{series}")
    assert by_name["accelerator_temperature_celsius"] == ("accelerator.temperature", "Cel")


def test_deltas_are_what_came_since(kept: Kept) -> None:
    store = Store()
    exporter = opened(store)
    for expected in (2, 1):
        for _ in range(expected):
            store.record(compilation(phases={"compile": 0.07}))
        found = kept.metrics(kept.delta)
        [point] = found["jax.compile.phase"].data.data_points
        assert (point.count, point.sum) == (expected, pytest.approx(0.07 * expected))
        [counter] = found["jax.compilations"].data.data_points
        assert counter.value == expected
    exporter.close()


def test_an_exporter_that_is_opened_again_uses_the_same_instruments(kept: Kept) -> None:
    """As when `install` is called with other settings; in between, and after the end, nothing is told."""
    store = Store()
    store.record(compilation(phases={"compile": 0.07}))
    opened(store).close()
    assert "jax.compilations" not in kept.metrics()
    exporter = opened(store)
    store.record(compilation(phases={"compile": 0.07}))
    [point] = kept.metrics()["jax.compile.phase"].data.data_points
    assert point.count == 2
    exporter.close()


def test_accelerators_have_the_names_of_the_conventions(kept: Kept) -> None:
    """Beside ours, by the device's UUID."""
    store = Store()
    store.set_accelerators((
        AcceleratorState(
            time=1.0, device="gpu:0", uuid="GPU-1", index=0, model="H200", utilization=0.5, memory_used_bytes=3,
            memory_total_bytes=4, power_watts=700.0, energy_joules=5.0, temperature_celsius=60,
            ecc_errors={"corrected": {"volatile": 2, "aggregate": 9}},
        ),
    ))  # fmt: skip
    exporter = opened(store)
    found = kept.metrics()
    values = {name: metric.data.data_points[0].value for name, metric in found.items() if name.startswith("hw.")}
    assert values == {
        "hw.gpu.utilization": 0.5, "hw.gpu.memory.usage": 3, "hw.gpu.memory.limit": 4,
        "hw.gpu.memory.utilization": 0.75, "hw.power": 700.0, "hw.energy": 5.0, "hw.temperature": 60, "hw.errors": 2,
    }  # fmt: skip
    assert dict(found["hw.errors"].data.data_points[0].attributes) == {
        "hw.id": "GPU-1", "hw.name": "gpu:0", "hw.type": "gpu", "hw.model": "H200", "error.type": "corrected",
    }  # fmt: skip
    exporter.close()


@pytest.mark.parametrize(
    ("route", "operation"),
    [
        ("/v1/chat/completions", "chat"), ("/v1/completions", "text_completion"), ("/v1/embeddings", "embeddings"),
        ("generate", "generate_content"),
    ],
)  # fmt: skip
def test_what_a_route_does_is_read_from_its_name(route: str, operation: str) -> None:
    assert conventions.operation(route) == operation


def test_routes_that_report_no_tokens_do_not_generate() -> None:
    """An ordinary request is none of `gen_ai`."""
    store = Store()
    snapshot = store.snapshot()
    seconds = {"true": Counts((1.0,), (1, 0), 0.5), "false": Counts((1.0,), (2, 1), 3.0)}
    import dataclasses

    plain = dataclasses.replace(snapshot, routes=(RouteState(route="/", seconds=seconds),))
    assert list(conventions.histograms(plain)) == []
    generating = dataclasses.replace(snapshot, routes=(RouteState(route="/", seconds=seconds, output_tokens=3),))
    [(instrument, _, together)] = conventions.histograms(generating)
    assert (instrument.name, together) == ("gen_ai.server.request.duration", Counts((1.0,), (3, 1), 3.5))


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (200, {"http.response.status_code": 200}), (503, {"http.response.status_code": 503, "error.type": "503"}),
        (0, {"error.type": "_OTHER"}),
    ],
)  # fmt: skip
def test_http_requests_have_the_names_of_the_conventions(
    kept: Kept, status: int, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless OpenTelemetry's own instrumentation reports them already."""
    store = Store()
    store.part(Routes).route("/a").waiting.append(
        (1.0, 0.3, "ok", "false", None, None, None, None, False, ("GET", "https", status))
    )
    exporter = opened(store)
    [point] = kept.metrics()["http.server.request.duration"].data.data_points
    expected = {"http.request.method": "GET", "url.scheme": "https", "http.route": "/a", **more}
    assert (dict(point.attributes), point.count, point.sum) == (expected, 1, pytest.approx(0.3))
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.asgi", sys)
    assert list(conventions.histograms(store.snapshot())) == []
    exporter.close()


# -------------------------------------------------------------------------------------------- spans and events


def test_steps_and_errors_of_memory_are_spans(kept: Kept) -> None:
    """A slow step is linked to what compiled in it; out of memory is an error inside the user's span."""
    store = Store()
    exporter = opened(store)
    inside = store.record(compilation(phases={"compile": 0.2}))
    common = {"loop": "train", "count": 1, "last": 9, "least_seconds": 1.0, "most_seconds": 1.0, "median_seconds": 1.0}
    store.record(Step(time=inside.time + 0.1, seconds=1.0, slow=True, reason="It took 1 s.", **common))  # type: ignore[arg-type]
    with providers.given.tracer.get_tracer("user").start_as_current_span("fit") as user:
        store.record(
            OutOfMemory(
                time=inside.time, function="train.step", stage="execute", error="XlaRuntimeError",
                message="RESOURCE_EXHAUSTED", device="gpu:0", call_site="train.py:41",
                causes=(OomCause(cause="batch", summary="It is large.", advice="Make it smaller."),),
            )
        )  # fmt: skip
    spans = {each.name: each for each in kept.spans.get_finished_spans()}
    compiled = spans["jax compile train.step"]
    slow = spans["jax slow step train"]
    assert [each.context.span_id for each in slow.links] == [compiled.context.span_id]
    assert slow.attributes["jax.step.reason"] == "It took 1 s."
    assert slow.end_time - slow.start_time == 1_000_000_000
    failed = spans["jax out of memory train.step"]
    assert failed.status.status_code is StatusCode.ERROR and "RESOURCE_EXHAUSTED" in (failed.status.description or "")
    assert failed.parent is not None and failed.parent.span_id == user.get_span_context().span_id
    assert failed.attributes["code.file.path"] == "train.py" and failed.attributes["code.line.number"] == 41
    assert failed.attributes["jax.out_of_memory.advice"] == "Make it smaller."
    exporter.close()


def test_checkpoints_are_spans_once(kept: Kept) -> None:
    """Each operation, when the exporter is asked to look; also the last one, at its end."""
    store = Store()
    exporter = opened(store)
    for operation, seconds in (("save", 2.0), ("restore", 0.5)):
        store.part(Checkpoints).observe(operation, seconds)
        exporter.sample()
        exporter.sample()
    store.part(Checkpoints).observe("save", 1.0)
    exporter.close()
    spans = [
        (each.name, round((each.end_time or 0) - (each.start_time or 0), -3))
        for each in kept.spans.get_finished_spans()
    ]
    assert spans == [
        ("jax checkpoint save", 2_000_000_000),
        ("jax checkpoint restore", 500_000_000),
        ("jax checkpoint save", 1_000_000_000),
    ]


def test_findings_are_events(kept: Kept) -> None:
    store = Store()
    exporter = opened(store)
    store.record(
        Finding(
            time=1_770_000_000.0, id="f1", finding="recompile_storm", function="train.step", summary="It recompiles.",
            advice="Pad it.", severity="critical", count=7, seconds=3.5,
        )
    )  # fmt: skip
    [data] = kept.logs.get_finished_logs()
    record = data.log_record
    assert (record.event_name, record.body, record.severity_text) == (
        "jax.finding.recompile_storm", "It recompiles.", "ERROR",
    )  # fmt: skip
    told: Mapping[str, Any] = record.attributes or {}
    assert (told["jax.finding.count"], told["jax.finding.advice"], told["jax.function"]) == (7, "Pad it.", "train.step")
    exporter.close()


def test_texts_and_lists_of_spans_are_bounded(kept: Kept) -> None:
    """However many arguments changed, and however long their types are."""
    from jaxobs.facts.compilations import Change

    store = Store()
    exporter = opened(store)
    changes = tuple(Change(f"x[{number}]", "shape", "f" * 5000, "g") for number in range(50))
    store.record(compilation(reason="r" * 5000, changes=changes))
    [span] = [each for each in kept.spans.get_finished_spans() if each.name.startswith("jax compile train")]
    told: Mapping[str, Any] = span.attributes or {}
    assert len(told["jax.compile.changes"]) == 8
    assert max(len(each) for each in (*told["jax.compile.changes"], told["jax.compile.reason"])) <= 1000
    exporter.close()


# ------------------------------------------------------------------------------------------- a collector's moods


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver, which the variables name; metrics are exported often."""
    found = Receiver()
    for name, value in {
        "OTEL_EXPORTER_OTLP_ENDPOINT": found.url, "OTEL_METRIC_EXPORT_INTERVAL": "100", "OTEL_BSP_SCHEDULE_DELAY": "50",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "64", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "32",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    yield found
    found.close()


def test_a_collector_that_refuses_costs_what_it_refused_and_is_told_when_it_is_back(receiver: Receiver) -> None:
    """Spans are dropped and counted; the metrics, which are cumulative, are whole again."""
    store = Store()
    receiver.status = 400
    exporter = opened(store, otlp=True)
    for _ in range(3):
        store.record(compilation(phases={"compile": 0.07}))
    dropped = until(lambda: (found := store.snapshot().observer.dropped).get("otlp_spans", 0) >= 6 and found)
    assert dropped["otlp_spans"] == 6
    until(lambda: store.snapshot().observer.dropped.get("otlp_metrics", 0) > 0)
    receiver.status = 200
    store.record(compilation(phases={"compile": 0.07}))
    until(lambda: len(receiver.spans()) == 2)
    until(lambda: "jax.compilations" in receiver.metrics())
    exporter.close()
    metrics = receiver.metrics()
    [counter] = metrics["jax.compilations"].sum.data_points
    [phases] = metrics["jax.compile.phase"].histogram.data_points
    assert (counter.as_int, phases.count) == (4, 4)
    reasons = {attributes(each)["reason"]: each.as_int for each in metrics["jaxobs.dropped.series"].sum.data_points}
    assert reasons["otlp_spans"] == 6


def test_a_collector_that_does_not_answer_holds_nobody_up(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue bounds what is recorded meanwhile, and the end comes although no answer does."""
    monkeypatch.setattr(otlp, "END_SECONDS", 0.1)
    store = Store()
    receiver.block.set()
    exporter = opened(store, otlp=True)
    for _ in range(500):
        store.record(compilation(phases={"compile": 0.07}))
    assert store.compilations() == 500
    # Of two spans each, 64 wait, on their way or in the queue.
    assert store.snapshot().observer.dropped["otlp_spans"] == 1000 - 64
    exporter.close()  # it would hang here
    assert store.snapshot().observer.dropped["otlp_spans"] == 1000
    assert store.snapshot().observer.dropped["otlp_end"] == 1
    assert not receiver.go_on.is_set() and receiver.spans() == []
    receiver.go_on.set()


@pytest.mark.parametrize("preference", ["cumulative", "delta"])
def test_an_exporter_of_ours_takes_whole_histograms(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, preference: str
) -> None:
    """However many were observed, with exact sums, no made-up extremes, and the exemplar of each bucket."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", preference)
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
    store = Store()
    exporter = opened(store, otlp=True)
    reader, seen = exporter._providers.meter, []
    for observed in ([0.07, 0.3, 0.08], [0.09]):
        for seconds in observed:
            store.record(compilation(time=time.time(), phases={"compile": seconds}))
        reader.force_flush()
        [point] = receiver.metrics()["jax.compile.phase"].histogram.data_points
        seen.append((point.count, point.sum))
    assert seen == [
        (3, pytest.approx(0.45)),
        (4, pytest.approx(0.54)) if preference == "cumulative" else (1, pytest.approx(0.09)),
    ]
    metric = receiver.metrics()["jax.compile.phase"]
    assert metric.histogram.aggregation_temporality == (2 if preference == "cumulative" else 1)
    assert not point.HasField("min") and not point.HasField("max")
    assert list(point.bucket_counts)[6] == (3 if preference == "cumulative" else 1)
    exporter.close()
    spans = {each.span_id for each in receiver.spans()}
    values = {each.as_double: each.span_id for each in point.exemplars}
    assert set(values) == ({0.09, 0.3} if preference == "cumulative" else {0.09})
    assert set(values.values()) <= spans


def test_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the end does not wait for the SDK's attempts."""
    from tools.ports import free_port

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    ended: list[bool] = []
    monkeypatch.setattr(providers.Providers, "end", lambda _: ended.append(True))
    store = Store()
    exporter = opened(store, otlp=True)
    store.record(compilation())
    exporter.close()
    assert ended == [] and store.snapshot().observer.dropped["otlp_end"] == 1
    for each in exporter._providers.own:
        threading.Thread(target=each.shutdown, daemon=True).start()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_a_forked_child_is_silent_until_it_records(receiver: Receiver) -> None:
    """Then it exports what is its own, and nothing of its parent's."""
    store = Store()
    exporter = opened(store, otlp=True)
    store.record(compilation("parent.step", phases={"compile": 0.07}))
    until(lambda: receiver.spans() and "jax.compile.phase" in receiver.metrics())
    exporter.close()
    receiver.requests.clear()
    exporter = opened(store, otlp=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads at a fork, from Python 3.12 on
        warnings.simplefilter("ignore", RuntimeWarning)  # JAX's, of each fork
        child = os.fork()
    if not child:
        code = 1
        try:
            inherited, instruments = exporter._providers.exporters, exporter._instruments
            store.after_fork()
            exporter.after_fork()
            # OpenTelemetry's threads run again by now, and would send what the parent had.
            assert inherited and all(each.gone for each in inherited)
            assert instruments is not None and instruments.silent
            store.record(compilation("child.step", phases={"compile": 0.2}))
            exporter.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    names = {attributes(each).get("jax.function") for each in receiver.spans()} - {None}
    assert names == {"child.step"}
    exporter.close()


# ------------------------------------------------------------------------------------------------ when it is wanted


@pytest.mark.parametrize(
    ("setting", "environment", "expected"),
    [
        (None, {}, False),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        (None, {"OTEL_METRICS_EXPORTER": "prometheus, otlp"}, True),
        (None, {"OTEL_METRICS_EXPORTER": "none"}, False),
        (False, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        (True, {}, True),
        (True, {"OTEL_SDK_DISABLED": " TRUE "}, False),
    ],
)
def test_when_it_is_wanted(setting: bool | None, environment: dict[str, str], expected: bool) -> None:
    assert wanted.wanted(setting, environment) is expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ("localhost", 4318)),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("localhost", 4317)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example"}, ("otlp.example", 443)),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, ("collector", 4317)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b:2/x"}, ("b", 2)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "https_proxy": "http://proxy"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:no"}, None),
    ],
)
def test_where_a_signal_goes(environment: dict[str, str], expected: tuple[str, int] | None) -> None:
    """As the SDK reads the variables; None where that does not tell whether anybody listens."""
    assert wanted.endpoint("traces", environment) == expected


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)
    with pytest.raises(MissingExtraError, match=r"from the extra `otel`.*pip install 'opentelemetry-"):
        counting.exporter("traces", "grpc", lambda _: None)


def test_without_the_packages_only_the_setting_complains(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are often set for a whole cluster: there jaxobs goes on without a word."""
    import sys

    from jaxobs.session import lifecycle
    from jaxobs.state import store

    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    lifecycle.install()
    assert store.current().installed and store.current().snapshot().observer.notes == ()
    with pytest.raises(MissingExtraError, match=r"`otlp` needs `opentelemetry-sdk`, from the extra `otel`"):
        lifecycle.install(otlp=True)
