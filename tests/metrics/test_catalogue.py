"""The catalogue against the contract: each metric, its type, its labels, and that something feeds it."""

from __future__ import annotations

import pytest
from helpers.made_by_hand import full_store

from jaxobs.facts.histograms import Histogram
from jaxobs.facts.kinds import event_types
from jaxobs.metrics import buckets
from jaxobs.metrics.catalogue import METRICS
from jaxobs.metrics.metric import Metric
from jaxobs.state.store import Store

pytestmark = pytest.mark.usefixtures("fresh")

CONTRACT = {
    "jax_compilations_total": ("counter", ("function", "cause", "cache")),
    "jax_compilations_in_progress": ("gauge", ()),
    "jax_compilation_oldest_start_timestamp_seconds": ("gauge", ()),
    "jax_compile_phase_seconds": ("histogram", ("phase",)),
    "jax_function_compile_seconds": ("summary", ("function", "phase")),
    "jax_function_calls_total": ("counter", ("function",)),
    "jax_function_dispatch_seconds": ("histogram", ("function",)),
    "jax_function_device_seconds": ("histogram", ("function",)),
    "jax_function_errors_total": ("counter", ("function", "error")),
    "jax_fastpath_misses_total": ("counter", ("function",)),
    "jax_persistent_cache_requests_total": ("counter", ("function", "result")),
    "jax_persistent_cache_unsaved_total": ("counter", ("reason",)),
    "jax_persistent_cache_saved_seconds_total": ("counter", ()),
    "jax_persistent_cache_bytes": ("gauge", ()),
    "jax_persistent_cache_entries": ("gauge", ()),
    "jax_device_memory_in_use_bytes": ("gauge", ("device",)),
    "jax_device_memory_peak_bytes": ("gauge", ("device",)),
    "jax_device_memory_limit_bytes": ("gauge", ("device",)),
    "jax_device_memory_reserved_bytes": ("gauge", ("device",)),
    "jax_device_memory_largest_free_block_bytes": ("gauge", ("device",)),
    "jax_device_info": ("info", ("device", "platform", "kind", "process_index", "pci_bus_id")),
    "jax_live_arrays": ("gauge", ("device",)),
    "jax_live_array_bytes": ("gauge", ("device",)),
    "jax_out_of_memory_total": ("counter", ("function", "device")),
    "jax_device_memory_high_water_bytes": ("gauge", ("device",)),
    "jax_live_array_space_bytes": ("gauge", ("device", "space")),
    "jax_program_memory_bytes": ("gauge", ("function", "section")),
    "jax_program_flops": ("gauge", ("function",)),
    "jax_program_instructions": ("gauge", ("function", "kind")),
    "jax_executables": ("gauge", ()),
    "jax_steps_total": ("counter", ("loop",)),
    "jax_step_seconds": ("histogram", ("loop",)),
    "jax_step_items_total": ("counter", ("loop",)),
    "jax_step_mfu_ratio": ("gauge", ("loop",)),
    "jax_time_seconds_total": ("counter", ("category",)),
    "jax_goodput_ratio": ("gauge", ("scope",)),
    "jax_run_lost_seconds": ("gauge", ("cause",)),
    "jax_checkpoint_seconds": ("histogram", ("operation",)),
    "jax_requests_total": ("counter", ("route", "cold", "outcome")),
    "jax_request_seconds": ("histogram", ("route", "cold")),
    "jax_request_waited_seconds": ("summary", ("route",)),
    "jax_request_queue_seconds": ("histogram", ("route",)),
    "jax_request_first_token_seconds": ("histogram", ("route",)),
    "jax_request_output_token_seconds": ("histogram", ("route",)),
    "jax_request_inter_token_seconds": ("histogram", ("route",)),
    "jax_request_tokens_total": ("counter", ("route", "direction")),
    "jax_request_finish_reasons_total": ("counter", ("route", "reason")),
    "jax_request_batch_size": ("histogram", ("route",)),
    "jax_request_batch_rows_total": ("counter", ("route", "rows")),
    "jax_requests_in_flight": ("gauge", ()),
    "jax_engine_requests": ("gauge", ("engine", "state")),
    "jax_engine_kv_cache_ratio": ("gauge", ("engine",)),
    "jax_profile_device_seconds_total": ("counter", ("function", "category")),
    "jax_profile_window_seconds_total": ("counter", ()),
    "jax_device_busy_ratio": ("gauge", ("device",)),
    "jax_collective_exposed_seconds_total": ("counter", ("function",)),
    "jax_input_wait_seconds_total": ("counter", ("input",)),
    "jax_input_batches_total": ("counter", ("input",)),
    "jax_nonfinite_total": ("counter", ("name",)),
    "jax_host_transfers_total": ("counter", ("site", "direction")),
    "jax_host_transfer_bytes_total": ("counter", ("site", "direction")),
    "accelerator_info": ("info", ("device", "uuid", "model", "pci_bus_id", "driver_version", "mig_parent")),
    "accelerator_up": ("gauge", ("device",)),
    "accelerator_utilization_ratio": ("gauge", ("device",)),
    "accelerator_tensorcore_utilization_ratio": ("gauge", ("device",)),
    "accelerator_memory_controller_utilization_ratio": ("gauge", ("device",)),
    "accelerator_memory_bandwidth_utilization_ratio": ("gauge", ("device",)),
    "accelerator_memory_used_bytes": ("gauge", ("device",)),
    "accelerator_memory_total_bytes": ("gauge", ("device",)),
    "accelerator_process_memory_bytes": ("gauge", ("device", "process")),
    "accelerator_processes": ("gauge", ("device",)),
    "accelerator_power_watts": ("gauge", ("device",)),
    "accelerator_power_limit_watts": ("gauge", ("device",)),
    "accelerator_energy_joules_total": ("counter", ("device",)),
    "accelerator_temperature_celsius": ("gauge", ("device",)),
    "accelerator_clock_hertz": ("gauge", ("device", "clock")),
    "accelerator_throttled": ("gauge", ("device", "reason")),
    "accelerator_slowdown_ratio": ("gauge", ("device",)),
    "accelerator_ecc_errors_total": ("counter", ("device", "error", "counter")),
    "accelerator_xid_errors_total": ("counter", ("device", "xid")),
    "accelerator_pcie_bytes_total": ("counter", ("device", "direction")),
    "accelerator_nvlink_bytes_total": ("counter", ("device", "direction")),
    "accelerator_nvlink_links": ("gauge", ("device",)),
    "accelerator_link_fault_level": ("gauge", ("device", "link")),
    "jax_build_info": ("info", ("jaxobs", "python", "jax", "jaxlib", "plugin", "driver", "runtime")),
    "jax_findings": ("gauge", ("finding",)),
    "jax_process_start_timestamp_seconds": ("gauge", ()),
    "jax_processes": ("gauge", ()),
    "jax_run_info": ("info", ("run_id", "last_exit")),
    "jax_process_info": ("info", ("process_index", "process_count")),
    "jaxobs_internal_errors_total": ("counter", ("where",)),
    "jaxobs_dropped_series_total": ("counter", ("reason",)),
    "jaxobs_collect_seconds": ("gauge", ()),
    "jaxobs_capability": ("gauge", ("name",)),
}


