"""A port that the process needs is taken."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The port of the coordinator is already in use",
    impact=ENDED,
    signs=(
        Line(
            "(?:coordinat|[Ff]ailed to (?:add|bind)|grpc|server|bind).{0,160}[Aa]ddress already in use|"
            "Address already in use$",
            unless="[Tt]ensor[Bb]oard|[Rr]etry|[Tt]rying|[Mm]etrics|[Pp]rometheus|[Pp]rofiler",
        ),
        Line(
            r"port is already allocated|\[Errno 98\]|EADDRINUSE|Failed to add port to server|Failed to start RPC server"
        ),
    ),
    fix="End the earlier run that still holds the port (`ss -ltnp`), or choose another one.",
)
