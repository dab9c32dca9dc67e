"""Peaks of devices by their data sheets, in FLOP/s and bytes/s: dense, without the factor of structured sparsity.

A device that is not in the table has no peak: it is never guessed from a similar one, and a part of a GPU (MIG) has
none. Keys are JAX's `device_kind`. JAX's device of TPU v2, v3 and v7 is one of the two cores of a chip: it has half of
the figure that is reported for the chip.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxobs.base import data_files

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


PEAKS: Mapping[str, Peak] = {
    kind: Peak(
        given["source"],
        {name: teraflops * TERA for name, teraflops in given["teraflops"].items()},
        given["gigabytes"] * GIGA,
    )
    for kind, given in data_files.table(__name__).items()
}
"""`gigabytes` of the table are GB/s of the memory, `teraflops` TFLOP/s by number format."""


def peak_flops(device_kind: str) -> float | None:
    """FLOP/s of one device in bfloat16, in float16 where it has no bfloat16; None if it is not known."""
    found = PEAKS.get(device_kind)
    return None if found is None else found.flops.get("bfloat16", found.flops.get("float16"))


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
