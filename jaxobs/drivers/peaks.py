"""Peaks of devices by their data sheets, in FLOP/s and bytes/s: dense, without the factor of structured sparsity.

A device that is not in the table has no peak: it is never guessed from a similar one, and a part of a GPU (MIG) has
none. Keys are JAX's `device_kind`. JAX's device of TPU v2, v3 and v7 is one of the two cores of a chip: it has half of
the figure that is reported for the chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GIGA, TERA = 1e9, 1e12


@dataclass(frozen=True, slots=True)
class Peak:
    """Peaks of one kind of device."""

    source: str
    """The vendor's document that reports them."""
    flops: Mapping[str, float]
    """By number format: `bfloat16`, `float16`, `float8`, `tensorfloat32`."""
    bandwidth: float
    """Peak of the device's memory, in bytes/s."""


def _peak(source: str, gigabytes: float, **teraflops: float) -> Peak:
    return Peak(source, {name: value * TERA for name, value in teraflops.items()}, gigabytes * GIGA)


_V100 = "NVIDIA V100 Tensor Core GPU data sheet"
_A100 = "NVIDIA A100 Tensor Core GPU data sheet"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet, its figures with sparsity halved"
_H200 = "NVIDIA H200 Tensor Core GPU data sheet, its figures with sparsity halved"
_BLACKWELL = "NVIDIA Blackwell data sheet, its figures with sparsity halved"
_TPU = "Google Cloud documentation, TPU system architecture:"


def _a100(gigabytes: float) -> Peak:
    return _peak(_A100, gigabytes, bfloat16=312, float16=312, tensorfloat32=156)


_H100_SXM = _peak(_H100, 3350, bfloat16=989.5, float16=989.5, float8=1979, tensorfloat32=494.5)

PEAKS: Mapping[str, Peak] = {
    "Tesla V100-SXM2-16GB": _peak(_V100, 900, float16=125),
    "Tesla V100-SXM2-32GB": _peak(_V100, 900, float16=125),
    "Tesla V100-PCIE-16GB": _peak(_V100, 900, float16=112),
    "Tesla V100-PCIE-32GB": _peak(_V100, 900, float16=112),
    "Tesla T4": _peak("NVIDIA T4 data sheet", 320, float16=65),
    "NVIDIA A100-SXM4-40GB": _a100(1555),
    "NVIDIA A100-SXM4-80GB": _a100(2039),
    "NVIDIA A100-PCIE-40GB": _a100(1555),
    "NVIDIA A100 80GB PCIe": _a100(1935),
    "NVIDIA L4": _peak(
        "NVIDIA L4 data sheet, its figures with sparsity halved", 300,
        bfloat16=121, float16=121, float8=242.5, tensorfloat32=60,
    ),
    "NVIDIA L40S": _peak(
        "NVIDIA L40S data sheet", 864, bfloat16=362.05, float16=362.05, float8=733, tensorfloat32=183
    ),
    "NVIDIA H100 80GB HBM3": _H100_SXM,
    "NVIDIA H100 PCIe": _peak(_H100, 2000, bfloat16=756.5, float16=756.5, float8=1513, tensorfloat32=378),
    "NVIDIA H100 NVL": _peak(_H100, 3900, bfloat16=835.5, float16=835.5, float8=1670.5, tensorfloat32=417.5),
    "NVIDIA H200": _peak(_H200, 4800, bfloat16=989.5, float16=989.5, float8=1979, tensorfloat32=494.5),
    "NVIDIA H200 NVL": _peak(_H200, 4800, bfloat16=835.5, float16=835.5, float8=1670.5, tensorfloat32=417.5),
    "NVIDIA B200": _peak(_BLACKWELL, 8000, bfloat16=2250, float16=2250, float8=4500, tensorfloat32=1100),
    "NVIDIA GB200": _peak(_BLACKWELL, 8000, bfloat16=2500, float16=2500, float8=5000, tensorfloat32=1250),
    "TPU v2": _peak(f"{_TPU} TPU v2, 45 TFLOP/s and 700 GB/s per chip", 350, bfloat16=22.5),
    "TPU v3": _peak(f"{_TPU} TPU v3, 123 TFLOP/s and 900 GB/s per chip", 450, bfloat16=61.5),
    "TPU v4": _peak(f"{_TPU} TPU v4", 1228, bfloat16=275),
    "TPU v5 lite": _peak(f"{_TPU} TPU v5e", 819, bfloat16=197),
    "TPU v5e": _peak(f"{_TPU} TPU v5e", 819, bfloat16=197),
    "TPU v5": _peak(f"{_TPU} TPU v5p", 2765, bfloat16=459),
    "TPU v5p": _peak(f"{_TPU} TPU v5p", 2765, bfloat16=459),
    "TPU v6 lite": _peak(f"{_TPU} TPU v6e", 1640, bfloat16=918),
    "TPU v6e": _peak(f"{_TPU} TPU v6e", 1640, bfloat16=918),
    "TPU7x": _peak(
        f"{_TPU} TPU7x, 2,307 TFLOP/s per chip in bfloat16 and 4,614 in FP8, 7,380 GB/s",
        3690, bfloat16=1153.5, float8=2307,
    ),
}  # fmt: skip


def peak_flops(device_kind: str) -> float | None:
    """FLOP/s of one device in bfloat16, in float16 where it has no bfloat16; None if it is not known."""
    found = PEAKS.get(device_kind)
    if found is None:
        return None
    return found.flops.get("bfloat16", found.flops.get("float16"))


def peak_flops_of(device_kind: str, dtype: str | None) -> float | None:
    """FLOP/s of one device in the format in which it multiplies numbers of a type of XLA (`bf16`, `f32`).

    None where the data sheet has no figure for that: XLA may compute `f32` in several formats, of which only the
    tensor cores' has one.
    """
    found = PEAKS.get(device_kind)
    name = next((name for start, name in _FORMATS if (dtype or "").startswith(start)), None)
    if found is None or name is None:
        return None
    return found.flops.get(name) or (found.flops.get("bfloat16") if name == "float16" else None)


_FORMATS = (("bf16", "bfloat16"), ("f16", "float16"), ("f8", "float8"), ("f32", "tensorfloat32"))


def peak_bandwidth(device_kind: str) -> float | None:
    """Bytes/s that one device's memory delivers at most; None if it is not known."""
    found = PEAKS.get(device_kind)
    return found.bandwidth if found is not None else None
