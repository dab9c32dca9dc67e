"""Options for debugging that were left on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jaxobs.ops.doctor.findings import Finding, ok
from jaxobs.ops.doctor.machine import Machine

ABOUT = "Whether options for debugging are left on: of JAX, CUDA, NCCL, TensorFlow's loggers and Python."

OF_JAX: dict[str, tuple[Any, str, str]] = {
    "jax_debug_nans": (True, "warning", "Every output is fetched to look for NaN, and nothing is donated."),
    "jax_debug_infs": (True, "warning", "Every output is fetched to look for infinities, and nothing is donated."),
    "jax_disable_jit": (True, "critical", "Nothing is compiled: every operation runs by itself, many times slower."),
    "jax_check_tracer_leaks": (True, "warning", "Eager control flow recompiles at each call."),
    "jax_enable_checks": (True, "warning", "JAX checks its own data structures at every step."),
    "jax_debug_key_reuse": (True, "warning", "Every use of a key is checked."),
    "jax_disable_most_optimizations": (True, "warning", "XLA leaves out most optimisations: programs are slow."),
    "jax_no_execution": (True, "critical", "Programs are compiled, and never run."),
    "jax_no_tracing": (True, "critical", "Each function that must be traced raises an error."),
    "jax_transfer_guard": ("disallow", "warning", "An implicit transfer raises an error and ends the program."),
    "jax_thread_guard": (True, "warning", "A second thread that uses JAX raises an error."),
    "jax_pallas_poison_buffers": (True, "warning", "Each buffer of a Pallas kernel is overwritten first."),
    "jax_pallas_enable_debug_checks": (True, "warning", "Each check in a Pallas kernel is carried out."),
    "jax_log_compiles": (True, "info", "Every compilation is a warning in the log."),
    "jax_explain_cache_misses": (True, "info", "Every miss is explained in the log."),
    "jax_distributed_debug": (True, "info", "Each step of the connection between processes is logged."),
}
"""The value that it has when it is on, how bad that is in production, and why."""
SAYING: dict[str, tuple[str, str]] = {
    "jax_transfer_guard": ("log|log_explicit", "Every transfer is a line in the log."),
    "jax_dump_ir_to": (".+", "JAX writes every program that it lowers to disk."),
    "jax_debug_log_modules": (".+", "These modules of JAX log in detail."),
    "jax_logging_level": ("DEBUG", "JAX logs in detail."),
}
"""Settings whose value is a text: what it is when the log or the disk fills with details."""
_ON = "1|true|yes|on"
VARIABLES: dict[str, tuple[str, str, str]] = {
    "CUDA_LAUNCH_BLOCKING": (_ON, "warning", "The host waits for every kernel."),
    "HIP_LAUNCH_BLOCKING": (_ON, "warning", "The host waits for every kernel."),
    "AMD_SERIALIZE_KERNEL": ("[1-3]", "warning", "The host waits for every kernel."),
    "XLA_PYTHON_CLIENT_ALLOCATOR": ("platform", "warning", "Each array is allocated by the driver, which is slow."),
    "NCCL_DEBUG": ("INFO|TRACE", "info", "NCCL writes a line for each operation."),
    "NCCL_P2P_DISABLE": ("1", "warning", "GPUs exchange data through the host's memory."),
    "NCCL_IB_DISABLE": ("1", "warning", "Hosts exchange data by TCP instead of InfiniBand or RoCE."),
    "NCCL_SHM_DISABLE": ("1", "warning", "GPUs of one host exchange data by the network."),
    "PYTHONDEVMODE": (".+", "info", "Python runs in development mode, which is slower."),
    "PYTHONTRACEMALLOC": ("[1-9][0-9]*", "warning", "Python keeps a traceback for each allocation."),
    "PYTHONMALLOC": (".*debug", "warning", "Python checks each allocation."),
    "TF_CPP_MAX_VLOG_LEVEL": ("[1-9][0-9]*", "warning", "XLA logs in detail."),
    "TF_CPP_MIN_LOG_LEVEL": ("0", "info", "XLA logs more than warnings."),
    "TF_CPP_VMODULE": (".+", "info", "These files of XLA log in detail."),
}
"""Pattern of the value when the option is on, how bad that is in production, and why."""


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
    for name, (value, why) in SAYING.items():
        given = str(machine.setting(name) or "")
        # JAX turns its own level up for the modules that are named.
        implied = name == "jax_logging_level" and machine.setting("jax_debug_log_modules")
        if re.fullmatch(value, given) and not implied:
            found = True
            yield Finding(
                severity="info", title=f"{name} is set", entity=name, evidence=f"{name}={given}", why=why,
                fix=f"unset {name.upper()}",
            )  # fmt: skip
    for name, (value, severity, why) in VARIABLES.items():
        if re.fullmatch(value, machine.environment.get(name, "").strip(), re.IGNORECASE):
            found = True
            yield Finding(
                severity=severity, title=f"{name} is set", entity=name, why=why, fix=f"unset {name}",
                evidence=f"{name}={machine.environment[name]}",
            )  # fmt: skip
    if not found:
        looked = f"{len(OF_JAX) + len(SAYING)} options of JAX and {len(VARIABLES)} variables"
        yield ok("No option for debugging is on", looked)
