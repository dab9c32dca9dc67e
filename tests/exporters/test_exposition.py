"""Exposition: Prometheus reads what the store knows, through the client library's own parsers."""

import math
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import prometheus_client
import pytest
from helpers.made_by_hand import compilation, full_store, make_time
from helpers.requirements import program
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from jaxobs.base.config import Settings
from jaxobs.exporters.forms import exposition
from jaxobs.exporters.forms.exposition import MOST_SERIES, OPENMETRICS, TEXT, Renderer, SnapshotCollector
from jaxobs.exporters.prometheus import negotiate
from jaxobs.facts.functions import INSTRUCTION_KINDS, MEMORY_SECTIONS, Histogram
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.verdict import judged
from jaxobs.metrics.catalogue import METRICS
from jaxobs.metrics.metric import Metric
from jaxobs.metrics.subjects.programs import MOST_PROGRAMS
from jaxobs.state.store import Store

pytestmark = pytest.mark.usefixtures("fresh")

Key = tuple[str, tuple[tuple[str, str], ...]]

HOSTILE = [
    "two\nlines", 'a "quoted" one', "back\\slash", "end\\", "\\n no newline", "train.<lambda>", "模型.训练", "naïve🐍",
    "a{b=\"c\"} 1", "# HELP x", "tab\tand\rreturn", " spaces ", "", "\x00\x07", "half\ud800pair",
]  # fmt: skip


def _parsed(text: bytes, content_type: str = TEXT) -> dict[Key, float]:
    parse: Any = parse_openmetrics if content_type == OPENMETRICS else parse_text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        samples = [sample for family in parse(text.decode()) for sample in family.samples]
    found = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
    assert len(found) == len(samples), "a series was given twice"
    return found


def _expected(snapshot: Snapshot) -> dict[Key, float]:
    """Samples made by hand, from the snapshot and the catalogue alone."""
    found: dict[Key, float] = {}
    snapshot = judged(snapshot)
    for metric in METRICS:
        for values, value in metric.read(snapshot):
            for suffix, extra, number in _numbers(metric, value):
                labels = dict(zip(metric.labels, values, strict=True)) | extra
                found[metric.name + suffix, tuple(sorted(labels.items()))] = number
    return found


def _numbers(metric: Metric, value: Any) -> Iterator[tuple[str, dict[str, str], float]]:
    if isinstance(value, Histogram):
        for position, bound in enumerate((*value.bounds, math.inf)):
            yield "_bucket", {"le": "+Inf" if bound == math.inf else str(bound)}, sum(value.counts[: position + 1])
        yield "_count", {}, sum(value.counts)
        yield "_sum", {}, value.sum
    elif metric.kind == "summary":
        yield "_count", {}, value[0]
        yield "_sum", {}, value[1]
    else:
        yield "", {}, value


@pytest.mark.parametrize("content_type", [TEXT, OPENMETRICS])
def test_what_is_read_is_what_is_known(content_type: str) -> None:
    store = full_store()
    expected = _expected(store.snapshot())
    assert _parsed(Renderer(store).render(content_type), content_type) == expected


def test_a_registry_of_ones_own_reads_the_same() -> None:
    """`jaxobs.collector()` in somebody's registry, beside their own metrics and those whose names are the client's."""
    store = full_store()
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("mine", "Mine.", registry=registry).inc()
    prometheus_client.ProcessCollector(registry=registry)
    registry.register(SnapshotCollector(store))  # type: ignore[arg-type]
    parsed, expected = _parsed(prometheus_client.generate_latest(registry)), _expected(store.snapshot())
    theirs = ("process_", "python_gc_")
    ours = {key: value for key, value in parsed.items() if not key[0].startswith(("mine", *theirs))}
    assert ours == {key: value for key, value in expected.items() if not key[0].startswith(theirs)}
    assert registry.get_sample_value("jax_function_calls_total", {"function": "train.step"}) == 3
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(SnapshotCollector(store))  # type: ignore[arg-type]


def test_types_are_told_as_declared() -> None:
    """In OpenMetrics, where the client library's parser checks them against the samples."""
    declared = {"info": "gauge"}
    families = {
        family.name: family.type for family in parse_openmetrics(Renderer(full_store()).render(OPENMETRICS).decode())
    }
    assert families == {m.name.removesuffix("_total"): declared.get(m.kind, m.kind) for m in METRICS}


def test_promtool_finds_nothing_to_say() -> None:
    promtool = program("promtool")
    text = Renderer(full_store()).render()
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=120, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


