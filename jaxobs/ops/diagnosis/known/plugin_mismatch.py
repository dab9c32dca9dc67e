"""The plugin of an accelerator does not fit the framework."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import LINE, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

_NO_EXTENSION = r"\b(?:cuda|rocm)_plugin_extension (?:is )?not found"
_MISSED = re.compile(r"initialize backend|[Uu]nknown backend|No FFI handler registered|custom call target")


def _where_it_is_missed(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A plugin without its extension harms nobody who computes on the CPU, or calls nothing of it."""
    missed = {(each.source, each.process) for each in evidence.of_kind(LINE) if _MISSED.search(each.text)}
    return [each for each in signs if not re.search(_NO_EXTENSION, each.text) or (each.source, each.process) in missed]


KNOWN = Knowledge(
    title="The accelerator's plugin (PJRT, libtpu) does not fit this JAX",
    impact=ENDED,
    signs=(
        Line("Mismatched PJRT plugin PJRT API version", passes=False),
        Line(r"UNIMPLEMENTED: (?:[a-z]+(?:_[a-z]+)+ is not (?:supported|implemented)|PJRT_\w+)"),
        Line(r"Unexpected PJRT_\w+ size: expected \d+, got \d+"),
        Line(
            r"jax_cuda\d+_plugin version \S+ is installed, but it is not compatible|"
            "PJRT plugin .{0,80}(?:not compatible|incompatible)"
        ),
        Line(
            r"\bversion \S+ (?:is installed, but (?:it )?)?is not compatible with the installed jaxlib|"
            r"serialized with version"
        ),
        Line(
            r"requires a libTPU version|module 'libtpu\w*' has no attribute|\w+ not available in this library",
            passes=False,
        ),
        Line(r"\bregister_custom_call_target\(\): incompatible function arguments", passes=False),
        Line("cloud_tpu_init failed", unless="Connection|Timeout|Unavailable|Permission", weak=True, passes=False),
        Line(_NO_EXTENSION, passes=False),
        Line(r"current \w+ dialect version is [\w.]+, can't parse version|reading newer dialect (?:version )?than"),
        Line(r"[Ff]ailed to deserialize (?:StableHLO|portable artifact)|using StableHLO_v\d"),
        Line(
            r"(?:deserialize|parse|legalize)\w*.{0,120}(?:StableHLO|VHLO|Mosaic).{0,40}(?:v\d|version)|"
            r"[Uu]nknown (?:vhlo|stablehlo|mhlo) (?:type|attribute|op\w*|dialect)|[Bb]ytecode version \d+ is newer|"
            r"unregistered (?:operation|dialect) '(?:stablehlo|vhlo|mhlo|tpu)\b|"
            r"(?:[Uu]nsupported|[Uu]nknown) (?:Mosaic|StableHLO|VHLO) (?:\w+ )?version|PJRT_Api already exists"
        ),
        Line(
            r"(?:libtpu|TPU driver|TPU runtime)\b.{0,80}(?:version|build).{0,80}(?:incompatible|not compatible|"
            r"too old|older than|mismatch)"
        ),
    ),
    narrow=_where_it_is_missed,
    collect="What the plugin says when it is loaded by itself: `jaxobs doctor` on that machine.",
    fix="Install jax, jaxlib and the plugin (jax-cuda12-plugin, libtpu) of one release together.",
)
