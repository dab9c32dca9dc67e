"""The process and its job."""

from __future__ import annotations

from jaxobs.facts.process import LAST_EXITS
from jaxobs.metrics.metric import Metric

_VERSIONS = ("jaxobs", "python", "jax", "jaxlib", "plugin", "driver", "runtime")

METRICS = (
    Metric(
        name="jax_process_start_timestamp_seconds", kind="gauge", unit="seconds",
        read=lambda s: [((), s.process.started if s.wall is None else s.wall.started)],
        help="Start time of the process.",
    ),
    Metric(
        name="jax_build_info", kind="info", labels=_VERSIONS,
        read=lambda s: [(tuple(s.process.versions.get(name, "") for name in _VERSIONS), 1)],
        help="Versions of the software in use.",
    ),
    Metric(
        name="jax_process_info", kind="info", labels=("process_index", "process_count"),
        read=lambda s: [((str(s.process.process_index), str(s.process.process_count)), 1)],
        help="Position of this process in its job.",
    ),
    Metric(
        name="jax_run_info", kind="info", labels=("run_id", "last_exit"), values=(("last_exit", ("", *LAST_EXITS)),),
        read=lambda s: [((s.process.run_id, s.process.last_exit), 1)],
        help=("The run that this process belongs to, if known: the setting run_id, else the job's coordinator; and "
             "how the process before it ended, where there is a file that says so."),
    ),
    Metric(
        name="jax_processes", kind="gauge", read=lambda s: [((), s.process.process_count)],
        help="Number of processes in the job that this one belongs to, as JAX counts them.",
    ),
)  # fmt: skip