@pytest.mark.parametrize("content_type", [TEXT, OPENMETRICS])
@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_arrive_whole(name: str, content_type: str) -> None:
    """A function may be called anything; only what no encoding can write is replaced."""
    store = Store()
    store.record(compilation(name))
    next(store.call_stats(name).counter)
    parsed = _parsed(Renderer(store).render(content_type), content_type)
    assert parsed["jax_function_calls_total", (("function", name.replace("\ud800", "?")),)] == 1


@pytest.mark.parametrize("content_type", [TEXT, OPENMETRICS])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e300, 5e-324, 2.0**63, 0.1 + 0.2])
def test_extreme_numbers_arrive_whole(value: float, content_type: str) -> None:
    """Not-a-number and infinities have a spelling; nothing is rounded."""
    store = Store()
    store.collect_seconds = value
    parsed = _parsed(Renderer(store).render(content_type), content_type)
    assert repr(parsed["jaxobs_collect_seconds", ()]) == repr(value)


def test_infinite_durations_go_to_the_last_bucket() -> None:
    """A clock that jumps does not break the scrape."""
    store = Store()
    for seconds in (math.inf, 1e9, 0.0, -1.0):
        store.record(compilation(phases={"compile": seconds}))
    parsed = _parsed(Renderer(store).render(OPENMETRICS), OPENMETRICS)
    assert parsed["jax_compile_phase_seconds_bucket", (("le", "3600.0"), ("phase", "compile"))] == 2
    assert parsed["jax_compile_phase_seconds_bucket", (("le", "+Inf"), ("phase", "compile"))] == 4


def test_what_was_rendered_before_is_never_stale() -> None:
    """Each change is in the next scrape, in both formats, whatever was kept from the last one."""
    store = full_store()
    renderer = Renderer(store)

    def check() -> None:
        for content_type in (TEXT, OPENMETRICS, TEXT):
            expected = _expected(store.snapshot())
            assert _parsed(renderer.render(content_type), content_type) == expected

    check()
    changes: list[Any] = [
        lambda: store.record(compilation(cause="dtype")),
        lambda: next(store.call_stats("train.step").counter),
        lambda: store.call_stats("train.step").durations.append(0.5),
        lambda: store.call_stats("train.step").failed(KeyError()),
        lambda: store.call_stats("another"),
        lambda: store.nothing_open(),
        lambda: store.describe(capabilities={"miss_frame": False}),
        lambda: store.drop("notes", 3),
        lambda: store.set_device(
            DeviceState(device="gpu:0", id=0, platform="gpu", device_kind="Fake", process_index=0),
            DeviceMemory(time=3.0, device="gpu:0", in_use_bytes=4),
        ),
        lambda: (store.reset(), make_time(store)),
    ]
    for change in changes:
        change()
        check()


