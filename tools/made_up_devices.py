"""Metrics of two processes with eight made-up devices each, GPUs and TPUs: for panels that need what is not there.

python -m tools.made_up_devices 9470 9471

Names and labels are those of the catalogue, values are waves. A GPU runs hot and is throttled, one fills up, one has an
Xid error after 20 s. The process with GPUs also answers as dcgm-exporter and kube-state-metrics would, for pods with
the names of jobs, whose containers were killed for memory; the process with TPUs also answers as vLLM would.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jaxobs.facts.accelerators import THROTTLE_REASONS
from jaxobs.metrics.catalogue import METRICS

LIMIT, DEVICES = 80 * 2**30, 8
LABELS = {metric.name: metric.labels for metric in METRICS}
Samples = Iterator[tuple[str, tuple[str, ...], float]]


def process(platform: str, started: float) -> Samples:
    """Yields the samples that a process exports now which was started then, in seconds since the epoch."""
    age = time.time() - started
    yield "jax_build_info", ("0.1.0", "3.12.8", "0.10.2", "0.10.2", f"jax-{platform}", "570.86.10", ""), 1
    yield "jax_process_info", ("0", "2"), 1
    yield "jax_process_start_timestamp_seconds", (), started
    yield "jax_step_mfu_ratio", ("train",), 0.41 + 0.02 * _wave(0)
    for number in range(DEVICES):
        device = f"{platform}:{number}"
        yield from _memory(device, platform, number, age)
        yield from _accelerator(device, number)
        yield from _gpu(device, number, age) if platform == "gpu" else _tpu(device, number)


def _wave(number: int, period: float = 30) -> float:
    return math.sin(2 * math.pi * time.time() / period + number)


def _memory(device: str, platform: str, number: int, age: float) -> Samples:
    used = LIMIT * (0.6 + 0.03 * number) + (2**27 * age if number == 3 else 0)
    yield "jax_device_info", (device, platform, "NVIDIA H100" if platform == "gpu" else "TPU v5p", "0", ""), 1
    yield "jax_device_memory_in_use_bytes", (device,), used
    yield "jax_device_memory_high_water_bytes", (device,), min(LIMIT, used * 1.08)
    yield "jax_device_memory_limit_bytes", (device,), LIMIT
    yield "jax_device_memory_largest_free_block_bytes", (device,), (LIMIT - used) * (0.9 - 0.08 * number)
    yield "jax_live_arrays", (device,), 1200 + 10 * number
    yield "jax_live_array_bytes", (device,), used * 0.8
    yield "jax_live_array_space_bytes", (device, "pinned_host"), 2**31


def _accelerator(device: str, number: int) -> Samples:
    yield "accelerator_up", (device,), 1
    yield "accelerator_utilization_ratio", (device,), 0.9 + 0.06 * _wave(number)
    yield "accelerator_memory_used_bytes", (device,), LIMIT * 0.93
    yield "accelerator_memory_total_bytes", (device,), LIMIT


def _gpu(device: str, number: int, age: float) -> Samples:
    hot = number == 5
    yield "accelerator_info", (device, f"GPU-{number}", "NVIDIA H100", "", "570.86.10", ""), 1
    yield "accelerator_memory_controller_utilization_ratio", (device,), 0.45 + 0.1 * _wave(number, 20)
    yield "accelerator_power_watts", (device,), 610 + 60 * _wave(number)
    yield "accelerator_power_limit_watts", (device,), 700
    yield "accelerator_energy_joules_total", (device,), 610 * age
    yield "accelerator_temperature_celsius", (device,), 62 + number + (20 if hot else 0) + 2 * _wave(number)
    for clock, hertz in (("sm", 1.98e9), ("memory", 2.619e9)):
        yield "accelerator_clock_hertz", (device, clock), hertz * (0.8 if hot and clock == "sm" else 1)
    for reason in THROTTLE_REASONS:
        yield "accelerator_throttled", (device, reason), float(hot and "thermal" in reason and _wave(0, 40) > 0)
    for direction, factor in (("transmit", 1.0), ("receive", 1.6)):
        yield "accelerator_pcie_bytes_total", (device, direction), factor * 3e9 * age
        yield "accelerator_nvlink_bytes_total", (device, direction), factor * 90e9 * age
    for process, share in (("self", 0.92), ("others", 0.01)):
        yield "accelerator_process_memory_bytes", (device, process), share * LIMIT
    yield "accelerator_nvlink_links", (device,), 18
    yield "accelerator_ecc_errors_total", (device, "corrected", "volatile"), age // 20 if number == 1 else 0
    if number == 2 and age > 20:
        yield "accelerator_xid_errors_total", (device, "63"), 1


OTHERS = (
    *(f'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{UUID="GPU-{number}",gpu="{number}"}} 0.{50 + number}' for number in range(8)),
    *(
        f'kube_pod_container_status_{name}pod="{pod}",container="train"{more}}} 1'
        for pod in ("made-up", "train")
        for name, more in (("restarts_total{", ""), ("last_terminated_reason{", ',reason="OOMKilled"'))
    ),
)
"""Lines of other exporters about these devices, in the form that DCGM 4 and kube-state-metrics 2 document."""


def _vllm(age: float) -> Iterator[str]:
    """Yields the lines of vLLM's own exporter, with the names of its `v1/metrics/loggers.py`."""
    model = 'model_name="gemma",engine="0"'
    yield f"vllm:num_requests_running{{{model}}} {12 + 4 * _wave(0)}"
    yield f"vllm:num_requests_waiting{{{model}}} {2 + 2 * _wave(1)}"
    yield f"vllm:kv_cache_usage_perc{{{model}}} {0.7 + 0.2 * _wave(2)}"
    yield f"vllm:prompt_tokens_total{{{model}}} {900 * age}"
    yield f"vllm:generation_tokens_total{{{model}}} {300 * age}"
    yield f'vllm:request_success_total{{{model},finished_reason="stop"}} {3 * age}'
    for name, median in (
        ("time_to_first_token", 0.1), ("request_time_per_output_token", 0.02), ("inter_token_latency", 0.02),
        ("e2e_request_latency", 5), ("request_queue_time", 0.3),
    ):  # fmt: skip
        for limit, share in ((median, 0.5), (3 * median, 0.97), ("+Inf", 1)):
            yield f'vllm:{name}_seconds_bucket{{{model},le="{limit}"}} {share * 3 * age}'


