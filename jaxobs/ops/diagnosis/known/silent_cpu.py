"""The program runs on the CPU though the machine has an accelerator."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import SLOW, Knowledge, Line

KNOWN = Knowledge(
    title="The job runs on the CPU: JAX found the accelerator but not the software for it",
    impact=SLOW,
    signs=(
        Line(
            "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed",
            unless="Falling back to (?!cpu)",
            passes=False,
        ),
        Line(
            "A Google TPU may be present on this machine, but either a TPU-enabled jaxlib or libtpu is not installed",
            passes=False,
        ),
        Line("No GPU/TPU found, falling back to CPU", weak=True),
    ),
    follows=(
        "accelerator_in_use",
        "cuda_library_mismatch",
        "plugin_mismatch",
        "no_accelerator",
        "accelerator_memory_taken",
    ),
    fix=(
        "Install the build for the device: `pip install -U 'jax[cuda12]'`, `'jax[cuda13]'` or "
        "`'jax[tpu]'`. `jaxobs doctor` shows what is missing."
    ),
    collect="Whether that machine has an accelerator, and what JAX lacks to use it: `jaxobs doctor` on it.",
)
