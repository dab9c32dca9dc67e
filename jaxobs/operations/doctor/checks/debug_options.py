"""Options for debugging that were left on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxobs.operations.doctor.findings import Finding, ok
from jaxobs.operations.doctor.machine import Machine

ABOUT = "Whether options for debugging are left on: of JAX, CUDA, NCCL, TensorFlow's loggers and Python."

OF_JAX: dict[str, tuple[Any, str, str]] = {
    "jax_debug_nans": (True, "warning", "Every output is fetched to look for NaN, and nothing is donated."),
    "jax_debug_infs": (True, "warning", "Every output is fetched to look for infinities, and nothing is donated."),
    "jax_disable_jit": (True, "critical", "Nothing is compiled: every operation runs by itself, many times slower."),
    "jax_check_tracer_leaks": (True, "warning", "Eager control flow recompiles at each call."),
    "jax_enable_checks": (True, "warning", "JAX checks its own data structures at every step."),
    "jax_debug_key_reuse": (True, "warning", "Every use of a key is checked."),
    "jax_log_compiles": (True, "info", "Every compilation is a warning in the log."),
    "jax_explain_cache_misses": (True, "info", "Every miss is explained in the log."),
}
"""The value that it has when it is on, how bad that is in production, and why."""
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "CUDA_LAUNCH_BLOCKING": (("1",), "warning", "The host waits for every kernel."),
    "HIP_LAUNCH_BLOCKING": (("1",), "warning", "The host waits for every kernel."),
    "AMD_SERIALIZE_KERNEL": (("1", "2", "3"), "warning", "The host waits for every kernel."),
    "NCCL_DEBUG": (("INFO", "TRACE"), "info", "NCCL writes a line for each operation."),
    "NCCL_P2P_DISABLE": (("1",), "warning", "GPUs exchange data through the host's memory."),
    "NCCL_IB_DISABLE": (("1",), "warning", "Hosts exchange data by TCP instead of InfiniBand or RoCE."),
    "NCCL_SHM_DISABLE": (("1",), "warning", "GPUs of one host exchange data by the network."),
    "PYTHONDEVMODE": (("1",), "info", "Python runs in development mode, which is slower."),
    "PYTHONTRACEMALLOC": (("1", "25"), "warning", "Python keeps a traceback for each allocation."),
    "PYTHONMALLOC": (("debug", "malloc_debug"), "warning", "Python checks each allocation."),
    "TF_CPP_MAX_VLOG_LEVEL": (("1", "2", "3", "5", "10"), "warning", "XLA logs in detail."),
}


def check(machine: Machine) -> Iterator[Finding]:
    """By JAX's settings as the environment sets them, and by variables."""
    found = False
    for name, (value, severity, why) in OF_JAX.items():
        if name in machine.imported.settings and machine.setting(name) == value and machine.setting(name) is not None:
            found = True
            variable = name.upper()
            yield Finding(
                severity=severity, title=f"{name} is on", entity=name, why=why,
                evidence=f"{variable}={machine.environment[variable]}" if variable in machine.environment else
                f"jax.config.{name} is {value} at the start",
                fix=f"unset {variable}",
            )  # fmt: skip
    for name, (values, severity, why) in VARIABLES.items():
        if machine.environment.get(name, "").strip() in values:
            found = True
            yield Finding(
                severity=severity, title=f"{name} is set", entity=name, why=why, fix=f"unset {name}",
                evidence=f"{name}={machine.environment[name]}",
            )  # fmt: skip
    if not found:
        yield ok("No option for debugging is on", f"{len(OF_JAX)} options of JAX and {len(VARIABLES)} variables")