def test_families_that_did_not_change_are_not_rendered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second scrape of an idle process renders what tells of scrapes, and nothing else."""
    renderer = Renderer(full_store())
    renderer.render()
    again: list[str] = []
    header = exposition._header
    monkeypatch.setattr(
        exposition, "_header", lambda metric, kind: (again.append(metric.name), header(metric, kind))[1]
    )
    renderer.render()
    assert again == ["jaxobs_collect_seconds"]


def test_counters_never_decrease_under_load() -> None:
    """Twelve scrapers and four writers: each scraper sees each counter and bucket only rise."""
    store = Store()
    make_time(store)
    renderer = Renderer(store)
    stop = threading.Event()
    wrong: list[str] = []

    def write(number: int) -> None:
        stats = store.call_stats(f"f{number}")
        while not stop.is_set():
            store.record(compilation(f"f{number}", cache="miss", uncached_because="too_fast"))
            next(stats.counter)
            stats.durations.append(0.001)
            stats.failed(ValueError())

    def scrape() -> None:
        before: dict[Key, float] = {}
        for _ in range(8):
            now = _parsed(renderer.render())
            for key, value in now.items():
                if key[0].endswith(("_total", "_count", "_sum", "_bucket")) and value < before.get(key, 0.0):
                    wrong.append(f"{key} fell from {before[key]} to {value}")
            wrong.extend(f"{key} is gone" for key in before if key not in now)
            before = now

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    scrapers = [threading.Thread(target=scrape) for _ in range(12)]
    for thread in (*writers, *scrapers):
        thread.start()
    for thread in scrapers:
        thread.join()
    stop.set()
    for thread in writers:
        thread.join()
    assert wrong == []
    expected = _expected(store.snapshot())
    assert _parsed(renderer.render()) == expected


def _crowded_store() -> Store:
    store = Store(Settings(max_functions=400))
    for number in range(400):
        for cause in ("first_call", "shape", "dtype"):
            store.record(compilation(f"f{number}", cause=cause, cache="miss"))
        next(store.call_stats(f"f{number}").counter)
    for number in range(8):
        name = f"gpu:{number}"
        device = DeviceState(device=name, id=number, platform="gpu", device_kind="Fake", process_index=0)
        store.set_device(device, DeviceMemory(time=1.0, device=name, in_use_bytes=1, live_arrays=1))
    return store


def test_a_process_never_passes_its_bound_of_series() -> None:
    """Series beyond the bound are left out and counted, once; devices and the observer are told of before functions."""
    store = _crowded_store()
    assert len(_expected(store.snapshot())) > MOST_SERIES
    renderer = Renderer(store)
    scrapes = [_parsed(renderer.render()) for _ in range(4)]
    assert all(len(scrape) <= MOST_SERIES for scrape in scrapes)
    assert scrapes[-1]["jax_device_memory_in_use_bytes", (("device", "gpu:7"),)] == 1
    left_out = len(_expected(store.snapshot())) - len(scrapes[-1])
    dropped = {scrape.get(("jaxobs_dropped_series_total", (("reason", "max_series"),))) for scrape in scrapes[1:]}
    assert dropped == {left_out}


def test_a_series_that_was_admitted_stays() -> None:
    """Which ones fit is decided once: a graph does not lose its line because another function was compiled."""
    store = _crowded_store()
    renderer = Renderer(store)
    before = set(_parsed(renderer.render()))
    for number in range(200):
        store.record(compilation(f"f{number}", cause="sharding", cache="hit"))
        store.note(f"note {number}")
    assert before <= set(_parsed(renderer.render()))


def test_a_busy_training_process_stays_under_five_hundred_series() -> None:
    """Twenty functions compiled for two reasons each, three of them instrumented, on eight devices that tell all."""
    store, sizes = Store(), dict.fromkeys(MEMORY_SECTIONS, 1)
    for number in range(20):
        for cause in ("first_call", "shape"):
            store.record(
                compilation(
                    f"f{number}", cause=cause, cache="miss", uncached_because="too_fast", flops=1.0, memory=sizes
                )
            )
        store.set_program(f"f{number}", 1_770_000_000.0, instructions=dict.fromkeys(INSTRUCTION_KINDS, 1))
    store.set_holdings((), 20)
    for number in range(3):
        stats = store.call_stats(f"f{number}")
        next(stats.counter)
        stats.durations.append(0.001)
    for number in range(8):
        name = f"gpu:{number}"
        device = DeviceState(device=name, id=number, platform="gpu", device_kind="Fake", process_index=0)
        memory = DeviceMemory(
            time=1.0, device=name, in_use_bytes=1, peak_bytes=2, limit_bytes=3, reserved_bytes=0,
            largest_free_block_bytes=1, live_arrays=1, live_array_bytes=1,
            high_water_bytes=2, other_space_bytes={"pinned_host": 1},
        )  # fmt: skip
        store.set_device(device, memory)
    store.describe(capabilities=dict.fromkeys("abcdef", True))
    scrape = _parsed(Renderer(store).render())
    assert sum(name.startswith("jax_program_") for name, _ in scrape) == 10 * MOST_PROGRAMS
    assert len(scrape) < 500


def test_a_scrape_leaves_its_duration() -> None:
    store = Store()
    began = time.perf_counter()
    first = Renderer(store).render()
    took = time.perf_counter() - began
    assert ("jaxobs_collect_seconds", ()) not in _parsed(first)
    assert 0 < _parsed(Renderer(store).render())["jaxobs_collect_seconds", ()] <= took


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (PROMETHEUS_2, OPENMETRICS), (PROMETHEUS_3, OPENMETRICS), ("application/openmetrics-text", OPENMETRICS),
        ("Application/OpenMetrics-Text; Version=1.0.0", OPENMETRICS),
        ('application/openmetrics-text; version="1.0.0"; charset=utf-8', OPENMETRICS),
        ("text/plain;version=0.0.4;q=0.9, application/openmetrics-text;version=1.0.0;q=0.1", TEXT),
        ("application/openmetrics-text;q=0, text/plain", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;version=9.0.0, text/plain;q=0.5", TEXT),
        ("application/openmetrics-text;q=much", TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT), ("*/*", TEXT), (";;,,=;q", TEXT), ("", TEXT), (None, TEXT),
    ],
)  # fmt: skip
def test_the_format_is_the_one_that_the_client_likes_best(accept: str | None, content_type: str) -> None:
    """As real Prometheus servers, browsers, curl and the confused ask for it."""
    assert negotiate(accept) == content_type