def test_names_types_and_labels_are_those_of_the_contract() -> None:
    declared = {metric.name: (metric.kind, metric.labels) for metric in METRICS}
    assert sorted(set(declared) - set(CONTRACT)) == [], "promise these in CONTRACT in this file"
    assert declared == CONTRACT, "dashboards and alerts of others rely on what was promised"


def test_every_help_is_one_sentence_of_its_own() -> None:
    """A copied sentence is a metric that nobody looked at."""
    helps = [metric.help for metric in METRICS]
    assert len(set(helps)) == len(helps)
    assert all(text[0].isupper() and text.endswith(".") and "\n" not in text for text in helps)


def test_names_carry_their_unit_and_their_owner() -> None:
    """Base units, in the name, before `_total`; `jax_` for the workload, `jaxobs_` for the observer, or a device's."""
    for metric in METRICS:
        assert metric.name.startswith(("jax_", "accelerator_", "jaxobs_"))
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
    """A metric that no fact reaches is named here, as is one whose samples do not fit its declaration."""
    samples = list(metric.read(full_store().snapshot()))
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


def test_what_is_not_known_has_no_sample() -> None:
    """Absent, never zero: an empty process tells of no device, no compile start and no cost of a scrape."""
    snapshot = Store().snapshot()
    silent = {metric.name for metric in METRICS if not list(metric.read(snapshot))}
    assert {"jax_device_memory_in_use_bytes", "jax_live_arrays", "jax_device_info", "jaxobs_collect_seconds"} <= silent
    assert {"jax_executables", "jax_program_flops", "jax_device_memory_high_water_bytes"} <= silent
    assert "jax_compilation_oldest_start_timestamp_seconds" in silent
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
