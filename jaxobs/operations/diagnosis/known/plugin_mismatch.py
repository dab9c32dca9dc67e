"""The plugin of an accelerator does not fit the framework."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The accelerator's plugin (PJRT, libtpu) does not fit this JAX",
    impact=ENDED,
    signs=(
        Line("Mismatched PJRT plugin PJRT API version", passes=False),
        Line(r"Unexpected PJRT_\w+ size: expected \d+, got \d+"),
        Line(
            r"jax_cuda\d+_plugin version \S+ is installed, but it is not compatible|"
            "PJRT plugin .{0,80}(?:not compatible|incompatible)"
        ),
        Line(r"(?:jax-cuda|jax_cuda)\d+[-_]p\w+ version .{0,60}not compatible with the installed jaxlib"),
    ),
    fix="Install jax, jaxlib and the plugin (jax-cuda12-plugin, libtpu) of one release together.",
)
