"""Compiled programs and where they come from: the persistent cache, their size, what moves between host and device."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest
from jaxobs.ops.monitoring.panel_types import Panel, Row, Target

CACHE = Row(
    title="Persistent cache",
    panels=(
        Panel(
            key="cache_results",
            title="Look-ups by result",
            description=(
                "`hit` loads what an earlier process compiled, `miss` compiles, `disabled` means "
                "that no cache was available."
            ),
            kind="timeseries", unit="short", width=6, stacked=True, good="none", least=0,
            colors={"hit": "green", "miss": "orange", "disabled": "gray"},
            targets=(
                Target(
                    expr="sum by (result) (increase(jax_persistent_cache_requests_total{@fn}[$__rate_interval]))",
                    legend="{{result}}",
                ),
            ),
        ),
        Panel(
            key="cache_unsaved",
            title="Programs that were not stored",
            description=(
                "By reason. `error` and `not_writer` mean that the next start recompiles; `too_fast` "
                "is a setting."
            ),
            kind="timeseries", unit="short", width=6, stacked=True, good="low", least=0, needs="trouble",
            no_value="Every program was stored.",
            targets=(
                Target(
                    expr="sum by (reason) (increase(jax_persistent_cache_unsaved_total{@}[$__rate_interval]))",
                    legend="{{reason}}",
                ),
            ),
        ),
        Panel(
            key="cache_size",
            title="Size on disk",
            description="Bytes of all entries. Processes that share a directory show the same value.",
            kind="timeseries", unit="bytes", width=6, good="none", least=0, needs="persistent_cache",
            targets=(Target(expr=highest("jax_persistent_cache_bytes{@}"), legend="{{instance}}"),),
        ),
        Panel(
            key="cache_saved",
            title="Compile time that hits saved",
            description="Seconds of compiling that hits saved, in each interval.",
            kind="timeseries", unit="s", width=6, good="high", least=0,
            targets=(
                Target(
                    expr=highest(
                        "sum by (instance) (increase(jax_persistent_cache_saved_seconds_total{@}[$__rate_interval]))"
                    ),
                    legend="{{instance}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

ROW = Row(
    title="Programs",
    panels=(
        Panel(
            key="program_memory",
            title="Memory of the largest programs",
            description=(
                "Memory of each function's latest program on one device, by the compiler's analysis. "
                "`temp` is what it needs while it runs, in addition to its arguments and results."
            ),
            kind="bargauge", unit="bytes", width=8, good="none", least=0,
            targets=(
                Target(
                    expr=highest("max by (function, section) (jax_program_memory_bytes{@fn})"),
                    legend="{{function}} {{section}}", instant=True,
                ),
            ),
        ),
        Panel(
            key="program_flops",
            title="Operations of one execution",
            description="Floating-point operations of the latest program of each function on one device.",
            kind="bargauge", unit="short", width=8, good="none", least=0,
            targets=(
                Target(
                    expr=highest("max by (function) (jax_program_flops{@fn})"), legend="{{function}}", instant=True
                ),
            ),
        ),
        Panel(
            key="program_instructions",
            title="Instructions after optimization",
            description=(
                "By kind. Many `collective` instructions cost time between devices; much `other` "
                "means that little was fused."
            ),
            kind="bargauge", unit="short", width=8, good="none", least=0,
            targets=(
                Target(
                    expr=highest("max by (function, kind) (last_over_time(jax_program_instructions{@fn}[5m]))"),
                    legend="{{function}} {{kind}}", instant=True,
                ),
            ),
        ),
        Panel(
            key="executables",
            title="Loaded programs",
            description=(
                "Compiled programs that are kept. A line that only rises is a leak: functions that "
                "are re-created in each call."
            ),
            kind="timeseries", unit="short", width=8, good="low", least=0, decimals=0,
            targets=(Target(expr=highest("jax_executables{@}"), legend="{{instance}}"),),
        ),
        Panel(
            key="transfers",
            title="Transfers between host and device",
            description=(
                "Bytes per second by the line of code that moves them, if the setting `transfers` is "
                "on. A line inside the loop makes the program wait for the device."
            ),
            kind="timeseries", unit="Bps", width=8, good="low", least=0, needs="transfers",
            targets=(
                Target(
                    expr=highest(
                        "sum by (instance, site, direction) (rate(jax_host_transfer_bytes_total{@}[$__rate_interval]))"
                    ),
                    legend="{{instance}} {{site}} {{direction}}",
                ),
            ),
        ),
        Panel(
            key="transfer_rate",
            title="Arrays moved per second",
            description="Number of transfers by line of code: many small ones cost more than a few large ones.",
            kind="timeseries", unit="cps", width=8, good="low", least=0, needs="transfers",
            targets=(
                Target(
                    expr=highest(
                        "sum by (instance, site, direction) (rate(jax_host_transfers_total{@}[$__rate_interval]))"
                    ),
                    legend="{{instance}} {{site}} {{direction}}",
                ),
            ),
        ),
    ),
)  # fmt: skip
