"""The catalogue against the contract: each metric, its type, its labels, and that something feeds it."""

import dataclasses
from pathlib import Path

import pytest
from helpers.made_by_hand import full_store

from jaxobs.facts.functions import Histogram
from jaxobs.facts.kinds import event_types
from jaxobs.facts.verdicts import Verdict
from jaxobs.findings.verdict import judged
from jaxobs.metrics import buckets
from jaxobs.metrics.catalogue import METRICS
from jaxobs.metrics.metric import Metric
from jaxobs.state.store import Store

pytestmark = pytest.mark.usefixtures("fresh")

CONTRACT = {
    name: (kind, tuple(labels))
    for name, kind, *labels in map(str.split, Path(__file__).with_name("contract.txt").read_text().splitlines())
}
"""Names, types and labels that are promised."""


def test_names_types_and_labels_are_those_of_the_contract() -> None:
    declared = {metric.name: (metric.kind, metric.labels) for metric in METRICS}
    assert sorted(set(declared) - set(CONTRACT)) == [], "promise these in contract.txt"
    assert declared == CONTRACT, "dashboards and alerts of others rely on what was promised"


def test_every_help_is_one_sentence_of_its_own() -> None:
    """A copied sentence is a metric that nobody looked at."""
    helps = [metric.help for metric in METRICS]
    assert len(set(helps)) == len(helps)
    assert all(text[0].isupper() and text.endswith(".") and "\n" not in text for text in helps)


def test_names_carry_their_unit_and_their_owner() -> None:
    """Base units, in the name, before `_total`; `jax_` for the workload, `jaxobs_` for the observer, or a device's."""
    for metric in METRICS:
        assert metric.name.startswith(("jax_", "accelerator_", "jaxobs_", "process_", "python_gc_"))
        assert metric.name.removesuffix("_total").endswith(metric.unit), metric.name
        assert metric.unit in ("", "seconds", "bytes", "ratio", "watts", "joules", "celsius", "hertz")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_no_label_is_a_target_label() -> None:
    """`instance`, `job` and the host's name are Prometheus' to give."""
    assert not {"instance", "job", "host", "hostname", "pod", "le", "quantile"} & {
        label for metric in METRICS for label in metric.labels
    }


def test_only_instrumented_functions_have_histograms_by_function() -> None:
    """Histograms of 200 functions with 20 buckets each would leave nobody series."""
    by_function = [m.name for m in METRICS if m.kind == "histogram" and "function" in m.labels]
    assert by_function == ["jax_function_dispatch_seconds", "jax_function_device_seconds"]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_something_feeds_every_metric(metric: Metric) -> None:
    samples = list(metric.read(judged(full_store().snapshot())))
    assert samples, f"no fact feeds {metric.name}"
    for labels, value in samples:
        assert len(labels) == len(metric.labels)
        assert all(isinstance(label, str) for label in labels)
        closed = dict(metric.values)
        for name, label in zip(metric.labels, labels, strict=True):
            assert label in closed.get(name, (label,))
        expected = {"histogram": Histogram, "summary": tuple}.get(metric.kind, (int, float))
        assert isinstance(value, expected)
    assert len({labels for labels, _ in samples}) == len(samples)


def test_the_verdict_names_the_worst_finding_and_its_line() -> None:
    """No sentence with figures, of which each would be a series, and no endless path."""
    metric = next(each for each in METRICS if each.name == "jax_verdict_info")
    snapshot = full_store().snapshot()
    assert list(metric.read(snapshot)) == [], "nobody has judged"
    judged_ = judged(snapshot)
    assert judged_.verdict is not None
    worst = next(each for each in snapshot.findings if each.id == judged_.verdict.findings[0].id)
    for where, told in (
        (None, ""),
        ("train.py:12", "train.py:12"),
        ("x" * 300 + "train.py:12", "x" * 189 + "train.py:12"),
    ):
        changed = dataclasses.replace(judged_, findings=(dataclasses.replace(worst, where=where),))
        assert list(metric.read(changed)) == [((judged_.verdict.verdict, worst.finding, told), 1)]
    ok = dataclasses.replace(judged_, verdict=Verdict(verdict="ok", headline="Nothing to fix."))
    assert list(metric.read(ok)) == [(("ok", "", ""), 1)]


def test_what_is_not_known_has_no_sample() -> None:
    """Absent, never zero: an empty process tells of no device, no compile start and no cost of a scrape."""
    snapshot = Store().snapshot()
    silent = {metric.name for metric in METRICS if not list(metric.read(snapshot))}
    assert silent >= {
        "jax_device_memory_in_use_bytes", "jax_live_arrays", "jax_device_info", "jaxobs_collect_seconds",
        "jax_executables", "jax_program_flops", "jax_device_memory_high_water_bytes",
        "jax_compilation_oldest_start_timestamp_seconds",
    }  # fmt: skip
    assert "jax_compilations_in_progress" not in silent


def test_buckets_span_what_the_contract_says() -> None:
    bounds = buckets.PHASE_BOUNDS
    assert (bounds[0], bounds[-1]) == (0.001, 3600.0)
    for each in (bounds, buckets.DISPATCH_BOUNDS, buckets.STEP_BOUNDS):
        assert list(each) == sorted(set(each))


def test_every_event_is_of_a_kind_of_the_contract() -> None:
    assert set(event_types()) == {
        "manifest", "compilation", "cache_lookup", "out_of_memory", "error", "step", "memory", "transfer", "nonfinite",
        "finding", "action", "profile", "exit",
    }, "promise a new kind here"  # fmt: skip
    assert {kind: each.kind for kind, each in event_types().items()} == {kind: kind for kind in event_types()}
