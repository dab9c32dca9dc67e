"""A metric's name and unit in OpenTelemetry, and what a Collector's Prometheus output makes of them.

Both follow from the catalogue: dots between the words, and the unit next to the name. They are chosen such that the
Collector's own mapping gives back the name that `/metrics` has, so that the dashboards and alerts fit either way.
"""

import re

from jaxobs.metrics.metric import Metric

UCUM = {
    "seconds": "s", "bytes": "By", "ratio": "1", "watts": "W", "joules": "J", "celsius": "Cel", "hertz": "Hz",
}  # fmt: skip
"""Our units, as OpenTelemetry writes them."""

_TOGETHER = (
    "cache_load", "first_token", "finish_reasons", "free_block", "high_water", "in_flight", "in_progress", "in_use",
    "inter_token", "kv_cache", "live_array", "live_arrays", "memory_bandwidth", "memory_controller", "out_of_memory",
    "output_token", "persistent_cache",
)  # fmt: skip
"""Words that are one part of a name."""
_LEAVES = (
    "accelerator_power", "accelerator_nvlink", "jax_checkpoint", "jax_compilations", "jax_container_cpu_cfs_throttled",
    "jax_live_array", "jax_persistent_cache", "jax_request", "jax_requests", "jax_step", "process_virtual_memory",
)  # fmt: skip
"""Metrics with whose names others begin. OpenTelemetry wants no name to be a namespace too: there these have no dot."""
_PLURALS = (("series", "series"), ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("s", ""))


def name(metric: Metric) -> str:
    """Returns the name in OpenTelemetry: `jax.compile.phase` for `jax_compile_phase_seconds`."""
    bare = metric.name.removesuffix("_total")
    if metric.unit:
        bare = bare.removesuffix(f"_{metric.unit}")
    for leaf in _LEAVES:
        if bare.startswith(f"{leaf}_"):
            bare = leaf + bare.removeprefix(leaf).replace("_", "-")
    for words in _TOGETHER:
        bare = re.sub(rf"(?<![a-z]){words}(?![a-z])", words.replace("_", "-"), bare)
    return bare.replace("_", ".").replace("-", "_")


def unit(metric: Metric) -> str:
    """Returns the unit in UCUM; `{step}` for what counts steps; empty for a state or a number without one."""
    if metric.unit:
        return UCUM[metric.unit]
    for word in metric.name.split("_")[1:] if metric.kind != "info" else ():
        for ending, singular in _PLURALS:
            if word.endswith(ending) and len(word) > 3:
                return f"{{{word.removesuffix(ending)}{singular}}}"
    return ""


def in_prometheus(name: str, unit: str, kind: str) -> str:
    """Returns the name that the Collector's Prometheus exporter gives a metric of this `kind`."""
    words = {ucum: word for word, ucum in UCUM.items() if ucum != "1"}
    mapped = name.replace(".", "_")
    if unit in words:
        mapped += f"_{words[unit]}"
    if kind == "counter":
        mapped += "_total"
    elif unit == "1" and kind == "gauge":
        mapped += "_ratio"
    return mapped