def _tpu(device: str, number: int) -> Samples:
    yield "accelerator_tensorcore_utilization_ratio", (device,), 0.55 + 0.05 * _wave(number)
    yield "accelerator_memory_bandwidth_utilization_ratio", (device,), 0.7 + 0.05 * _wave(number)
    yield "accelerator_slowdown_ratio", (device,), 0.2 if number == 6 and _wave(0, 40) > 0 else 0
    yield "accelerator_link_fault_level", (device, "tray1.ici0"), 3 if number == 4 else 0


def text(platform: str, started: float) -> str:
    """The exposition of one process."""
    lines = []
    for name, values, value in process(platform, started):
        labels = ",".join(f'{label}="{each}"' for label, each in zip(LABELS[name], values, strict=True))
        lines.append(f"{name}{{{labels}}} {value}\n")
    others = OTHERS if platform == "gpu" else _vllm(time.time() - started)
    return "".join(lines) + "".join(f"{line}\n" for line in others)


def serve(port: int, platform: str) -> ThreadingHTTPServer:
    """Answers on loopback until it is shut down, as a process that starts now."""
    started = time.time()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text(platform, started).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    servers = [serve(int(port), platform) for port, platform in zip(sys.argv[1:], ("gpu", "tpu"), strict=False)]
    print(*(f"http://127.0.0.1:{each.server_port}/metrics" for each in servers), sep="\n", flush=True)
    threading.Event().wait()
