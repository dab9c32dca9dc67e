"""The server has no memory left for its KV cache."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The server has too little memory for its KV cache",
    impact=ENDED,
    signs=(
        Line("No available memory for the cache blocks|Out of free (?:pages|blocks)"),
        Line(
            r"max seq len \(?\d+\)? is larger than the maximum number of tokens|"
            "KV cache .{0,120}larger than the available KV cache memory"
        ),
        Line(
            r"(?:Prefill|Decode|KV [Cc]ache|kv cache) (?:is )?out of memory|[Nn]ot enough (?:memory|space|"
            r"room) (?:\w+ ){0,4}KV ?[Cc]ache"
        ),
        Line(
            r"No available (?:blocks|slots|pages)\b.{0,60}(?:cache|KV)|"
            r"Not enough memory\. Please try to increase --mem-fraction-static"
        ),
    ),
    follows=("accelerator_memory_taken",),
    fix=("Raise gpu_memory_utilization, shorten max_model_len, use more devices, or an 8-bit cache."),
    runbook="JaxOutOfMemory",
)
